"""The contract between the driver and whatever computes the iterations.

One iteration applies the operator T of the primal-dual method to z = (w, u):

    ŵ = prox_{τf}(w − τDᵀu),    û = prox_{σg*}(u + σD(2ŵ − w)),    Tz = (ŵ, û),

and moves z, in one of two ways:

    relaxed:   z ← z + 1.9 (Tz − z)
    Halpern:   z ← (k+1)/(k+2) · (2Tz − z) + 1/(k+2) · z₀,   anchored at the z₀ of the last restart.

Where every loss is strongly convex there is a third way, accelerated gradient steps on the dual alone (FISTA):

    dual:      ŵ = argmin f(w) + ⟨Dᵀu, w⟩,  û = prox_{σg*}(u + σDŵ),  u ← û + k/(k+3) · (û − û of the last iteration).

and with single numbers for weights a fourth, in which edges are solved exactly, pair by pair (`pairs.py`).

A loss whose primal update has no closed form may offer quadratic models (`LocalLosses.model`). Then every block of
iterations has them, around the ŵ it begins with, or one of the last blocks did, in the place of L_i: a closed primal
update, with the same fixed point once ŵ stands still.

An engine keeps z, z₀ and Tz where it likes (arrays, a GPU, a cluster) and runs whole blocks of iterations, so that the
driver costs nothing and knows nothing of how an iteration is computed. What a certificate needs is computed there as
well, by the engine's `Prover`: the solver sees scalars, until it gathers weights and duals once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from coterie.kernels.forms import Form
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    from coterie.engines.arrays import ArrayProver

RELAXATION = 1.9
LARGE = 20_000_000  # edge coordinates above which there is no room for a spare copy of the duals


class Mode(Enum):
    """How z moves."""

    RELAXED = "relaxed"
    HALPERN = "halpern"
    DUAL = "dual"
    PAIRS = "pairs"


class TooRough(Exception):  # noqa: N818  it is no error
    """An engine cannot iterate from where it is with the digits that it has."""


class Travel(NamedTuple):
    """How far an epoch went: √Σ|Δw_i|²/τ_i and √Σ|Δu_e|²/σ_e."""

    primal: float
    dual: float


class Engine(Protocol):
    """Runs iterations of T. All steps come from the driver: τ_i = η/(ω d_i) and σ_e = ηω s_e/2.

    What has a value here is what most engines have; others say otherwise.
    """

    unwatched: float = 1.0
    """Seconds in which nothing is proven that a glance tells is not good enough."""
    now: Form | None = None
    """The form of kernels that a solve begins with, where the engine chooses it."""
    lanczos: Callable[[Array, Array, Array, int], tuple[Array, Array]] | None = None
    """(s, d, start, steps): what `kernels.norms` computes, where the numbers are."""
    was_rough: bool = False
    """Whether there was a rougher one for the last problem that it was asked for."""
    steps: Callable[[], Any] | None = None
    """The steps of a problem that nobody holds as a whole."""

    def together(self, **given: Any) -> AbstractContextManager[None]:
        """Return a context in which several processes do the same; they must have been given the same."""
        return nullcontext()

    def prover(self, problem: BoundProblem) -> Prover:
        """Return what proves, of weights and duals on this engine's storage; `setup` is not needed before."""

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        """Take a problem and a starting point, which is also the first anchor."""

    def set_steps(self, tau: Array, sigma: Array) -> None:
        """Use these steps from now on."""

    def advance(self, n_iter: int, mode: Mode) -> float:
        """Run n_iter ≥ 1 iterations; return ‖Tz − z‖ of the last, in the metric in which T does not expand."""

    def restart(self) -> Travel:
        """Go to Tz, make it the anchor, and say how far it lies from the last anchor."""

    def for_pairs(self) -> Engine | None:
        """Return the engine for Mode.PAIRS, where there is one."""

    def rougher(self, problem: BoundProblem) -> Engine | None:
        """Return an engine that is faster and rougher, where there is one for a problem; it may raise `TooRough`."""
        return None

    def point(self) -> tuple[Weights, Duals]:
        """Return Tz = (ŵ, û) of the last iteration, for the prover, and to keep; to restart, advance first."""


