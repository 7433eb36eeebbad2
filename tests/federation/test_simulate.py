from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.federation.loop import FederationError, Outcome, Rules, State, federate
from coterie.federation.messages import ProxReply, ProxRequest
from coterie.federation.partition import partition
from coterie.federation.simulate import Simulated, simulate
from coterie.federation.site import Site
from problems import EVERY_PENALTY, FIRST_LOSSES, KINDS, instance, oracle

THREE = np.arange(12) // 4


def check(problem: ct.Problem, site_of: np.ndarray, tol: float = 1e-6) -> Outcome:
    """The federation reaches the optimum, and never proves what is false."""
    run = simulate(problem, site_of, Rules(tol))
    best = ct.solve(problem, 1e-9)
    outcome = run.outcome
    assert outcome.gap <= tol
    assert problem.objective(run.w) == pytest.approx(outcome.objective, rel=1e-9, abs=1e-12)
    assert outcome.objective <= best.objective * (1 + tol) + 1e-12
    assert outcome.dual_bound <= best.objective * (1 + 1e-8) + 1e-12
    return outcome


@pytest.mark.parametrize("kind", KINDS)
def test_same_optimum_as_solve(kind: str) -> None:
    check(instance(kind), np.arange(12) % 3)


ELASTIC_NETS = (ct.Logistic(0.1, l1=0.02), ct.Quantile(0.1, l1=0.1))
SOME = [*FIRST_LOSSES, ct.Logistic(ridge=0.1), ct.Lasso(0.2, unpenalised=(0,)), *ELASTIC_NETS]


@pytest.mark.slow
@pytest.mark.parametrize("loss", SOME, ids=str)
@pytest.mark.parametrize("kind", ["all labelled", "few labelled"])
def test_same_optimum_for_every_loss(kind: str, loss: ct.Loss) -> None:
    outcome = check(instance(kind, loss), THREE)
    assert outcome.unconditional


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=str)
@pytest.mark.parametrize("sites", [1, 3, 12])
def test_same_optimum_for_every_penalty_and_number_of_sites(penalty: ct.Penalty, sites: int) -> None:
    outcome = check(instance("few labelled", penalty=penalty), np.arange(12) * sites // 12)
    assert outcome.unconditional


@pytest.mark.parametrize("lam", [0.0, 1e-6, 1.0, 1e3])
def test_extreme_strengths(lam: float) -> None:
    check(instance(lam=lam), THREE)


def test_never_below_what_the_oracle_finds() -> None:
    problem = instance("few labelled")
    assert simulate(problem, THREE).outcome.dual_bound <= oracle(problem).value


def test_a_site_without_labels_follows_its_neighbours() -> None:
    problem = instance("few labelled")
    of = np.where(np.isin(np.arange(12), problem.M), 0, 1)
    check(problem, of)


def test_it_says_how_far_it_got_when_rounds_run_out() -> None:
    outcome = simulate(instance(), THREE, Rules(max_rounds=3)).outcome
    assert outcome.status is ct.Status.ITERATION_LIMIT
    assert outcome.rounds == 3
    assert outcome.gap > 1e-6


def test_only_boundary_weights_travel() -> None:
    problem = instance()
    run = simulate(problem, THREE)
    _, cut = partition(problem.graph, THREE)
    numbers = len(cut.nodes) * problem.n_features + 4 * 3
    assert run.to_server == 8 * numbers * run.outcome.rounds


# --- sites that do not answer ---------------------------------------------------------------------------------


class Unreliable(Simulated):
    """`away` says, for a round and a site, whether the site stays silent."""

    def __init__(self, sites: list[Site], away: Any) -> None:
        super().__init__(sites)
        self.away, self.round = away, 0

    def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, ProxReply]:
        self.round += 1
        return {k: a for k, a in super().ask(requests).items() if not self.away(self.round, k)}


def run_with(problem: ct.Problem, away: Any, **options: Any) -> tuple[Outcome, np.ndarray]:
    parts, cut = partition(problem.graph, THREE)
    transport = Unreliable([Site(part.problem(problem), part.boundary) for part in parts], away)
    introductions = [site.introduce(str(k), cut.nodes[cut.of(k)]) for k, site in enumerate(transport.sites)]
    state = State.first(cut, problem.penalty, problem.lam, problem.n_features, introductions)
    outcome = federate(transport, state, Rules(**options))
    w = np.zeros((12, problem.n_features))
    for k, weights in outcome.w.items():
        w[parts[k].own] = weights
    return outcome, w


