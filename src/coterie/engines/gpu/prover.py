"""What certificates need of weights and duals, where these are tensors on a device.

Every number that a bound rests on is float64. Sums are in twice the precision (`exact`), with bounds on their errors
that hold for any order of additions; what the charges of `coterie.engines.arrays` allow for is more than that.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch

from coterie.engines.base import Minorant, Prover
from coterie.engines.gpu.clusters import Clusters
from coterie.engines.gpu.corrections import Corrections
from coterie.engines.gpu.device import on_host
from coterie.engines.gpu.exact import EPS, Tensor, in_any_order, sum_exactly, total, two_product, two_sum
from coterie.engines.gpu.layout import Layout, stride
from coterie.engines.gpu.losses import DeviceQuadratics, HostLosses, on_device
from coterie.engines.gpu.order import nearby
from coterie.engines.gpu.recording import Recorded
from coterie.engines.gpu.rows import Support
from coterie.kernels.interruption import check_with_grace
from coterie.kernels.reference.exact import FAINT
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.proofs.dual_clusters import MARGIN
from coterie.proofs.enclosure import Enclosure
from coterie.proofs.rest import Rest

SUM_ERROR = 32 * EPS  # of the size of its terms: far more than sums in twice the precision can be off


SLOTS = (4, 4, 2, 4, 4, 4, 2, 2, 2, 2, 2, 2, 1, 1, 1)  # at a time, for 1, 2, … 15 coordinates
SHORT = 12  # entries of a row on average, below which programs with one or two coordinates are over too soon


def lanes(n: int, row: float) -> tuple[int, int, int]:
    """Nodes side by side, slots at a time, and warps of a program, for rows with so many entries on average.

    What was fastest on an H200 (decision 28). From 16 coordinates on, these are side by side as well.
    """
    if n >= 16:
        return (16, 32 // n, 2) if n <= 32 else (8, 1, 2)
    two_warps = n == 7 or (n <= 2 and row < SHORT)
    return (64, SLOTS[n - 1], 2) if two_warps else (32, SLOTS[n - 1], 1)


class DeviceRest(NamedTuple):
    """ρ, how far it may be from the truth, and the weights that it was computed at: see `Rest`."""

    rho: Tensor
    rounding_bound: Tensor
    w: Tensor
    losses: HostLosses
    M: Tensor

    @property
    def here(self) -> Rest:
        return Rest(*(part.cpu().numpy() for part in (self.rho, self.rounding_bound, self.w)))

    def is_nothing(self) -> bool:
        return not bool(self.rho.any()) and not bool(self.rounding_bound.any())

    def ceiling(self, problem: BoundProblem, level: float) -> float:
        return self.losses.ceiling(level, self.w[self.M])

    def within(self, caps: Array) -> float:
        """Each term is within 4 EPS, which the callers' factor of 1 + 10⁻⁹ covers."""
        caps = torch.as_tensor(caps, device=self.w.device)
        return total((self.rho.abs() + self.rounding_bound) * (caps + self.w.abs()))

    def gathered(self, group: Array, centre: Array) -> tuple[Array, ...]:
        """As `kernels.reference.charge.gather`: the same charges for products, those of `in_any_order` for sums."""
        (G, n), device = centre.shape, self.w.device
        of = torch.as_tensor(group, device=device)
        inside = of >= 0
        of, r, d = of[inside], self.rho[inside], self.rounding_bound[inside]
        centre = torch.as_tensor(centre, device=device)
        far = torch.where((r != 0) | (d != 0), centre[of] - self.w[inside], 0.0)
        each, error = sum_exactly(*two_product(r, far), dim=1)

        def add(x: Tensor) -> Tensor:
            if G == 1:
                return x.sum(0, keepdim=True)
            return torch.zeros((G, x.shape[1]), dtype=x.dtype, device=device).index_add_(0, of, x)

        terms = add(torch.ones((len(of), 1), dtype=torch.float64, device=device))
        first, low, lost = in_any_order(add, each[:, None], terms)
        whole, rest, slack = in_any_order(add, r, terms)
        first, whole = first + (low + add(error[:, None])), whole + rest
        size = add(r.abs() + d)
        off = (far.abs() * (d + EPS * r.abs())).sum(1, keepdim=True)
        more = ((n + 2) * terms * EPS) ** 2
        lost = lost + add(off) + EPS * first.abs() + more * add((r * far).abs().sum(1, keepdim=True)) + FAINT
        slack = slack + add(d) + (EPS * whole.abs() + more * size)
        wider = 1 + terms * EPS  # plain sums of what is not negative
        out = first[:, 0], (lost * wider)[:, 0], whole, slack * wider, size * wider
        return tuple(part.cpu().numpy() for part in out)