Weights = Any  # (V, n), wherever the engine keeps them
Duals = Any  # (E, n) of edges, or (V, n) of ℓ1 terms
Slope = Any  # (V, n), of an affine function, and how far it may be from the truth
Clusters = Any  # connected sets of nodes, in each coordinate


class Minorant(NamedTuple):
    """An affine function below the objective: its value at some weights, its slope, and the duals of rows, if any."""

    value: float
    rest: Slope
    duals: Any


class Descent(Protocol):
    """Conjugate gradients for one correction of duals."""

    def run(self, most: int, accuracy: float) -> Any:
        """Take up to so many more steps, until the residual is `accuracy` of the first."""

    def steps_to(self, accuracy: float) -> float:
        """How many steps that accuracy will take, from the beginning, at the pace so far."""


class Prover(Protocol):
    """Computes what a certificate needs where the numbers are.

    Weights, duals, slopes and clusters are handles, which only their prover can read; what it returns otherwise is a
    number. Duals are moved in place, and weights are not.
    """

    problem: BoundProblem
    needs_repair: bool
    """Whether duals can leave something that no loss takes up."""
    scales: bool
    """Whether duals stay in their domain when they shrink."""
    largest_strength: float
    """The largest λA_e."""
    cg_steps: int = 10
    """Steps of conjugate gradients of a correction."""
    near_enough: float = inf
    """Times the gap that is asked for, at a glance: with more than that, iterations come first as long as they help."""

    @property
    def arrays(self) -> ArrayProver | None:
        """Itself where handles are arrays of the whole network in this process; None elsewhere."""

    def scatter(self, x: Array, edges: bool = False) -> Any:
        """Take weights of the whole network in; or, of edges, duals."""

    def gather(self, x: Any, edges: bool = False) -> Array:
        """Give them out."""

    def copy(self, x: Any) -> Any:
        """Keep weights or duals."""

    def no_duals(self) -> Duals:
        """Duals of zero."""

    def is_nothing(self, u: Duals) -> bool:
        """Whether all duals are zero."""

    def is_finite(self, u: Duals) -> bool:
        """Whether all duals are numbers."""

    def objective(self, w: Weights) -> float:
        """f(w) + g(Dw)."""

    def largest_weight(self, w: Weights) -> float:
        """max |w_ik|."""

    def pooled_weights(self) -> Weights:
        """One model for each component."""

    def separating_weights(self) -> Weights | None:
        """The same where it leaves nothing to do, because it separates the classes; None elsewhere."""

    def dual_clusters(self, u: Duals) -> Clusters | None:
        """The clusters that duals show; None for penalties that have none."""

    def average(self, clusters: Clusters, w: Weights) -> Weights:
        """Means of weights, cluster by cluster."""

    def clip(self, u: Duals) -> None:
        """Move duals to where g* is finite, and to zero where no label is."""

    def split(self, w: Weights, u: Duals) -> Duals | None:
        """Duals of ℓ1 terms that go with u; None where there are no such terms."""

    def residual(self, u: Duals, s: Duals | None) -> float:
        """The largest entry of N(Dᵀu + s), which the next correction is about."""

    def weigh(self, u: Duals) -> None:
        """Let edges whose duals have slack count more in the next correction."""

    def descent(self, s: Duals | None) -> Descent:
        """Begin the next correction: of duals of edges, and of s."""

    def stretch(self, u: Duals, s: Duals | None, descent: Any) -> float:
        """By how much the domain of the duals would have to be stretched to hold them after this correction."""

    def correct(self, u: Duals, s: Duals | None, descent: Any, factor: float) -> None:
        """Correct, divide by the factor, and clip."""

    def glance(self, w: Weights, u: Duals, level: float) -> float:
        """About what duals prove before any charge, where that takes next to no time; ∞ where it does not."""

    def minorant(self, w: Weights, u: Duals, s: Duals | None) -> Minorant:
        """The affine function that duals prove to lie below the objective, with its value at w, less rounding."""

    def charge(self, rest: Slope, level: float, enough: float, thorough: bool) -> float:
        """How much lower it can be at a minimiser, at least; −∞ where no minimiser can be enclosed."""

    def residual_l1(self, rest: Slope) -> float:
        """The sum of all sizes of the slope."""
