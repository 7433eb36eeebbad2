"""The iteration in Triton kernels: one pass over the entries of all edges for both halves of an iteration (`kernels`).

Between two passes the state is (u, w, x) with x = 2ŵ − w for the next dual half. A block of iterations begins with a
primal half from the sums Dᵀu, which the pass that ended the last one has kept, and ends with a dual half that keeps
Tz = (ŵ, û), its sums and its residual.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from coterie.engines.base import RELAXATION, Mode, Travel
from coterie.engines.equations import by_node
from coterie.engines.gpu import kernels, node_kernels
from coterie.engines.gpu.affine import affine_updates
from coterie.engines.gpu.edges import Edges
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.layout import Layout
from coterie.engines.gpu.losses import DeviceQuadratics, HostLosses
from coterie.engines.gpu.recording import repeatable
from coterie.engines.gpu.sliced import join
from coterie.engines.gpu.tables import Tables
from coterie.engines.models import Models
from coterie.kernels.interruption import check
from coterie.problem import BoundProblem

INLINE = 32  # coordinates up to which primal updates are part of the pass
SAME = 1e-9  # relative: steps that differ by less are equal


class FusedIteration:
    """z, z₀ and Tz in the layout's order, in single or double precision."""

    def __init__(
        self,
        problem: BoundProblem,
        edges: Edges,
        layout: Layout,
        losses: HostLosses,
        w: Tensor,
        u: Tensor,
        dtype: Any,
    ) -> None:
        self.problem, self.layout, self.losses, self.dtype = problem, layout, losses, dtype
        self.warps = layout.warps_for_double if dtype is torch.float64 else layout.warps
        self.M = torch.as_tensor(problem.M, device=layout.device)
        self.w, self.u = layout.packed(layout.nodes_in(w, dtype)), layout.duals_in(u, dtype)
        self.w0, self.u0, self.u_hat = self.w.clone(), self.u.clone(), torch.empty_like(self.u)
        self.u_next, self.u0_next = (torch.empty_like(self.u) if layout.once else None for _ in range(2))
        self.w_hat, self.x = self.w.clone(), [self.w.new_zeros((layout.size, layout.stride)) for _ in range(2)]
        self.sums = layout.nodes_in(edges.divergence(u), dtype)
        self.sums_hat, self.moves = (torch.zeros_like(self.sums) for _ in range(2))
        self.residual, self.travel, self.tau = (self.w.new_zeros(layout.size) for _ in range(3))
        cut = len(layout.row_node)  # the same five of parts of cut rows
        self.parts = tuple(self.w.new_zeros(shape) for shape in 3 * [(cut, layout.N)] + 2 * [(cut,)])
        self.fresh, self.k = True, 0  # fresh: Tz is z itself
        self.table = self.w.new_empty((0, 8))  # what `_make_factors` makes
        self.blocks: dict[Any, Any] = {}  # recordings, of kinds of blocks that have been launched
        self.latest = w[self.M]  # the guess of the next primal update
        self._place_losses()
        self._place_strengths(edges)

    def _place_losses(self) -> None:
        """Number labelled nodes in the inner order, and make room for their affine updates."""
        at, device = self.layout.rank[self.M], self.layout.device
        self.at, self.by_place = at, torch.argsort(at)
        self.label = torch.full((self.layout.size,), -1, dtype=torch.int32, device=device)
        self.label[at[self.by_place]] = torch.arange(len(at), dtype=torch.int32, device=device)
        quadratic = self.problem.f.quadratic is not None
        self.narrow = self.layout.N <= INLINE
        self.affine = quadratic and self.narrow
        self.models: Any = None if quadratic else Models(self.losses)
        K = len(at) if self.narrow else 0
        self.tables = Tables(K, self.layout, self.dtype)
        self.dual = False  # whether these are those of dual steps

    def _place_strengths(self, edges: Edges) -> None:
        c = self.c = edges.c[:, 0]
        self.scalars = self.w.new_zeros(2)
        self.boxes = len(c) > 0 and bool((c != c[0]).any())
        self.box = self.layout.edges_in(c, self.dtype) if self.boxes else self.scalars
        if len(c):
            self.scalars[0] = c[0]

    def set_steps(self, tau: Tensor, sigma: Tensor) -> None:
        self.tau.fill_(1)
        self.tau[self.layout.rank] = tau.to(self.dtype)
        self.tau_M, self.sigma, self.given = tau[self.M], self.scalars, 2
        root = torch.where(self.c > 0, self.c.sqrt(), 1.0)
        for given, steps in ((0, sigma), (1, sigma / root)):
            if not len(steps) or float(steps.max() - steps.min()) <= SAME * float(steps.max()):
                self.given, self.scalars[1] = given, steps.max() if len(steps) else 1.0
                break
        if self.given == 2:
            self.sigma = self.layout.edges_in(sigma, self.dtype)
        if self.models is None:
            self._set_updates(self.dual)

    def _set_updates(self, dual: bool) -> None:
        """P and q of the primal updates q + Pv."""
        self.dual = dual
        if not len(self.M) or not self.narrow:
            return
        around = None if self.models is None else (self.model, self.models.centre)
        P, q = affine_updates(self.losses, self.tau_M, around, dual)
        self.tables.fill(P[self.by_place], q[self.by_place])

    def advance(self, n_iter: int, mode: Mode) -> float:
        self._begin_block(mode)
        self._make_factors(n_iter, mode)
        self._block(n_iter, mode)
        self.fresh = False
        return self._measure(self.rows[n_iter - 1], mode)

    def _block(self, n_iter: int, mode: Mode) -> None:
        """Launch so many iterations; where a block of that kind comes again, as a recording."""
        kind = n_iter, mode, self.given, *(x.data_ptr() for x in (self.u, self.u0, self.table, self.sigma))
        returns = self.affine and n_iter % 2 == 0  # after an even number, duals are where they were
        if returns and kind in self.blocks and self.blocks[kind] is None:
            work = partial(self._launch_block, n_iter, mode)
            self.blocks[kind] = repeatable(work, self.u.numel(), self.layout.device)
        recorded = self.blocks.setdefault(kind, None)
        if returns and recorded is not None:
            recorded()
        else:
            self._launch_block(n_iter, mode)

    def _launch_block(self, n_iter: int, mode: Mode) -> None:
        self._primal_half(0, self.x[0], mode)
        for k in range(n_iter - 1):
            self._pass(k, mode)
            check()
        self._probe(n_iter - 1, mode)

    def _begin_block(self, mode: Mode) -> None:
        if self.models is not None:
            self.latest = self._rows(self.w_hat)[self.at, : self.layout.n].double()
            self.model = self.models.around(self.latest)
            self.affine = self.model is not None and self.narrow
            if self.affine:
                self._set_updates(False)
            elif self.model is not None:
                self.updates = affine_updates(self.losses, self.tau_M, (self.model, self.models.centre), False)
        elif self.dual != (mode is Mode.DUAL):
            self._set_updates(mode is Mode.DUAL)

    def _make_factors(self, n_iter: int, mode: Mode) -> None:
        """(a, b, g) of z ← a Tz + b z + g z₀ for every iteration of the block, beside that of the next.

        With each is whether w moves at once: in the last one ŵ is kept.
        """
        steps = range(n_iter + 1)
        self.rows = [(*_factors(self.k + k, mode), float(k < n_iter - 1)) for k in steps]
        self.k += n_iter
        table = [[*now, *then] for now, then in zip(self.rows, self.rows[1:], strict=False)]
        if len(table) > len(self.table):
            self.table = self.w.new_empty((len(table), 8))
        self.table[: len(table)] = torch.tensor(table, dtype=self.dtype)

    def _measure(self, factors: tuple[float, ...], mode: Mode) -> float:
        """r² = |dw|²/τ + |du|²/σ − 2⟨du, D dw⟩ for dz = Tz − z, and the last move of w."""
        r2 = self.residual.double().sum()
        if mode is Mode.DUAL:
            self.w.copy_(self.w_hat)
        else:
            dw = self._rows(self.w_hat).double() - self._rows(self.w)
            r2 += (dw**2 / self.tau[:, None]).sum() - 2 * (dw * self.moves).sum()
            self._move(self.w_hat, factors)
        return max(float(r2), 0.0) ** 0.5

    def _move(self, h: Tensor, factors: tuple[float, ...]) -> None:
        """w ← a ŵ + b w + g w₀."""
        a, b, g = factors[:3]
        self.w.mul_(b).add_(h, alpha=a).add_(self.w0, alpha=g)

    def restart(self) -> Travel:
        moved = (self._rows(self.w_hat).double() - self._rows(self.w0)) ** 2 / self.tau[:, None]
        travel = Travel(float(moved.sum()) ** 0.5, float(self.travel.double().sum()) ** 0.5)
        if not self.fresh:
            self.u.copy_(self.u_hat)  # recordings know where it is
            self.w.copy_(self.w_hat)
            self.sums.copy_(self.sums_hat)
        self.w0.copy_(self.w)
        self.u0.copy_(self.u)
        self.k, self.fresh = 0, True
        return travel

    def noise(self) -> float:
        """What rounding makes of a residual, about: x is off by 2⁻²⁴|x|, and √(Σ σ|x_i − x_j|²) ≤ √(Σ|x_i|²/τ_i)."""
        if self.dtype is torch.float64:
            return 0.0
        return 2.0**-24 * float((self._rows(self.w_hat).double() ** 2 / self.tau[:, None]).sum()) ** 0.5

    def _rows(self, w: Tensor) -> Tensor:
        """Weights of nodes (·, N), as sums and vectors of neighbours lie."""
        return self.layout.unpacked(w)

    def point(self) -> tuple[Tensor, Tensor]:
        u = self.u if self.fresh else self.u_hat
        return self.layout.nodes_out(self._rows(self.w_hat)), self.layout.duals_out(u)

    def _pass(self, k: int, mode: Mode) -> None:
        """The dual half of iteration k of a block, and the primal half of the next."""
        x, x_out = self.x[k % 2], self.x[1 - k % 2]
        self._edges(k, x, x_out, mode, nodes=self.affine)
        if self.layout.hubs:
            self._cut_edges(k, x, mode)
        self._turn(mode)
        if not self.affine or self.layout.hubs:
            self._primal_half(k + 1, x_out, mode, cut_only=self.affine)

    def _probe(self, k: int, mode: Mode) -> None:
        """The dual half of the last iteration of a block: û, its sums and its residual are kept."""
        self._edges(k, self.x[k % 2], self.x[0], mode, probe=True)
        if self.layout.hubs:
            self._cut_edges(k, self.x[k % 2], mode, probe=True)
        self._turn(mode)

    def _turn(self, mode: Mode) -> None:
        """Where duals are kept once, the new ones are in the place of the old."""
        if self.layout.once:
            self.u, self.u_next = self.u_next, self.u
            if mode is Mode.DUAL:
                self.u0, self.u0_next = self.u0_next, self.u0

    def _primal_half(self, k: int, x_out: Tensor, mode: Mode, cut_only: bool = False) -> None:
        """ŵ and x of iteration k of a block, from the sums; `cut_only`: at nodes with cut rows."""
        if not self.affine:
            self._any_update(k, x_out, mode)
            return
        first = self.layout.slabs if cut_only else 0
        node_kernels.node_step[(self.layout.size // self.layout.C - first,)](
            *(self.w, self.w0, self.w_hat, x_out, self.sums, self.tau, self.label, self.tables.P, self.tables.q),
            *(self.table[k], first),
            **self.layout.shape,
            **_ways(mode),
            ONCE=self.layout.once,
            num_warps=self.warps,
        )

    def _any_update(self, k: int, x_out: Tensor, mode: Mode) -> None:
        """The same for losses whose update is no affine map, or a wide one."""
        dual, n, w = mode is Mode.DUAL, self.layout.n, self._rows(self.w)
        h = -self.sums if dual else w - self.tau[:, None] * self.sums
        h[self.at, :n] = self._updated(h[self.at, :n].double(), dual).to(self.dtype)
        x_out[:, : h.shape[1]] = h if dual else 2 * h - w
        if dual or not self.rows[k][3]:
            self.w_hat.copy_(self.layout.packed(h))
        else:
            self._move(self.layout.packed(h), self.rows[k])

    def _updated(self, v: Tensor, dual: bool) -> Tensor:
        if dual:
            assert isinstance(self.losses, DeviceQuadratics)
            return self.losses.minimiser(-v)
        if self.models is not None and self.model is not None:
            P, q = self.updates
            return q + by_node(P, v)
        self.latest = self.losses.prox(v, self.tau_M, self.latest)
        return self.latest

    def _edges(self, k: int, x: Tensor, x_out: Tensor, mode: Mode, nodes: bool = False, probe: bool = False) -> None:
        """A pass over whole rows."""
        kept = self.sums, self.sums_hat, self.moves, self.residual, self.travel
        if self.layout.slabs:
            self._launch(self.layout.slabs, 0, kept, k, x, x_out, mode, NODES=nodes, PROBE=probe)

    def _cut_edges(self, k: int, x: Tensor, mode: Mode, probe: bool = False) -> None:
        """A pass over the parts of cut rows, whose sums are added up."""
        layout, parts = self.layout, self.parts
        self._launch(len(layout.row_node) // layout.C, layout.slabs, parts, k, x, x, mode, PROBE=probe, CUT=True)
        whole = self.sums, self.sums_hat, self.moves, self.residual, self.travel
        for part, out in list(zip(parts, whole, strict=True))[: 5 if probe else 1]:
            join(layout, part, out)

    def _launch(
        self,
        grid: int,
        first: int,
        kept: Any,
        k: int,
        x: Tensor,
        x_out: Tensor,
        mode: Mode,
        NODES: bool = False,
        PROBE: bool = False,
        CUT: bool = False,
    ) -> None:
        layout = self.layout
        kernels.edge_step[(grid,)](
            *(layout.offset, layout.neighbour, layout.edge if layout.once else layout.neighbour),
            *(self.box, self.sigma, layout.row_node, self.u, self.u0, self.u_hat),
            *((self.u_next, self.u0_next) if layout.once else (self.u, self.u0)),
            *(x, x_out, self.w, self.w0, self.w_hat, self.tau, self.label, self.tables.P, self.tables.q),
            *kept,
            *(self.scalars, self.table[k], first),
            **layout.shape,
            **_ways(mode),
            NODES=NODES,
            PROBE=PROBE,
            CUT=CUT,
            ONCE=layout.once,
            AHEAD=layout.ahead,
            UN=layout.slots,
            KIND=self.problem.penalty.kernel,
            BOX=self.boxes,
            SIGMA=self.given,
            num_warps=self.warps,
        )


def _factors(k: int, mode: Mode) -> tuple[float, float, float]:
    """(a, b, g) of z ← a Tz + b z + g z₀ in iteration k since the last restart."""
    if mode is Mode.RELAXED:
        return RELAXATION, 1 - RELAXATION, 0.0
    if mode is Mode.DUAL:
        return 1 + k / (k + 3), 0.0, -k / (k + 3)
    share = (k + 1) / (k + 2)
    return 2 * share, -share, 1 - share


def _ways(mode: Mode) -> dict[str, bool]:
    return {"ANCHOR": mode is not Mode.RELAXED, "KEEP": mode is Mode.DUAL}
