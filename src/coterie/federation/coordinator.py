"""The server's side of a federation: what to ask next.

The sites' parts F_s of the objective and the cut edges make one problem in the boundary weights alone,

    min_w  Σ_s G_s(w) + g(Dw),        G_s(w) = min F_s over the site's other nodes,

with D the incidence matrix of the cut edges. The primal-dual operator T of `engines/base.py` applies: its primal step
asks every site for a proximal map of G_s, its dual step is the server's own. But an iteration is an exchange, and
exchanges are slow. So the server learns how the sites answer (`prox_surrogate.py`), iterates with what it has learnt
until that stands still, and asks there: a quasi-Newton method for the fixed point of T. Where that does not
bring the residual ‖Tz − z‖ down, it takes a plain step from the best point; so the method converges even when
nothing useful can be learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.engines.base import RELAXATION, Travel
from coterie.federation.messages import Introduction
from coterie.federation.partition import Cut
from coterie.federation.prox_surrogate import MEMORY, ProxSurrogate
from coterie.problem.arrays import Array
from coterie.problem.penalties import Penalty
from coterie.solver.balance import Steps

WIDER = 0.5  # of the range of the weights: how far outside it a model is followed
MODEL_STEPS = 300  # iterations with what has been learnt, between two exchanges
PATIENCE = 3  # rounds without progress before a plain step
PROGRESS = 0.9  # of the best residual: less than that is progress
BALANCED = 10  # rounds in which the balance may still move


class Point(NamedTuple):
    """Tz = (ŵ, û) of a point z, its residual ‖Tz − z‖, and the sites' forces g there."""

    residual: float
    w: Array
    u: Array
    g: Array


