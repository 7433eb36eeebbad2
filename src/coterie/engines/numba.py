"""The default engine: one machine, compiled kernels, as many threads as pay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import LARGE, RELAXATION, Engine, Mode, Travel
from coterie.engines.bounded_rows import array_prover
from coterie.engines.models import Models
from coterie.engines.ordering import Ordering, are_far
from coterie.engines.pairs import PairsEngine
from coterie.engines.ranges import Ranges
from coterie.kernels import (
    ANCHORED,
    BLOCK,
    KEEPING,
    RELAXED,
    aligned,
    any_n,
    blocks,
    edges,
    is_wide,
    nodes,
    thin_model,
    vector_buffer,
)
from coterie.kernels.forms import knows_n
from coterie.kernels.interruption import check, pieces
from coterie.kernels.model import model_share
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses, Model, ThinModel
from coterie.problem.penalties import Penalty
from coterie.problem.penalties.by_column import ByColumn
from coterie.problem.reuse import reused
from coterie.problem.strengths import for_kernels

WIDE = 128  # weights of a node from which on one n × n matrix takes longer to make than it saves
LONG_ROWS = 4  # edges that begin at a node, on average, from which on it pays to hold its numbers in registers …
IN_TWO_BLOCKS = 3  # … and where these are more than one block of coordinates, and no more than two
WAYS = {Mode.RELAXED: RELAXED, Mode.HALPERN: ANCHORED, Mode.DUAL: KEEPING}

Factors = tuple[float, float, float]


class Primal(NamedTuple):
    """A node pass with primal updates inside: the kernel, room for vectors of each thread, and what else it takes."""

    kernel: Callable[..., None]
    rooms: Sequence[tuple[Any, ...]]
    arrays: tuple[Any, ...]


class NumbaEngine(Engine):
    """Kernels over z = (w, u) in a cache-friendly order, which stays invisible outside.

    Quadratic losses, and quadratic models of others, have their primal update inside the node pass; any other loss is
    called between two halves.
    An anchor u₀ is an anchor wherever it is, so large ones are kept in single precision (dual steps excepted).
    """

    alone: ClassVar[bool] = True  # whether nobody else has to be told what a pass has found
    shared: Model | ThinModel | None  # the model that primal updates are ready for, with the present steps

    def __init__(self, threads: int | None = None, single: bool = True) -> None:
        self.threads, self.single = threads, single  # whether kernels in single precision, too, are worth compiling
        self.u_hat: Array | None = None

    def prover(self, problem: BoundProblem) -> ArrayProver:
        return array_prover(problem, self.threads)

    def for_pairs(self) -> PairsEngine:
        return PairsEngine(self.threads)

    def rougher(self, problem: BoundProblem) -> Engine | None:
        from coterie.engines.single import SingleEngine

        self.was_rough = self.single and SingleEngine.suits(problem)
        return SingleEngine(self.threads) if self.was_rough else None

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        self.problem = problem
        self.__dict__.pop("inverse", None)  # of an earlier problem
        self.__dict__.pop("centre_by_node", None)
        V, n, E = problem.graph.n_nodes, problem.n_features, problem.graph.n_edges
        self.order = self._ordering(problem)
        self.kind = _branch(problem.penalty)
        self.losses, self.M = self._in_order(problem)
        self.labelled = slice(None) if np.array_equal(self.M, np.arange(V)) else self.M  # a slice does not copy
        self.place = np.full(V, -1)
        self.place[self.M] = np.arange(len(self.M))
        self.far = are_far(self.order.ends, V, n)
        self.strengths = None if knows_n() and problem.by_column is None else for_kernels(problem)
        self.blocks, self.edge_kernel = blocks(n), edges.kernel(self.kind, n, _long_rows(n) * V <= E)
        self.node_kernel = nodes.kernel()
        self._share_out(V, n)
        self.w, self.u = self._own(self.order.nodes_in(w)), self.order.edges_in(u)
        large = self.u.size > LARGE  # then there is no room for a copy
        self.u = self.u if large else self._own(self.u)
        self.w0, self.u0 = self.w.copy(), self.u.astype(np.float32 if large else self.u.dtype)
        self.w_hat, self.u_hat = self.w.copy(), None
        self.latest = self._given(self.w[self.M])  # ŵ at labelled nodes: the guess of the next primal update
        self.xs = aligned((self.T, V, 2, self.w.shape[1]), self.w.dtype)
        self.c = self.order.edges_in(problem.c)
        self.k = 0
        self._setup_prox(n)
        self._sum_up()

    def set_steps(self, tau: Array, sigma: Array) -> None:
        self.tau = self.order.nodes_in(tau)
        strength = self.c, self.order.edges_in(sigma)
        equal = all((values == values[:1]).all() for values in strength)
        self.strength = np.stack([values[:1] if equal else values for values in strength], axis=1)
        self.tau_M = self.tau[self.M]
        q = self.problem.f.quadratic
        self.shared = None
        if q is None:
            return
        if self.low_rank:
            t = self.tau_M[:, None] * q.h
            self.share2 = t / (1 + t)
        else:
            for first, last in pieces(len(self.M), q.h.shape[1] * q.V.shape[2] ** 2):
                part = slice(first, last)
                nodes.full_share(self.rooms[0][0], self.tau_M[part], q.h[part], q.V[part], self.share3[part])

    def advance(self, n_iter: int, mode: Mode) -> float:
        if mode is Mode.DUAL:
            self.u0 = self.u0.astype(np.float64, copy=False)
        if self.models is not None:
            self._model()
        iterate = self._iteration(mode)
        for _ in range(n_iter - 1):
            iterate(self._factors(mode))
            check()
        return self._probe_and_move(self._factors(mode), mode)

    def restart(self) -> Travel:
        if self.u_hat is not None:
            self.w, self.u[:] = self.w_hat.copy(), self.u_hat
        self._sum_up()
        dual = self._each_edge_range(lambda t, e0, e1: edges.dual_travel(e0, e1, self.strength, self.u, self.u0))
        self.w0, self.u0[:] = self.w.copy(), self.u
        self.k = 0
        primal, along = self._sums(float(self.travelled), float(sum(dual)))
        return Travel(float(np.sqrt(primal)), float(np.sqrt(along)))

    def point(self) -> tuple[Array, Array]:
        u_hat = self.u if self.u_hat is None else self.u_hat
        if u_hat is self.u or u_hat.size <= LARGE:
            u_hat = u_hat.copy()
        else:
            self.u_hat = None  # handed over: there is no room for another copy
        return self.order.nodes_out(self.w_hat), self.order.edges_out(u_hat)

    def _own(self, values: Array) -> Array:
        """A copy of vectors (·, n) as this engine keeps them."""
        own = aligned(values.shape)
        own[:] = values
        return own

    def _given(self, values: Array) -> Array:
        """Vectors of this engine as losses know them."""
        return values

    def _taken(self, values: Array) -> Array:
        """Vectors of losses as kernels take them; they may be the same."""
        return values

    def _ordering(self, problem: BoundProblem) -> Ordering:
        return reused(Ordering.of, problem.graph, problem.n_features)

    def _in_order(self, problem: BoundProblem) -> tuple[LocalLosses, Array]:
        """The losses, and where the nodes that have them are inside.

        Those that have models are taken in the inner order: what is read one after the other is read faster.
        """
        f, M = problem.f, self.order.rank[problem.M]
        known = f.smooth and f.quadratic is None and type(f).of_nodes is not LocalLosses.of_nodes
        if not known or (M[1:] > M[:-1]).all():
            return f, M
        by_rank = np.argsort(M)
        return f.of_nodes(by_rank), M[by_rank]

    def _sums(self, *numbers: float) -> tuple[float, ...]:
        """Sums over all nodes or edges, from those over the ones that are here."""
        return numbers

    def _share_out(self, V: int, n: int) -> None:
        """Cut nodes and edges into ranges, and make room for the vectors of each thread."""
        self.ranges = Ranges(self.threads, self.order.ends, V, n)
        self.T = self.ranges.T
        self.rooms = [(vector_buffer(n), vector_buffer(n)) for _ in range(self.T)]
        self.thin_kernel, room = thin_model.node_kernel(n)
        self.thin_rooms = [room() for _ in range(self.T)]

    def _setup_prox(self, n: int) -> None:
        f, q = self.losses, self.losses.quadratic
        self.model: Model | ThinModel | None = None
        self.shared = None
        self.quadratic = q is not None
        none2, none3 = np.empty((0, 0)), np.empty((0, 0, 0))
        self.low_rank, self.V, self.share2, self.share3, self.centre = False, none3, none2, none3, none2
        self.slope = none2
        self.models = None if self.quadratic or len(self.M) * n * n > LARGE else Models(f, thin=True)
        if q is not None:
            self.low_rank = 2 * q.V.shape[1] <= n or n > WIDE
            self.V, self.centre = np.ascontiguousarray(q.V), q.centre
            if not self.low_rank:
                self.share3 = np.empty((len(self.M), n, n))

    def _model(self) -> None:
        """Put quadratics in the place of the losses, around the present ŵ."""
        assert self.models is not None
        self.latest, before = self._given(self.w_hat[self.M]), self.model
        self.model = self.models.around(self.latest)
        self.quadratic = self.model is not None and not self._grounded
        if self.model is None:
            self.models = None if self.models.given_up else self.models
        elif self.model is not before:
            self.centre, self.slope = self._taken(self.models.centre), self._taken(self.model.slope)
        if self.model is not self.shared:
            self._share_model()

    @property
    def _grounded(self) -> bool:
        """Whether the primal updates of the model have no closed form."""
        return isinstance(self.model, Model) and self.model.ground is not None

    def _thin_room(self, model: ThinModel) -> tuple[Array, Array]:
        """Room for Y and D⁻¹ of a thin model."""
        return np.empty_like(model.Z), np.empty_like(model.slope)

    def _bear(self, stiffness: float) -> None:
        """Take models whose directions are so stiff, at most."""

    def _share_model(self) -> None:
        """What the primal updates of the model need of the present steps."""
        self.shared = self.model
        if self.model is None or self._grounded:
            return
        if isinstance(self.model, ThinModel):
            if self.V.shape[:2] != self.model.Z.shape[:2]:
                self.V, self.share2 = self._thin_room(self.model)
            self._bear(thin_model.thin_share(self.tau_M, self.model.h, self.model.Z, self.V, self.share2))
            return
        if self.share3.shape != self.model.H.shape:
            self.share3 = np.empty_like(self.model.H)
        model_share(self.rooms[0][0], self.tau_M, self.model.H, self.share3)

    def _factors(self, mode: Mode) -> Factors:
        """(a, b, g) of z ← a Tz + b z + g z₀ for the next iteration."""
        self.k += 1
        if mode is Mode.RELAXED:
            return RELAXATION, 1.0 - RELAXATION, 0.0
        if mode is Mode.DUAL:
            momentum = (self.k - 1) / (self.k + 2)
            return 1.0 + momentum, 0.0, -momentum
        share = self.k / (self.k + 1)
        return 2 * share, -share, 1 - share

    def _iteration(self, mode: Mode) -> Callable[[Factors], None]:
        """One iteration, as a function of its factors.

        Where one thread does it all, what its kernels take is looked up once for a block: on a thousand nodes that
        would take as long as the kernels themselves.
        """
        primal = self._primal(mode)
        if primal is None or not self.alone or self.T > 1 or len(self.u) == 0:
            return partial(self._pass_by_pass, mode=mode)
        kernel, (room,), arrays = primal
        node_pass = partial(kernel, *room, 0, len(self.w), *arrays, self.xs[0])
        edge_pass, before, after = self._dual(mode, slice(None), 0)

        def iterate(factors: Factors) -> None:
            node_pass(*factors, True)
            edge_pass(*before, *factors, *after)

        return iterate

    def _pass_by_pass(self, factors: Factors, mode: Mode) -> None:
        self._node_pass(factors, mode)
        self._edge_pass(factors, mode)

    def _primal(self, mode: Mode) -> Primal | None:
        """The node pass of quadratic losses and models; None for other losses, and for dual steps."""
        if mode is Mode.DUAL:
            return None
        if isinstance(self.model, ThinModel):
            thin = self.V, self.share2, self.centre, self.slope
            return Primal(self.thin_kernel, self.thin_rooms, (self.tau, self.place, *thin, self.w, self.w0))
        if self.quadratic:
            losses = self.low_rank, self.V, self.share2, self.share3, self.centre, self.slope
            return Primal(self.node_kernel, self.rooms, (self.tau, self.place, *losses, self.w, self.w0))
        return None

    def _node_pass(self, factors: Factors, mode: Mode, move: bool = True) -> None:
        if mode is Mode.DUAL:
            loss = self.inverse, self.centre_by_node
            self._each_node_range(lambda t, i0, i1, xs: nodes.dual_node_pass(self.rooms[t][0], i0, i1, *loss, xs))
            return
        primal, moving = self._primal(mode), (*factors, move)
        if primal is not None:
            kernel, rooms, arrays = primal
            self._each_node_range(lambda t, i0, i1, xs: kernel(*rooms[t], i0, i1, *arrays, xs, *moving))
            return
        self._each_node_range(
            lambda t, i0, i1, xs: nodes.node_gather(i0, i1, self.tau, self.w, xs, self.w_hat), spread=False
        )
        self.latest = self._update(self._given(self.w_hat[self.labelled]), self.latest)
        self.w_hat[self.labelled, : self.latest.shape[1]] = self.latest
        moved = self.w_hat, self.w, self.w0
        self._each_node_range(lambda t, i0, i1, xs: nodes.node_finish(i0, i1, *moved, xs, *moving), gather=False)

    def _update(self, v: Array, start: Array) -> Array:
        """The primal updates of losses, or of models, that are called between two halves of a node pass."""
        if isinstance(self.model, Model) and self.models is not None:
            return self.model.prox(self.models.centre, v, self.tau_M, start)
        update = self.losses.prox if self.models is None else self.losses.rough_prox
        return update(v, self.tau_M, start)

    def _edge_pass(self, factors: Factors, mode: Mode, probe: bool = False) -> list[Any]:
        if probe and self.u_hat is None:
            self.u_hat = np.empty_like(self.u)
        if len(self.u) == 0:
            return [0.0]

        def work(t: int, first: int, last: int) -> float:
            kernel, before, after = self._dual(mode, slice(first, last), t, probe)
            return kernel(*before, *factors, *after)

        return self._each_edge_range(work)

    def _dual(
        self, mode: Mode, part: slice, t: int, probe: bool = False
    ) -> tuple[Callable[..., float], tuple[Any, ...], tuple[Any, ...]]:
        """The edge pass over a part of the edges, by thread t, and what it takes before the factors and after them."""
        equal, u_hat = len(self.strength) == 1, self.u if self.u_hat is None else self.u_hat
        strength = self.strength if equal else self.strength[part]
        here, after = (self.order.ends[part], strength, self.xs[t], self.u[part], self.u0[part]), (self.w, u_hat[part])
        if self.strengths is not None:
            return any_n.edge_pass, (self.strengths, (self.kind, WAYS[mode], probe), *here), after
        plan = edges.plan(self.kind, WAYS[mode], probe=probe, equal=equal, far=self.far)
        return self.edge_kernel, (self.blocks, plan, *here), after

    def _probe_and_move(self, factors: Factors, mode: Mode) -> float:
        """One iteration that keeps Tz and its residual."""
        self._node_pass(factors, mode, move=False)
        if mode is Mode.DUAL:
            for t, (first, last) in enumerate(pairwise(self.ranges.homes)):
                self.w[first:last] = self.xs[t, first:last, 0]
        dual = self._edge_pass(factors, mode, probe=True)
        arrays, moving = (self.tau, self.w_hat, self.w, self.w0), (*factors, mode is not Mode.DUAL)
        sums = self._each_node_range(
            lambda t, i0, i1, xs: nodes.node_probe(i0, i1, *arrays, xs, *moving), gather=False, spread=False
        )
        primal, self.travelled = np.sum(sums, axis=0)
        return float(np.sqrt(max(*self._sums(float(primal + np.sum(dual))), 0.0)))

    def _sum_up(self) -> None:
        """s ← Dᵀu."""
        self.xs[:, :, 1] = 0.0
        self._each_edge_range(lambda t, e0, e1: edges.edge_sums(e0, e1, self.order.ends, self.xs[t], self.u))

    @cached_property
    def inverse(self) -> Array:
        """H_i⁻¹ of every node, in the inner order, for dual steps."""
        q = self.problem.f.quadratic
        assert q is not None
        return self._by_node(np.matmul(q.V.transpose(0, 2, 1) / q.h[:, None, :], q.V))

    @cached_property
    def centre_by_node(self) -> Array:
        """ŵ_i of every node, in the inner order."""
        return self._by_node(self.centre)

    def _by_node(self, values: Array) -> Array:
        """Values of labelled nodes, which are all that have a loss here, in the inner order."""
        inside = np.empty_like(values)
        inside[self.M] = values
        return inside

    def _each_node_range(self, work: Callable[..., Any], gather: bool = True, spread: bool = True) -> list[Any]:
        return self.ranges.each_of_nodes(self.xs, work, gather, spread)

    def _each_edge_range(self, work: Callable[..., Any]) -> list[Any]:
        return self.ranges.each_of_edges(work)


def _long_rows(n: int) -> int:
    """How many edges of a node make a long row."""
    return IN_TWO_BLOCKS if is_wide(n) and n <= 2 * BLOCK else LONG_ROWS


def _branch(penalty: Penalty) -> int:
    """The number of the penalty's compiled branch."""
    if penalty.edge_kernel is None:
        what = "these strengths of columns have" if isinstance(penalty, ByColumn) else f"{type(penalty).__name__} has"
        raise TypeError(f'{what} no compiled form; solve it with engine="numpy" or "auto"')
    return penalty.edge_kernel
