"""A site: it has rows and inner edges, keeps both to itself, and answers requests.

It is stateless: the same request gets the same reply, however often it comes and whatever came before.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from coterie.engines.arrays import ArrayProver
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.messages import Introduction, ProxReply, ProxRequest
from coterie.federation.proximal_losses import with_proximal_terms
from coterie.problem import BoundProblem, Problem, bound
from coterie.problem.arrays import Array
from coterie.problem.strengths import refuse_strengths
from coterie.proofs.enclosure import Enclosure
from coterie.solver import NotConverged, solve
from coterie.solver.certificate import Certifier

SITE_GAP = 1e-12  # relative gap of the site's own solves: what a bound leaves open goes with its square root
MOST_ITERATIONS = 20_000


class Site:
    """The part of a problem that one site hosts.

    Parameters
    ----------
    problem : Problem
        The site's nodes, rows and inner edges, with the loss, penalty and λ that all sites share.
    boundary : array of int
        Those of its nodes that have neighbours elsewhere, in the order in which requests name them.
    round_to : float
        Boundary weights are rounded to multiples of this, and what is proven is proven of the rounded ones; 0: they are
        left as they are. The fewer digits leave the site, the less exactly its moments can be computed from them.
    """

    def __init__(self, problem: Problem | BoundProblem, boundary: NDArray[np.int64], round_to: float = 0.0) -> None:
        self.problem, self.boundary, self.round_to = bound(problem), boundary, round_to
        refuse_strengths(problem)
        if self.problem.f.bounds is not None:
            raise ValueError("a federation knows no bounds on weights: leave lower, upper and positive out")
        self.gap = SITE_GAP  # of its own solves, relative
        self.enclosure = Enclosure(self.problem, shift=False)
        self._last: tuple[ProxRequest, Array, Array] | None = None  # the end often asks the same again

    def introduce(self, name: str, hosts: Array, columns: tuple[str, ...] = ()) -> Introduction:
        """Say what the server must know before the first request."""
        f, M = self.problem.f, self.problem.M
        floor = 0.0 if f.below is not None or not len(M) else -np.inf  # rows cost nothing less than nothing
        size = float((f.pooled(np.zeros(len(M), dtype=np.int64), 1)[0] ** 2).sum()) if len(M) else 0.0
        zero = self.problem.objective(np.zeros((self.problem.graph.n_nodes, self.problem.n_features)))
        constant = min(self.problem.constant_loss, zero)  # what is called the best constant may only be close to it
        return Introduction(name, hosts, columns, floor, zero, constant, size)

    def weights(self, request: ProxRequest) -> Array:
        """Return the weights of all nodes of the site that minimise what the request asks for."""
        return self._solve(request)[0]

    def reply(self, request: ProxRequest) -> ProxReply:
        """Reply with boundary weights and scalars."""
        w, u = self._solve(request)
        at_boundary = w[self.boundary]
        bound, left = self._tilted_bound(w, u, (request.v - at_boundary) / request.tau[:, None])
        reach = self.enclosure.reach(request.level)
        return ProxReply(at_boundary, self.problem.objective(w), bound, left, reach)

    def release(self, request: ProxRequest, privacy: Privacy, rng: np.random.Generator) -> Array:
        """Reply with noisy boundary weights and nothing else."""
        return privacy.release(self.weights(request)[self.boundary], request.v, rng)

    def _solve(self, request: ProxRequest) -> tuple[Array, Array]:
        if self._last is None or not self._last[0].asks_the_same(request):
            self._last = (request, *self._solved(request))
        return self._last[1:]

    def _solved(self, request: ProxRequest) -> tuple[Array, Array]:
        rho, nothing = 1.0 / request.tau, np.zeros_like(request.v)
        proximal = with_proximal_terms(self.problem, self.boundary, rho=rho, v=request.v, force=nothing)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)  # the bound says how exact the reply is
            solution = solve(proximal, self.gap, max_iter=MOST_ITERATIONS)
        w = solution.w
        if self.round_to:
            w = w.copy()
            w[self.boundary] = np.round(w[self.boundary] / self.round_to) * self.round_to
        return w, solution.u

    def _tilted_bound(self, w: Array, u: Array, force: Array) -> tuple[float, float]:
        """Bound F_s − ⟨force, ·⟩ from below: by `bound`, less `left` for every unit of the largest weight."""
        nothing = np.zeros(len(self.boundary))
        tilted = with_proximal_terms(self.problem, self.boundary, rho=nothing, v=np.zeros_like(force), force=force)
        proof = Certifier(ArrayProver(tilted))(w, u.copy())
        left = proof.bound.residual_l1
        return proof.bound_before_charge - left * float(np.abs(w).max(initial=0.0)), left