@dataclass(eq=False)
class Coordinator:
    """Iterates on the boundary.

    Attributes
    ----------
    cut : Cut
    penalty : Penalty
    c : array of shape (E,)
        λA_e of the cut edges.
    steps : Steps
    w, u : arrays of shape (B, n) and (E, n)
        The point z at which the next requests are made.
    blocks : array of int
        Which boundary nodes may move each other: those with the same number, ascending. Sites, unless more is known.
    replies : list of (ŵ, g)
        What the sites have replied; g = (v − ŵ)/τ.
    """

    cut: Cut
    n_sites: int
    penalty: Penalty
    c: Array
    steps: Steps
    w: Array
    u: Array
    blocks: NDArray[np.int64]
    replies: list[tuple[Array, Array]] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    rounds: int = 0
    best: Point | None = None
    idle: int = 0

    @classmethod
    def of(
        cls,
        cut: Cut,
        penalty: Penalty,
        lam: float,
        n: int,
        introductions: Sequence[Introduction],
        blocks: NDArray[np.int64] | None = None,
    ) -> Coordinator:
        """Begin at zero, with steps that suit what the sites said of themselves."""
        c = lam * cut.graph.weights
        s = np.sqrt(c / c.mean()) if c.size and lam > 0 else np.ones(len(c))
        B = cut.graph.n_nodes
        d = np.bincount(cut.graph.edges.ravel(), weights=np.repeat(s, 2), minlength=B)
        d[d == 0] = 1.0
        typical = np.mean([one.size for one in introductions if one.size > 0] or [1.0])
        omega = float(np.sqrt(2 * n * (c**2).sum() / (d.sum() * typical))) or 1.0
        w, u = np.zeros((B, n)), np.zeros((len(c), n))
        steps = Steps(s, d, omega=omega)
        return cls(cut, len(introductions), penalty, c, steps, w, u, cut.part if blocks is None else blocks)

    @property
    def sites(self) -> list[slice]:
        """Where the boundary nodes of each site stand."""
        return [self.cut.of(k) for k in range(self.n_sites)]

    @property
    def v(self) -> Array:
        """The centres that the next requests are about: w − τDᵀu."""
        return self.w - self.steps.tau[:, None] * (self.cut.graph.D.T @ self.u)

    def hold(self, sites: set[int]) -> None:
        """Hold these sites and no others; the best point was the best of another problem."""
        self.held, self.best, self.idle = sites, None, 0

    def take(self, w_hat: Array, g: Array, now: NDArray[np.bool_] | None = None) -> Array:
        """Take the latest replies (ŵ, g), choose the next point, and return û, a dual point near Tz.

        `now` marks boundary nodes whose site has replied to the last requests; all, unless it is given. The others
        replied to earlier ones: what that says of them is learnt, and at z they are taken to stay where they are.
        """
        tau, sigma, D = self.steps.tau[:, None], self.steps.sigma[:, None], self.cut.graph.D
        at_z = w_hat.copy()
        if now is not None:
            at_z[: len(now)][~now] = self.w[: len(now)][~now]
        u_hat = self._answered(at_z)
        dw, du = at_z - self.w, u_hat - self.u
        residual = np.sqrt(max((dw**2 / tau).sum() + (du**2 / sigma).sum() - 2 * np.vdot(du, D @ dw), 0.0))
        self.replies = [*self.replies, (w_hat, g)][-MEMORY:]
        self.rounds += 1
        if self.best is None or residual <= PROGRESS * self.best.residual:
            self.best, self.idle = Point(float(residual), w_hat, u_hat, g), 0
        else:
            self.idle += 1
        self._move(self.best)
        return u_hat

    def step(self, w_hat: Array) -> None:
        """Go to Tz itself: a plain step, from which nothing is learnt."""
        self.w, self.u = w_hat, self._answered(w_hat)
        self.rounds += 1

    def _answered(self, w_hat: Array) -> Array:
        """û of Tz, after the sites' replies ŵ."""
        return self._dual_step(self.u + self.steps.sigma[:, None] * (self.cut.graph.D @ (2 * w_hat - self.w)))

    def _move(self, best: Point) -> None:
        """Go towards where the model, centred at the best point, stands still: half as far after each failure."""
        if self.idle >= PATIENCE:
            self.w, self.u = best.w, best.u
            self.best, self.idle = None, 0
            return
        before, share = (self.w, self.u), 0.5**self.idle
        w, u = self._model_fixed_point(best)
        self.w, self.u = best.w + share * (w - best.w), best.u + share * (u - best.u)
        if self.rounds <= BALANCED:
            self._rebalance(*before)

    def _model_fixed_point(self, best: Point) -> tuple[Array, Array]:
        """Iterate T with the sites replaced by what was learnt of them."""
        tau, sigma, D = self.steps.tau[:, None], self.steps.sigma[:, None], self.cut.graph.D
        Dt = D.T.tocsr()
        others = [reply for reply in self.replies if reply[0] is not best.w]
        free = ~np.isin(self.cut.part, list(self.held))
        model = ProxSurrogate([*others, (best.w, best.g)], self.steps.tau, self.blocks, free)
        w, w_hat = best.w.copy(), best.w
        u, u_hat = best.u.copy(), best.u
        for _ in range(MODEL_STEPS):
            w_hat = model(w - tau * (Dt @ u))
            u_hat = self._dual_step(u + sigma * (D @ (2 * w_hat - w)))
            w += RELAXATION * (w_hat - w)
            u += RELAXATION * (u_hat - u)
        return _near(w_hat, best.w), u_hat

    def _rebalance(self, w: Array, u: Array) -> None:
        primal = np.sqrt(((self.w - w) ** 2 / self.steps.tau[:, None]).sum())
        dual = np.sqrt(((self.u - u) ** 2 / self.steps.sigma[:, None]).sum())
        self.steps.rebalance(Travel(float(primal), float(dual)))
        self.best = None  # residuals are measured with the steps

    def _dual_step(self, u: Array) -> Array:
        return self.penalty.dual_step(u, self.c, self.steps.sigma)


def _near(w: Array, known: Array) -> Array:
    """Keep weights near the range of known ones and zero: along flat directions a model has no reason to stop."""
    low, high = known.min(axis=0, initial=0.0), known.max(axis=0, initial=0.0)
    more = WIDER * (high - low)
    return np.clip(w, low - more, high + more)
