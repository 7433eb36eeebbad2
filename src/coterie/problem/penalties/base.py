"""What a penalty must know.

A penalty is g(z) = Σ_e c_e φ(z_e) of the differences z = Dw, with strengths c_e = λA_e ≥ 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from coterie.problem.arrays import Array


class Penalty(ABC):
    """φ, its conjugate, and the dual step; z and u have shape (E, n), c has shape (E,).

    `kernel` says which branch of the compiled edge passes (coterie.kernels.edges) does the same.

    Examples
    --------
    >>> import coterie as ct
    >>> isinstance(ct.TotalVariation(), ct.Penalty)
    True
    """

    kernel: ClassVar[int]
    degree: ClassVar[int] = 1
    """φ(tz) = t^degree φ(z) for t > 0."""

    @abstractmethod
    def value(self, z: Array, c: Array) -> float:
        """g(z)."""

    @abstractmethod
    def conjugate(self, u: Array, c: Array) -> float:
        """g*(u) for u in its domain."""

    @abstractmethod
    def dual_step(self, u: Array, c: Array, sigma: Array) -> Array:
        """(I + Σ∂g*)⁻¹(u), the proximal map of g* with steps σ_e."""

    @abstractmethod
    def into_domain(self, u: Array, c: Array) -> Array:
        """The point nearest to u where g* is finite."""

    @abstractmethod
    def strength_needed(self, u: Array, A: Array) -> float:
        """The smallest λ for which u lies in the domain of g* with c = λA."""

    @abstractmethod
    def spread(self, budget: float, weakest: Array, longest: Array) -> Array:
        """How far apart, in any coordinate, two nodes of a component can be when g(Dw) ≤ budget.

        `weakest` is the smallest c_e of each component, `longest` a bound on the length of its paths.
        """
