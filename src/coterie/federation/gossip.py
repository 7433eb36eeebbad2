"""One site's part of an iteration without a server: the paper's message passing, with whole sites for nodes.

The primal-dual operator T of `coordinator.py`, as it stands. Site s asks itself for ŵ, the proximal map of its own part
F_s at v = w − τDᵀu, tells the neighbours at the other end of its cut edges ŵ and x = 2ŵ − w, and has all that it
needs for the duals of these edges:

    û = dual step of u + σDx,        w ← w + ρ(ŵ − w),        u ← u + ρ(û − u).

Both ends of an edge compute its dual. The one whose site has the smaller name *owns* it and says what it is in every
message; the other takes that, so that rounding on two machines never makes two duals out of one.

The certificate is that of `federated_certificate.py`; all of it are sums over sites, and two maxima.

The weights of a site that is away stay as they are: the far ends of its edges are numbers, and the end that is there
owns them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.engines.arrays import SUM_ERROR
from coterie.engines.base import RELAXATION
from coterie.federation.messages import ProxReply, ProxRequest
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.penalties import Penalty
from coterie.solver.balance import Steps

Edge = tuple[str, str, str, float]  # own node, site of the other, the other node, weight


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The cut edges of one site, in an order that both ends of each agree on: that of (site, node).

    Attributes
    ----------
    name : str
    nodes : tuple of (str, str)
        Sites and nodes: the site's own boundary and all that its cut edges lead to.
    graph : EmpiricalGraph
        The cut edges; its node k is nodes[k].
    """

    name: str
    nodes: tuple[tuple[str, str], ...]
    graph: EmpiricalGraph

    @classmethod
    def of(cls, name: str, edges: Sequence[Edge]) -> Neighbourhood:
        """Order the edges that leave a site."""
        ends = {(name, own) for own, *_ in edges} | {(site, other) for _, site, other, _ in edges}
        nodes = tuple(sorted(ends))
        number = {node: k for k, node in enumerate(nodes)}
        pairs = [(number[name, own], number[site, other]) for own, site, other, _ in edges]
        graph = EmpiricalGraph.from_edges(pairs, [weight for *_, weight in edges], n_nodes=len(nodes))
        return cls(name, nodes, graph)

    @cached_property
    def sites(self) -> Array:
        """The site of each node."""
        return np.array([site for site, _ in self.nodes])

    @cached_property
    def own(self) -> NDArray[np.int64]:
        """The site's own boundary nodes."""
        return np.flatnonzero(self.sites == self.name)

    @property
    def neighbours(self) -> list[str]:
        return sorted(set(self.sites.tolist()) - {self.name})

    @cached_property
    def owned(self) -> NDArray[np.bool_]:
        """Which edges this site owns: those that lead to larger names."""
        return np.asarray(self.sites[self.graph.edges[:, 0]] == self.name)

    def shared(self, neighbour: str) -> NDArray[np.bool_]:
        """Which edges lead to a neighbour."""
        return np.asarray((self.sites[self.graph.edges] == neighbour).any(axis=1))

    def rows(self, neighbour: str) -> NDArray[np.int64]:
        """Places among the own boundary nodes of those with an edge to a neighbour."""
        ends = np.unique(self.graph.edges[self.shared(neighbour)])
        return np.searchsorted(self.own, ends[self.sites[ends] == self.name])


