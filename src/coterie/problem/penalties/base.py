"""What a penalty must know.

A penalty is g(z) = Σ_e c_e φ(z_e) of the differences z = Dw, with strengths c_e = λA_e ≥ 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from coterie.problem.arrays import Array


class Penalty(ABC):
    """φ, its conjugate, and the dual step; z and u have shape (E, n), c has shape (E,).

    φ is convex, φ(0) = 0, and φ(z) does not fall when some |z_k| grows. A penalty declares what else it is, and
    solvers ask. Bounds are as good as its `conjugate`, which must not be too small.

    Examples
    --------
    >>> import coterie as ct
    >>> isinstance(ct.TotalVariation(), ct.Penalty)
    True
    """

    degree: ClassVar[int] = 1
    """φ(tz) = t^degree φ(z) for t > 0."""

    is_norm: ClassVar[bool] = False
    """Whether φ is a norm: then nodes are contracted, and edges with slack join weights that are exactly equal."""

    couples: ClassVar[bool] = True
    """Whether φ is more than a sum over coordinates: then those of an edge are cut together."""

    exact_clusters: ClassVar[bool] = False
    """Whether φ(z) = Σ|z_k|: on given clusters it is linear, and their weights can be found exactly."""

    kernel: ClassVar[int | None] = None
    """The branch of the compiled edge passes that does the same; None: there is none, and NumPy does the work."""

    @property
    def edge_kernel(self) -> int | None:
        """The branch of the compiled edge passes that iterates; some penalties have that and nothing else compiled."""
        return self.kernel

    @property
    def kind(self) -> Any:
        """What kernels take for it: the number of a branch, or itself."""
        return self if self.kernel is None else self.kernel

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

    def room(self, u: Array, c: Array) -> Array:
        """The share (E, n) that each edge and coordinate takes of a correction of duals."""
        return np.broadcast_to(c[:, None], u.shape)
