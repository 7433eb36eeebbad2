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
iterations has them, around the ŵ it begins with, in the place of L_i: a closed primal update, with the same
fixed point once ŵ stands still.

An engine keeps z, z₀ and Tz where it likes (arrays, a GPU, a cluster, other organisations) and runs whole
blocks of iterations, so that the driver costs nothing and knows nothing of how an iteration is computed.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

RELAXATION = 1.9
LARGE = 20_000_000  # edge coordinates above which there is no room for a spare copy of the duals


class Mode(Enum):
    """How z moves."""

    RELAXED = "relaxed"
    HALPERN = "halpern"
    DUAL = "dual"
    PAIRS = "pairs"


class Travel(NamedTuple):
    """How far an epoch went: √Σ|Δw_i|²/τ_i and √Σ|Δu_e|²/σ_e."""

    primal: float
    dual: float


class Engine(Protocol):
    """Runs iterations of T. All steps come from the driver: τ_i = η/(ω d_i) and σ_e = ηω s_e/2."""

    threads: int | None
    """How many threads certificates may use; None: as many as pay."""

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

    def point(self) -> tuple[Array, Array]:
        """Return Tz = (ŵ, û) of the last iteration, for the caller to keep; to restart, advance first."""