class DeviceProver(Corrections, Prover):
    """Handles are tensors: weights (V, n) and duals (E, n), in the order of the graph."""

    arrays = None
    near_enough = 0.02  # times the gap that is asked for, at a glance: before that, iterations come first

    def __init__(self, problem: BoundProblem, device: Any, fused: bool) -> None:
        super().__init__(problem, device)
        self.fused = fused  # whether products with the Laplacian are a kernel's
        self.losses, self.recorded = on_device(problem.f, device), Recorded()
        if fused and self.edges.E:
            self._use_kernels()
        self.enclosure = Enclosure(problem)

    @cached_property
    def layout(self) -> Layout:
        """How the graph lies in memory, for kernels."""
        labelled = torch.zeros(self.problem.graph.n_nodes, dtype=torch.bool, device=self.device)
        labelled[self.M] = True
        n, ends = self.problem.n_features, (self.edges.i, self.edges.j)
        shape = lanes(n, 2 * self.edges.E / len(labelled))
        return Layout(*ends, labelled, n, *shape, order=nearby(*ends, len(labelled), 4 * stride(n)))

    def _use_kernels(self) -> None:
        from coterie.engines.gpu.sliced import differences, divergence

        self.edges.sliced, self.edges.subtracted = partial(divergence, self.layout), differences

    def laplacian(self) -> Any:
        if not self.fused:
            return super().laplacian()
        from coterie.engines.gpu.sliced import SlicedLaplacian

        return SlicedLaplacian(self.edges, self.layout, self.S)

    def scatter(self, x: Array, edges: bool = False) -> Tensor:
        return self._in(x)

    def gather(self, x: Tensor, edges: bool = False) -> Array:
        return on_host(x)

    def copy(self, x: Tensor) -> Tensor:
        return x.clone()

    def no_duals(self) -> Tensor:
        shape = self.problem.graph.n_edges, self.problem.n_features
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    def is_nothing(self, u: Tensor) -> bool:
        return not bool(u.any())

    def is_finite(self, u: Tensor) -> bool:
        return bool(torch.isfinite(u).all())

    def objective(self, w: Tensor) -> float:
        if type(self.losses) is HostLosses:
            return sum(map(total, self._terms(w)))
        return sum(map(total, self.recorded(self._terms, w, self.marks.numel())))

    def _terms(self, w: Tensor) -> tuple[Tensor, ...]:
        """The terms of f(w) and of g(Dw)."""
        return self.losses.exact(w[self.M]), self.edges.variations(w)

    def largest_weight(self, w: Tensor) -> float:
        return float(w.abs().max()) if w.numel() else 0.0

    def pooled_weights(self) -> Tensor:
        return self._in(self.enclosure.pooled_weights())

    def separating_weights(self) -> Tensor | None:
        apart = self.enclosure.separating_weights()
        return None if apart is None else self._in(apart)

    def dual_clusters(self, u: Tensor) -> Clusters | None:
        if not self.problem.penalty.is_norm or self.problem.lam == 0:
            return None
        return Clusters(self.edges, self.edges.joins(u, MARGIN))

    def average(self, clusters: Clusters, w: Tensor) -> Tensor:
        return clusters.average(w)

    def split(self, w: Tensor, u: Tensor) -> Tensor | None:
        """Duals s (V, n) in the box of the losses, zero at unlabelled nodes; None without a box."""
        if self.lower is None:
            return None
        s = torch.zeros_like(w)
        s[self.M] = self.losses.split_dual(-self.edges.divergence(u)[self.M], w[self.M])
        return s

    def glance(self, w: Tensor, u: Tensor, level: float) -> float:
        """What a minorant comes to at w, about: never more than the objective there, however wrong the duals are.

        A loss that is not quadratic has its second-order model at w in its place.
        """
        rest, at = self.edges.divergence(u), w[self.M]
        across = float((rest * w).sum()) - self.edges.conjugate(u)
        if isinstance(self.losses, DeviceQuadratics):
            return across + float(self.losses.below(-rest[self.M], at).sum())
        model = self.losses.model(at, at) if self.row_space is None else None
        if model is None:
            return np.inf
        pull = rest[self.M] + model.slope
        fall = 0.5 * float((pull * torch.linalg.solve_ex(model.H, pull)[0]).sum())
        return level - self.edges.variation(w) + across - fall

    def minorant(self, w: Tensor, u: Tensor, s: Tensor | None) -> Minorant:
        rho, low, bound = self.edges.exact_divergence(u)
        bound = bound.clone()
        check_with_grace()
        if s is not None:
            rho, error = two_sum(rho, s)
            low, bound = low + error, bound + 16 * EPS * EPS * s.abs()
        support = self.losses.support(-rho[self.M], w[self.M])
        rho[self.M], error = two_sum(rho[self.M], support.q)
        low[self.M] = (low[self.M] + support.low) + error
        bound[self.M] += support.rounding_bound
        rho = rho + low
        bound += EPS * rho.abs()
        value = self._value_of(w, u, s, support)
        check_with_grace()
        return Minorant(value, DeviceRest(rho, bound, w, self.losses, self.M), None)

    def _value_of(self, w: Tensor, u: Tensor, s: Tensor | None, support: Support) -> float:
        """What the affine functions below all parts of the objective come to at w, less rounding."""
        across = self.edges.across(u, w)
        box = 0.0 if s is None else total(s * w) - SUM_ERROR * total((s * w).abs())
        terms = across, -self.edges.conjugate(u), box
        value = total(support.at) + sum(terms)
        return value - SUM_ERROR * (total(support.at.abs()) + sum(map(abs, terms))) - FAINT

    def charge(self, rest: Any, level: float, enough: float = 0.0, thorough: bool = True) -> float:
        return self.enclosure.charge(rest, level, enough, thorough)

    def residual_l1(self, rest: DeviceRest) -> float:
        return total(rest.rho.abs() + rest.rounding_bound)