def test_sites_that_miss_some_rounds_change_nothing() -> None:
    problem = instance()
    outcome, w = run_with(problem, lambda r, k: r > 1 and (r + k) % 4 == 0)
    assert outcome.gap <= 1e-6
    assert not outcome.held
    assert problem.objective(w) <= ct.solve(problem, 1e-9).objective * (1 + 1e-6)


def test_a_site_that_stays_away_keeps_its_weights_and_the_rest_go_on() -> None:
    problem = instance()
    outcome, w = run_with(problem, lambda r, k: r > 2 and k == 1)
    assert outcome.held == ("1",)
    assert outcome.gap <= 1e-6
    parts, cut = partition(problem.graph, THREE)
    assert set(outcome.w) == {0, 2}
    # the certificate covers the others, with the boundary weights of site 1 as they are
    kept = outcome.boundary[cut.of(1)]
    inside = sum(parts[k].problem(problem).objective(w[parts[k].own]) for k in (0, 2))
    w[parts[1].own[parts[1].boundary]] = kept
    across = problem.penalty.value(cut.graph.D @ w[cut.nodes], problem.lam * cut.graph.weights)
    lower = _best_with_fixed(problem, parts, cut, kept)
    assert inside + across == pytest.approx(lower, rel=2e-6)


def _best_with_fixed(problem: ct.Problem, parts: Any, cut: Any, kept: np.ndarray) -> float:
    """The optimum of sites 0 and 2 while the boundary of site 1 is pinned, by very stiff proximal terms."""
    from coterie.federation.proximal_losses import with_proximal_terms

    own = parts[1].own[parts[1].boundary]
    rows = ~np.isin(problem.data.nodes, parts[1].own)
    y = np.where(rows, problem.data.y, np.nan)
    data = ct.LocalDatasets.from_rows(problem.data.X, y, problem.data.nodes, n_nodes=12)
    without = np.setdiff1d(np.arange(problem.graph.n_edges), parts[1].inner_edges)
    graph = ct.EmpiricalGraph.from_edges(problem.graph.edges[without], problem.graph.weights[without], n_nodes=12)
    stiff = np.full(len(own), 1e7)
    pinned = with_proximal_terms(
        ct.Problem(graph, data, lam=problem.lam).bound, own, rho=stiff, v=kept, force=np.zeros_like(kept)
    )
    return ct.solve(pinned, 1e-9).objective


def test_a_site_that_comes_back_takes_part_again() -> None:
    problem = instance()
    outcome, w = run_with(problem, lambda r, k: k == 2 and 2 < r < 9, tol=1e-7)
    assert not outcome.held
    assert outcome.gap <= 1e-7
    assert problem.objective(w) <= ct.solve(problem, 1e-9).objective * (1 + 1e-7)


def test_a_site_that_never_answers_is_named() -> None:
    with pytest.raises(FederationError, match="site '1' has never answered"):
        run_with(instance(), lambda r, k: k == 1)


# --- sites that answer nonsense -------------------------------------------------------------------------------


class Lying(Simulated):
    """Site 1 answers nonsense from round 4 on."""

    def __init__(self, sites: list[Site], **lie: Any) -> None:
        super().__init__(sites)
        self.lie, self.round = lie, 0

    def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, ProxReply]:
        self.round += 1
        replies = super().ask(requests)
        if self.round >= 4:
            replies[1] = replace(replies[1], **self.lie)
        return replies


LIES = [
    ({"w": np.full((3, 3), np.nan)}, "weights of shape|not finite"),
    ({"w": np.zeros((2, 2))}, "weights of shape"),
    ({"bound": np.nan}, "a bound of nan"),
    ({"left": -1.0}, "left = -1.0"),
]


@pytest.mark.parametrize(("lie", "message"), LIES)
def test_nonsense_is_named_and_ends_the_run_or_is_set_aside(lie: dict[str, Any], message: str) -> None:
    problem = instance()
    parts, cut = partition(problem.graph, THREE)
    sites = [Site(part.problem(problem), part.boundary) for part in parts]
    introductions = [site.introduce("abc"[k], cut.nodes[cut.of(k)]) for k, site in enumerate(sites)]

    def state() -> State:
        return State.first(cut, problem.penalty, problem.lam, problem.n_features, introductions)

    with pytest.raises(FederationError, match=f"site 'b' answered with ({message})"):
        federate(Lying(sites, **lie), state())
    outcome = federate(Lying(sites, **lie), state(), Rules(set_aside=True))
    assert outcome.held == ("b",)
    assert outcome.gap <= 1e-6
    assert "site 'b'" in outcome.complaints[0]
