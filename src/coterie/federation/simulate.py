"""A federation in one process: the same server, counted exchanges, and the requests to all sites solved as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from coterie.federation.dp_loop import federate_privately
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.loop import USUAL, Outcome, Rules, State, federate
from coterie.federation.messages import Introduction, ProxReply, ProxRequest
from coterie.federation.partition import Cut, Part, partition
from coterie.federation.site import Site
from coterie.problem import BoundProblem, EmpiricalGraph, Problem
from coterie.problem.arrays import Array
from coterie.problem.strengths import refuse_strengths

NUMBER = 8  # bytes


@dataclass(eq=False)
class Simulated:
    """Sites in this process, and the bytes that would have travelled."""

    sites: list[Site]
    privacy: Privacy | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    to_sites: int = 0
    to_server: int = 0

    def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, ProxReply]:
        replies = {k: self.sites[k].reply(request) for k, request in requests.items()}
        self._count(requests)
        self.to_server += sum(NUMBER * (a.w.size + 4) for a in replies.values())
        return replies

    def release(self, requests: Mapping[int, ProxRequest]) -> dict[int, Array]:
        assert self.privacy is not None
        released = {k: self.sites[k].release(q, self.privacy, self.rng) for k, q in requests.items()}
        self._count(requests)
        self.to_server += sum(NUMBER * w.size for w in released.values())
        return released

    def collect(self, requests: Mapping[int, ProxRequest]) -> dict[int, Array]:
        return {k: self.sites[k].weights(request) for k, request in requests.items()}

    def _count(self, requests: Mapping[int, ProxRequest]) -> None:
        self.to_sites += sum(NUMBER * (q.v.size + q.tau.size + 1) for q in requests.values())


@dataclass(eq=False)
class Union:
    """All sites of this process as one: without the cut edges they are one graph of parts that do not touch.

    One solve of that answers the requests to all, and the sum of their scalars is all that a certificate needs.
    """

    site: Site
    n_sites: int
    to_sites: int = 0
    to_server: int = 0

    def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, ProxReply]:
        (request,) = requests.values()
        reply = self.site.reply(request)
        self.to_sites += NUMBER * (request.v.size + request.tau.size + self.n_sites)
        self.to_server += NUMBER * (reply.w.size + 4 * self.n_sites)
        return {0: reply}

    def collect(self, requests: Mapping[int, ProxRequest]) -> dict[int, Array]:
        (request,) = requests.values()
        return {0: self.site.weights(request)}


@dataclass(frozen=True, eq=False)
class Simulation:
    """The outcome, the weights of all nodes, and what it took."""

    outcome: Outcome
    w: Array
    to_sites: int
    to_server: int


def simulate(
    problem: Problem, site_of: ArrayLike, rules: Rules = USUAL, privacy: Privacy | None = None, seed: int | None = None
) -> Simulation:
    """Solve a problem as the sites 0, 1, … would that host its nodes; with `privacy`, with noise drawn from `seed`."""
    refuse_strengths(problem)
    parts, cut = partition(problem.graph, site_of)
    if privacy is None:
        return _together(problem, parts, cut, rules)
    return _privately(problem, parts, cut, privacy, np.random.default_rng(seed))


def _together(problem: Problem, parts: Sequence[Part], cut: Cut, rules: Rules) -> Simulation:
    graph, S = problem.graph, len(parts)
    inner = np.concatenate([part.inner_edges for part in parts])
    without = EmpiricalGraph.from_edges(graph.edges[inner], graph.weights[inner], n_nodes=graph.n_nodes)
    union = Site(replace(problem, graph=without), cut.nodes)
    whole = Cut(cut.nodes, np.zeros_like(cut.part), cut.graph)
    said = [replace(union.introduce("all", cut.nodes), size=_typical_size(union.problem, parts))]
    transport = Union(union, S)
    state = State.first(whole, problem.penalty, problem.lam, problem.n_features, said, cut.part)
    outcome = federate(transport, state, rules)
    w = outcome.w[0]
    of_sites, history = (
        {k: w[part.own] for k, part in enumerate(parts)},
        [replace(r, present=S) for r in outcome.history],
    )
    outcome = replace(outcome, w=of_sites, history=tuple(history))
    return Simulation(outcome, w, transport.to_sites, transport.to_server)


def _typical_size(problem: BoundProblem, parts: Sequence[Part]) -> float:
    """The mean of what sites with labels would say of the size of their weights."""
    of = np.empty(problem.graph.n_nodes, dtype=np.int64)
    for k, part in enumerate(parts):
        of[part.own] = k
    labelled, group = np.unique(of[problem.M], return_inverse=True)
    return float((problem.f.pooled(group, len(labelled))[0] ** 2).sum() / max(len(labelled), 1))


def _privately(
    problem: Problem, parts: Sequence[Part], cut: Cut, privacy: Privacy, rng: np.random.Generator
) -> Simulation:
    transport = Simulated([Site(part.problem(problem), part.boundary) for part in parts], privacy, rng)
    introductions = [Introduction(str(k), cut.nodes[cut.of(k)], ()) for k in range(len(parts))]
    state = State.first(cut, problem.penalty, problem.lam, problem.n_features, introductions)
    outcome = federate_privately(transport, state, privacy)
    w = np.zeros((problem.graph.n_nodes, problem.n_features))
    for k, weights in outcome.w.items():
        w[parts[k].own] = weights
    return Simulation(outcome, w, transport.to_sites, transport.to_server)
