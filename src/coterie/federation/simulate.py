"""A federation in one process: the same sites, the same server, counted exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from coterie.federation.dp_loop import federate_privately
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.loop import USUAL, Outcome, Rules, State, federate
from coterie.federation.messages import Introduction, ProxReply, ProxRequest
from coterie.federation.partition import partition
from coterie.federation.site import Site
from coterie.problem import Problem
from coterie.problem.arrays import Array

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
    parts, cut = partition(problem.graph, site_of)
    sites = [Site(part.problem(problem), part.boundary) for part in parts]
    transport = Simulated(sites, privacy, np.random.default_rng(seed))
    hosts = [cut.nodes[cut.of(k)] for k in range(len(sites))]
    n = problem.n_features
    if privacy is None:
        introductions = [site.introduce(str(k), hosts[k]) for k, site in enumerate(sites)]
        outcome = federate(transport, State.first(cut, problem.penalty, problem.lam, n, introductions), rules)
    else:
        introductions = [Introduction(str(k), hosts[k], ()) for k in range(len(sites))]
        state = State.first(cut, problem.penalty, problem.lam, n, introductions)
        outcome = federate_privately(transport, state, privacy)
    w = np.zeros((problem.graph.n_nodes, n))
    for k, weights in outcome.w.items():
        w[parts[k].own] = weights
    return Simulation(outcome, w, transport.to_sites, transport.to_server)
