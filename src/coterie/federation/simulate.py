"""A federation in one process: the same sites, the same server, counted exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coterie.engines.exchange import Answer, Question
from coterie.engines.partition import partition
from coterie.federation.loop import USUAL, Outcome, Rules, State, federate
from coterie.federation.site import Site
from coterie.problem import Problem
from coterie.problem.arrays import Array

NUMBER = 8  # bytes


@dataclass(eq=False)
class Simulated:
    """Sites in this process, and the bytes that would have travelled."""

    sites: list[Site]
    to_sites: int = 0
    to_server: int = 0

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Answer]:
        answers = {k: self.sites[k].answer(question) for k, question in questions.items()}
        self.to_sites += sum(NUMBER * (q.v.size + q.tau.size + 1) for q in questions.values())
        self.to_server += sum(NUMBER * (a.w.size + 4) for a in answers.values())
        return answers

    def collect(self, questions: Mapping[int, Question]) -> dict[int, Array]:
        return {k: self.sites[k].weights(question) for k, question in questions.items()}


@dataclass(frozen=True, eq=False)
class Simulation:
    """The outcome, the weights of all nodes, and what it took."""

    outcome: Outcome
    w: Array
    to_sites: int
    to_server: int


def simulate(problem: Problem, site_of: ArrayLike, rules: Rules = USUAL) -> Simulation:
    """Solve a problem as the sites 0, 1, … would that host its nodes."""
    parts, cut = partition(problem.graph, site_of)
    transport = Simulated([Site(part.problem(problem), part.boundary) for part in parts])
    introductions = [site.introduce(str(k), cut.nodes[cut.of(k)]) for k, site in enumerate(transport.sites)]
    n = problem.n_features
    state = State.first(cut, problem.penalty, problem.lam, n, introductions)
    outcome = federate(transport, state, rules)
    w = np.zeros((problem.graph.n_nodes, n))
    for k, weights in outcome.w.items():
        w[parts[k].own] = weights
    return Simulation(outcome, w, transport.to_sites, transport.to_server)
