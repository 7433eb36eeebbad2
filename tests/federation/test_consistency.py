"""Sites that lie are named, and sites that do not are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.federation.loop import FederationError, Rules, State, federate
from coterie.federation.messages import Introduction, ProxReply, ProxRequest
from coterie.federation.partition import partition
from coterie.federation.simulate import Simulated, simulate
from coterie.federation.site import Site
from problems import instance

THREE = np.arange(12) // 4
Lie = Callable[[int, ProxReply, list[ProxReply]], ProxReply]


class Lying(Simulated):
    """Site 1 tells a lie: of the round, its true reply, and those before."""

    def __init__(self, sites: list[Site], lie: Lie) -> None:
        super().__init__(sites)
        self.lie, self.past = lie, []  # type: ignore[var-annotated]

    def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, ProxReply]:
        replies = super().ask(requests)
        self.past.append(replies[1])
        replies[1] = self.lie(len(self.past), replies[1], self.past)
        return replies


def nothing(number: int, reply: ProxReply, past: list[ProxReply]) -> ProxReply:
    return reply


def run(lie: Lie = nothing, said: Callable[[Introduction], Introduction] = lambda one: one, **rules: Any) -> Any:
    problem = instance("few labelled", lam=0.05)
    parts, cut = partition(problem.graph, THREE)
    sites = [Site(part.problem(problem), part.boundary) for part in parts]
    introductions = [site.introduce("abc"[k], cut.nodes[cut.of(k)]) for k, site in enumerate(sites)]
    introductions[1] = said(introductions[1])
    state = State.first(cut, problem.penalty, problem.lam, problem.n_features, introductions)
    return federate(Lying(sites, lie), state, Rules(**rules))


def noisy(number: int, reply: ProxReply, past: list[ProxReply]) -> ProxReply:
    return replace(reply, w=reply.w + 1e-3 * np.random.default_rng(number).standard_normal(reply.w.shape))


LIES: dict[str, Lie] = {
    "a higher bound": lambda k, reply, past: replace(reply, bound=reply.bound + 1e-4),
    "a lower value": lambda k, reply, past: replace(reply, value=reply.value - 1e-4),
    "an old answer": lambda k, reply, past: past[min(1, len(past) - 1)],
    "noise on weights": noisy,
    "a bound that grows": lambda k, reply, past: replace(reply, bound=reply.bound + k, value=reply.value + k),
    "a negative loss": lambda k, reply, past: replace(reply, bound=reply.bound - 1e3, value=reply.value - 1e3),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_site_that_contradicts_itself_is_named(lie: Lie) -> None:
    with pytest.raises(FederationError, match="site 'b' answered with an answer that contradicts its others"):
        run(lie)


@pytest.mark.parametrize("size", [1e8, 1e100, 1e200, -1.7e308])
def test_whoever_sends_the_others_on_a_journey_is_named(size: float) -> None:
    """Otherwise honest sites fail, and are named, at questions about weights that nobody can have."""
    with pytest.raises(FederationError, match="site 'b' answered with weights"):
        run(lambda k, reply, past: replace(reply, w=np.full_like(reply.w, size)))


@pytest.mark.parametrize("size", [1.7e308, -1.7e308])
def test_numbers_whose_sums_are_none_prove_nothing(size: float) -> None:
    with pytest.raises(FederationError, match="site 'b' answered with a value of"):
        run(lambda k, reply, past: replace(reply, value=size, bound=size))


@pytest.mark.parametrize("loss", [1e4, 1e100, 1e140])
def test_one_site_does_not_make_all_gaps_look_small(loss: float) -> None:
    outcome = run(said=lambda one: replace(one, scale=loss, constant=loss))
    assert outcome.gap <= 1e-6
    assert outcome.objective - outcome.dual_bound <= 1e-6 * outcome.objective


def test_a_site_that_contradicts_itself_can_be_set_aside() -> None:
    def from_round_4(k: int, reply: ProxReply, past: list[ProxReply]) -> ProxReply:
        return replace(reply, bound=reply.bound + 1e-4) if k >= 4 else reply

    outcome = run(from_round_4, set_aside=True)
    assert outcome.held == ("b",)
    assert outcome.gap <= 1e-6
    assert "contradicts its others" in outcome.complaints[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, constant=1e300),
        lambda one: replace(one, scale=one.scale * 1e-3),
        lambda one: replace(one, floor=1e3),
    ],
    ids=["constant", "scale", "floor"],
)
def test_an_introduction_that_cannot_be_is_named(change: Any) -> None:
    with pytest.raises(FederationError, match="site 'b' answered with an answer that contradicts"):
        run(said=change)


def test_a_bound_above_the_objective_ends_the_run_whoever_caused_it() -> None:
    problem = instance("few labelled", lam=0.05)
    parts, cut = partition(problem.graph, THREE)
    sites = [Site(part.problem(problem), part.boundary) for part in parts]
    introductions = [site.introduce("abc"[k], cut.nodes[cut.of(k)]) for k, site in enumerate(sites)]
    state = State.first(cut, problem.penalty, problem.lam, problem.n_features, introductions)

    class Conspiring(Simulated):
        def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, ProxReply]:
            if len(state.history) == 8:
                state.certificate.objective = state.certificate.dual_bound - 1e-3  # as if somebody had reached that
            return super().ask(requests)

    with pytest.raises(FederationError, match="at least one does not answer truthfully"):
        federate(Conspiring(sites), state, Rules(tol=0.0, max_rounds=20))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(0.1), ct.Logistic(ridge=0.1)], ids=str)
def test_nobody_honest_is_accused(loss: ct.Loss, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(9) for j in range(i + 1, 9) if rng.random() < 0.4] + [(0, 8)])
    graph = ct.EmpiricalGraph.from_edges(np.unique(pairs, axis=0), n_nodes=9)
    nodes = np.repeat(np.arange(9), 4)
    X = rng.standard_normal((36, 2)) * [1.0, 30.0]
    y = rng.standard_normal(36) if not isinstance(loss, ct.Logistic) else rng.integers(0, 2, 36).astype(float)
    y[np.isin(nodes, rng.choice(9, 3, replace=False))] = np.nan
    problem = ct.Problem(
        graph, ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=9), loss, lam=10.0 ** rng.uniform(-3, 0)
    )
    assert np.isfinite(simulate(problem, np.arange(9) // 3, Rules(max_rounds=25)).outcome.objective)