@dataclass(frozen=True, eq=False)
class Gossip:
    """What one site knows of all: its cut edges and the penalty on them; the state is a :class:`Place`.

    `held` are the neighbours that are away.
    """

    hood: Neighbourhood
    penalty: Penalty
    c: Array
    steps: Steps
    held: tuple[str, ...] = ()

    @classmethod
    def of(cls, hood: Neighbourhood, penalty: Penalty, lam: float, mean: float, held: tuple[str, ...] = ()) -> Gossip:
        """Steps for these edges; `mean` is that of λA_e over the cut edges of all sites."""
        c = lam * hood.graph.weights
        s = np.sqrt(c / mean) if mean > 0 else np.ones(len(c))
        d = np.bincount(hood.graph.edges.ravel(), weights=np.repeat(s, 2), minlength=len(hood.nodes))
        return cls(hood, penalty, c, Steps(s, d), held)

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """The nodes of neighbours that are away."""
        return np.isin(self.hood.sites, self.held)

    @cached_property
    def ours(self) -> NDArray[np.bool_]:
        """The edges that count here: those that this site owns, and those to sites that are away."""
        return self.hood.owned | self.kept[self.hood.graph.edges].any(axis=1)

    @property
    def tau(self) -> Array:
        """The steps of the own boundary nodes."""
        return self.steps.tau[self.hood.own]

    def request(self, place: Place, level: float) -> ProxRequest:
        """What the site asks itself."""
        flow = (self.hood.graph.D.T @ place.u)[self.hood.own]
        return ProxRequest(place.w - self.tau[:, None] * flow, self.tau, level)

    def message(self, place: Place, w_hat: Array, neighbour: str) -> dict[str, Array]:
        """What a neighbour is told: ŵ and x at the nodes that have an edge to it, and duals of edges that are ours."""
        rows, ours = self.hood.rows(neighbour), self.hood.owned & self.hood.shared(neighbour)
        x = 2 * w_hat - place.w
        u = self.penalty.into_domain(place.u, self.c)
        return {"w": w_hat[rows], "x": x[rows], "u": place.u[ours], "inside": u[ours]}

    def shapes(self, neighbour: str, n: int) -> dict[str, tuple[int, int]]:
        """The shapes of what a neighbour says."""
        theirs = int((self.hood.sites == neighbour).sum())
        duals = int((self.hood.shared(neighbour) & ~self.hood.owned).sum())
        return {"w": (theirs, n), "x": (theirs, n), "u": (duals, n), "inside": (duals, n)}

    def meet(self, place: Place, w_hat: Array, said: Mapping[str, Mapping[str, Array]], far: Array) -> Meeting:
        """Put together what all neighbours have said, and what this site has; `far` are weights of those away."""
        hood = self.hood
        w = np.where(self.kept[:, None], far, 0.0)
        x, u, inside = w.copy(), place.u.copy(), self.penalty.into_domain(place.u, self.c)
        w[hood.own], x[hood.own] = w_hat, 2 * w_hat - place.w
        for neighbour, arrays in said.items():
            at, theirs = hood.sites == neighbour, hood.shared(neighbour) & ~hood.owned
            w[at], x[at] = arrays["w"], arrays["x"]
            u[theirs], inside[theirs] = arrays["u"], arrays["inside"]
        return Meeting(w, x, u, inside)

    def step(self, place: Place, w_hat: Array, met: Meeting) -> Place:
        """The next place."""
        sigma = self.steps.sigma
        u_hat = self.penalty.dual_step(met.u + sigma[:, None] * (self.hood.graph.D @ met.x), self.c, sigma)
        return Place(place.w + RELAXATION * (w_hat - place.w), met.u + RELAXATION * (u_hat - met.u))

    def evidence(self, request: ProxRequest, reply: ProxReply, met: Meeting) -> tuple[Array, Array]:
        """What this site adds to the certificate: terms of sums, and of maxima; `verdict` says what they are."""
        hood, ours, kept = self.hood, self.ours, self.kept
        D, u = hood.graph.D, met.inside
        force = (request.v - reply.w) / request.tau[:, None]
        fixed = (D.T @ u)[kept] * met.w[kept]
        rest = force + (D.T @ u)[hood.own]
        size = np.abs(force) + (abs(D).T @ np.abs(u))[hood.own]
        edges = self.penalty.value((D @ met.w)[ours], self.c[ours])
        conjugate = self.penalty.conjugate(u[ours], self.c[ours])
        charge = reply.left + float(np.abs(rest).sum() + SUM_ERROR * size.sum())
        sizes = abs(reply.bound) + abs(conjugate) + float(np.abs(fixed).sum())
        largest = max(float(np.abs(w).max(initial=0.0)) for w in (reply.w, met.w[kept]))
        proven = reply.bound - conjugate + float(fixed.sum())
        return np.array([reply.value + edges, proven, charge, sizes]), np.array([reply.reach, largest])

    def travel(self, before: Place, after: Place) -> Array:
        """How far the weights and the owned duals have gone, squared."""
        ours, sigma = self.ours, self.steps.sigma[:, None]
        primal = ((after.w - before.w) ** 2 / self.tau[:, None]).sum()
        return np.array([primal, ((after.u - before.u) ** 2 / sigma)[ours].sum()])


@dataclass(frozen=True, eq=False)
class Place:
    """Where a site is: w of its own boundary nodes, u of all its cut edges."""

    w: Array
    u: Array


@dataclass(frozen=True, eq=False)
class Meeting:
    """ŵ and x at both ends of all cut edges of a site; their duals, and these inside their domain, as owners say."""

    w: Array
    x: Array
    u: Array
    inside: Array
