"""Sites that are slower than the others, and replies that come late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.federation.loop import Outcome, Rules, State, federate
from coterie.federation.messages import LATE, ProxRequest
from coterie.federation.partition import partition
from coterie.federation.simulate import Simulated
from coterie.federation.site import Site
from problems import instance

THREE = np.arange(12) // 4


class Slow(Simulated):
    """Site 0 takes `slow` ticks and the others one; it is waited for at first, and when it is `stale` rounds behind."""

    def __init__(self, sites: list[Site], slow: int, stale: int) -> None:
        super().__init__(sites)
        self.slow, self.stale, self.clock = slow, stale, 0
        self.rounds, self.at_work = stale, None  # type: ignore[var-annotated]

    def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, Any]:
        replies: dict[int, Any] = super().ask({k: request for k, request in requests.items() if k != 0})
        if self.at_work is None:
            self.at_work = (requests[0], self.clock + self.slow)
        asked, ready = self.at_work
        self.clock, self.rounds = self.clock + 1, self.rounds + 1
        if self.rounds >= self.stale:
            self.clock = max(self.clock, ready)
        if self.clock < ready:
            return {**replies, 0: LATE}
        reply = self.sites[0].reply(asked)
        self.at_work, self.rounds = None, 0
        return {**replies, 0: reply if asked is requests[0] else replace(reply, to=asked)}


def run(stale: int, **rules: Any) -> tuple[ct.Problem, Outcome, int]:
    problem = instance("few labelled", lam=0.05)
    parts, cut = partition(problem.graph, THREE)
    transport = Slow([Site(part.problem(problem), part.boundary) for part in parts], 20, stale)
    introductions = [site.introduce(str(k), cut.nodes[cut.of(k)]) for k, site in enumerate(transport.sites)]
    state = State.first(cut, problem.penalty, problem.lam, problem.n_features, introductions)
    return problem, federate(transport, state, Rules(**rules)), transport.clock


@pytest.mark.slow
def test_a_site_that_is_twenty_times_slower_is_neither_held_nor_left_out() -> None:
    problem, outcome, clock = run(stale=4)
    best = ct.solve(problem, 1e-9).objective
    assert outcome.gap <= 1e-6
    assert not outcome.held
    assert outcome.objective <= best * (1 + 1e-6)
    assert outcome.dual_bound <= best * (1 + 1e-8)
    assert clock < 20 * outcome.rounds  # the others did not wait for it in every round


# --- over Flower -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["introduce", "answer", "finish"])
def test_a_reply_to_an_earlier_asking_of_the_same_question_counts(tmp_path: Any, kind: str) -> None:
    pytest.importorskip("flwr", reason="needs the extra coterie[flower]")
    from coterie.datasets import stochastic_block_model
    from coterie.federation.project import write_sites
    from coterie.federation.server_app import run as run_server
    from flower_grid import CONFIG, InProcessGrid

    class Tardy(InProcessGrid):
        """Replies of north to this kind arrive after the question has been asked again, and the second never."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.kept: dict[str, Any] = {}

        def push_messages(self, messages: Iterable[Any]) -> Iterable[str]:
            ids = list(super().push_messages(messages))
            for number in ids:
                sent = self.sent[int(number)].metadata
                if sent.message_type == f"query.{kind}" and self.folders[sent.dst_node_id].name == "north":
                    again = bool(self.kept)
                    self.waiting.update(self.kept)
                    reply = self.waiting.pop(number)
                    self.kept = {} if again else {number: reply}
            return ids

    truth = ((2.0, 2.0), (-2.0, 2.0), (1.0, -1.0))
    network = stochastic_block_model((4, 4, 4), truth, p_in=0.8, p_out=0.05, labelled=8, noise=0.1, seed=1)
    names = ("east", "north", "west")
    write_sites(tmp_path, ct.Problem(network.graph, network.data, lam=0.01), THREE, names)
    places = {"graph": str(tmp_path / "graph.csv"), "out": str(tmp_path / "model"), "max-rounds": 3, "timeout": 1.5}
    config = {**CONFIG, **places}
    (tmp_path / "model").mkdir()
    outcome = run_server(Tardy([tmp_path / "sites" / name for name in names], config), config, tmp_path / "model")  # type: ignore[arg-type]
    assert not outcome.held
    assert np.isfinite(outcome.objective)  # so north has been heard
    assert set(outcome.w) == {0, 1, 2}


def test_who_is_waited_for() -> None:
    pytest.importorskip("flwr", reason="needs the extra coterie[flower]")
    from coterie.federation.transport.pending import STALE, Pending

    request = ProxRequest(np.zeros((1, 1)), np.ones(1), np.inf)
    pending, sites = Pending(), (0, 1, 2)
    for k in sites:
        pending.add(k, request, f"first to {k}")
    assert pending.take("first to 0", True) == (0, request)
    assert pending.take("first to 1", True) == (1, request)
    assert not pending.may_go_on({0, 1}, sites, 0.1)
    assert not pending.may_go_on({0, 1}, sites, 1e6)  # 2 has never answered
    pending.known.add(2)
    assert pending.may_go_on({0, 1}, sites, 1e6)
    for _ in range(STALE):
        assert pending.end(sites, True) == {2: LATE}
    assert not pending.may_go_on({0, 1}, sites, 1e6)  # too far behind
    pending.add(2, request, "second to 2")
    assert pending.take("first to 2", True) == (2, request)  # the earlier asking is as good
    assert pending.take("second to 2", True) is None
    pending.add(2, request, None)
    for _ in range(3):
        assert pending.end(sites, False) == {}
    assert pending.may_go_on({0, 1}, sites, 0.0)  # gone: nobody waits for it any more
