"""The bars: rounds to relative error 1e-4 at most 12, to 1e-6 at most 40."""

from __future__ import annotations

import pytest

import coterie as ct
from benchmarks.federation import SETTINGS, first, network, rounds_of_algorithm1
from coterie.federation.partition import partition
from coterie.federation.simulate import simulate


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", list(SETTINGS)[1::2])
def test_rounds(name: str) -> None:
    problem, site = network(*SETTINGS[name], seed=1)
    _, cut = partition(problem.graph, site)
    assert cut.graph.n_edges == 40
    optimum = ct.solve(problem, 1e-10).objective
    history = simulate(problem, site).outcome.history
    errors = [one.objective / optimum - 1 for one in history]
    assert first(errors, 1e-4) <= 12
    assert first(errors, 1e-6) <= 40
    assert first([one.gap for one in history], 1e-6) <= 40


def test_algorithm1_is_counted_beside_it() -> None:
    problem, _ = network(*SETTINGS["λ = 0.05"], seed=1)
    rounds = rounds_of_algorithm1(problem, ct.solve(problem, 1e-10).objective)
    assert 40 < rounds[2] < 20_000
