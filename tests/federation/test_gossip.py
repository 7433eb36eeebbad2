"""Sites without a server: in threads, over gRPC in this process, and once as processes of their own."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc", reason="needs the extra coterie[flower]")

import coterie as ct
from coterie.datasets import stochastic_block_model
from coterie.federation.fork_server import FORKS
from coterie.federation.gossip import Edge, Neighbourhood, Place
from coterie.federation.gossip_certificate import Verdict
from coterie.federation.gossip_files import MEMORY, GossipFolder
from coterie.federation.gossip_life import keep
from coterie.federation.gossip_project import LocalGossip, write_gossip
from coterie.federation.gossip_run import GossipRun, Progress, without_evidence
from coterie.federation.loop import FederationError
from coterie.federation.messages import ProxReply, ProxRequest
from coterie.federation.partition import partition
from coterie.federation.project import write_project
from coterie.federation.refusals import RefusedError
from coterie.federation.site import Site
from coterie.federation.spanning_tree import ChangedError, SpanningTree
from coterie.federation.transport.board import Board, packed, unpacked
from coterie.federation.transport.grpc_peers import GrpcPeers, read_neighbour
from coterie.federation.transport.keys import write_own_certificates
from coterie.problem.arrays import Array

PATIENCE = 120.0  # seconds, on a busy machine
TRUTH = ((2.0, 2.0), (-2.0, 2.0), (1.0, -1.0))


class Threads:
    """Peers in one process: every site has a board, and the others look at it; whoever is in `gone` is out of reach."""

    def __init__(self, name: str, boards: Mapping[str, Board], gone: set[str] = frozenset()) -> None:  # type: ignore
        self.name, self.boards, self.board, self.gone = name, boards, boards[name], gone
        self.published, self.may_be_held = self.board.published, set[str]()

    @property
    def away(self) -> frozenset[str]:
        return self.board.away

    def begin_anew(self, may_return: bool) -> bool:
        return self.board.begin_anew(self.name, may_return)

    def publish(self, kind: str, number: int, messages: Mapping[str, Mapping[str, Array]]) -> None:
        self.board.put(kind, number, {who: packed(arrays) for who, arrays in messages.items()})

    def pull(self, neighbour: str, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array]:
        theirs, deadline = self.boards[neighbour], time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if neighbour in self.gone:
                assert neighbour in self.may_be_held
                self.board.add_one(neighbour)
            else:
                theirs.hear(self.board.heard)
                self.board.hear(theirs.heard)
            if self.board.heard != self.board.standing:
                raise ChangedError
            if theirs.end and neighbour not in self.gone:
                raise FederationError(theirs.end)
            content = theirs.wait(kind, number, self.name, 0.2, self.board.standing)
            if content is not None:
                return unpacked(neighbour, kind, content, shapes)
        raise AssertionError(f"{neighbour} has no {kind} {number}")


def in_threads(names: Sequence[str], live: Any) -> list[Any]:
    boards, gone = {name: Board(names) for name in names}, set[str]()
    with ThreadPoolExecutor(len(names)) as pool:
        return [one.result() for one in [pool.submit(live, name, Threads(name, boards, gone)) for name in names]]


def leaving(problem: ct.Problem, site_of: Array, names: Sequence[str], name: str) -> list[Edge]:
    """The edges that leave a site."""
    edges = []
    for (i, j), weight in zip(problem.graph.edges.tolist(), problem.graph.weights.tolist(), strict=True):
        for own, other in ((i, j), (j, i)):
            if names[site_of[own]] == name != names[site_of[other]]:
                edges.append((str(own), names[site_of[other]], str(other), weight))
    return edges


class OneAtATime(Site):
    """Sites share this process, and what is caught of warnings belongs to all its threads."""

    lock = threading.Lock()

    def _solved(self, request: ProxRequest) -> tuple[Array, Array]:
        with self.lock:
            return super()._solved(request)


class GoneError(Exception):
    """A site in a test goes away."""


def solved(
    problem: ct.Problem, site_of: Array, see: Any = lambda name, peers, number, verdict: None, lie: Any = None
) -> tuple[Array, list[Any]]:
    """The weights that sites in threads find, and what each of them believes to be proven, or why it ended."""
    parts, _ = partition(problem.graph, site_of)
    names = [f"site{k}" for k in range(len(parts))]
    ranks = {name: k for k, name in enumerate(names)}
    w = np.zeros((problem.graph.n_nodes, problem.n_features))

    def live(name: str, peers: Threads) -> Any:
        part, hood = parts[ranks[name]], Neighbourhood.of(name, leaving(problem, site_of, names, name))
        boundary = np.searchsorted(part.own, [int(hood.nodes[k][1]) for k in hood.own])
        site = (Liar if name == lie else OneAtATime)(part.problem(problem), boundary)
        run = GossipRun(site, hood, peers, ranks)
        progress = run.start()
        try:
            request, verdict, _ = run.until(1e-6, 3000, progress, lambda k, found: see(name, peers, k, found))
        except FederationError as error:
            peers.board.close(str(error))
            return error
        except GoneError:
            w[part.own] = site.weights(run.gossip.request(progress.place, np.inf))
            w[part.own[boundary]] = progress.reply.w  # type: ignore[union-attr]
            peers.gone.add(name)
            return None
        w[part.own] = site.weights(request)
        return verdict

    return w, in_threads(names, live)


def small_problem() -> ct.Problem:
    network = stochastic_block_model((3, 3, 3), TRUTH, p_in=1.0, p_out=0.2, labelled=6, noise=0.1)
    return ct.Problem(network.graph, network.data, lam=0.05)


def test_sites_find_the_optimum_and_prove_it_together() -> None:
    problem = small_problem()
    w, verdicts = solved(problem, np.arange(9) // 3)
    best = ct.solve(problem, 1e-9)
    assert len({(one.objective, one.bound.value, one.gap) for one in verdicts}) == 1
    assert verdicts[0].gap <= 1e-6
    assert verdicts[0].status is ct.Status.OPTIMAL
    assert verdicts[0].bound.value <= best.objective * (1 + 1e-12)
    assert problem.objective(w) <= best.objective * (1 + 2e-6)
    assert verdicts[0].objective == pytest.approx(problem.objective(w), rel=1e-9)


# --- sites that go, and sites that lie --------------------------------------------------------------------------


def test_the_weights_of_a_site_that_goes_stay_and_the_others_go_on() -> None:
    """The bound is about the problem in which they stay as they are: held against that problem, solved as a whole."""
    problem, site_of = small_problem(), np.arange(9) // 3

    def see(name: str, peers: Threads, number: int, verdict: Verdict) -> None:
        if name == "site1" and number == 20:
            raise GoneError

    w, (first, gone, third) = solved(problem, site_of, see)
    assert gone is None
    assert (first.objective, first.bound.value, first.away) == (third.objective, third.bound.value, ("site1",))
    assert first.gap <= 1e-6
    assert first.status is ct.Status.CONDITIONAL
    assert "the weights of site1 stay as they are" in first.condition
    parts, _ = partition(problem.graph, site_of)
    alone = problem.objective(w) - parts[1].problem(problem).objective(w[parts[1].own])
    assert first.objective == pytest.approx(alone, rel=1e-9)
    free = site_of != 1

    def nearby(direction: Array) -> float:
        moved = w.copy()
        moved[free] += direction
        return problem.objective(moved) - parts[1].problem(problem).objective(moved[parts[1].own])

    rng = np.random.default_rng(0)
    lowest = min(nearby(size * rng.standard_normal((6, 2))) for size in (1e-4, 1e-2, 1.0) for _ in range(30))
    assert first.bound.value <= lowest


class Liar(OneAtATime):
    """Proves more than is true, after a while."""

    told = 0

    def reply(self, request: ProxRequest) -> ProxReply:
        self.told += 1
        reply = super().reply(request)
        return replace(reply, bound=reply.bound + 1e-4) if self.told > 2 else reply


def test_a_site_that_contradicts_itself_is_named_by_its_neighbours_and_all_end() -> None:
    _, ends = solved(small_problem(), np.arange(9) // 3, lie="site2")
    assert {str(one) for one in ends} == {str(ends[0])}
    assert str(ends[0]).startswith("site 'site2' answered with an answer that contradicts its others")


def test_a_site_comes_back_once_it_is_started_again_and_not_before() -> None:
    board = Board(["a", "b"])
    board.put("weights", 3, {"b": b""})
    board.hear((1, 0))
    assert not board.begin_anew("a", may_return=False)
    assert board.begin_anew("a", may_return=True)
    assert board.standing == (2, 0)
    assert not board.away
    assert not board.entries, "what was said belongs to another standing"
    board.hear((1, 1))
    assert board.heard == (2, 1)
    assert board.begin_anew("a", may_return=False)
    assert board.away == {"b"}


# --- the tree ---------------------------------------------------------------------------------------------------

NEAR = {"a": "bc", "b": "ad", "c": "ad", "d": "bce", "e": "d", "f": "g", "g": "f"}


def test_sums_go_up_and_down_a_tree_that_nobody_has_planned() -> None:
    names = "abcde"
    ranks = {name: k for k, name in enumerate(names)}

    def live(name: str, peers: Threads) -> tuple[SpanningTree, Array, Array]:
        tree = SpanningTree.found(peers, list(NEAR[name]), ranks[name], ranks)
        return tree, *tree.total(peers, 0, np.array([1.0, ranks[name]]), np.array([-ranks[name], np.inf]))

    found = in_threads(names, live)
    assert [tree.parent for tree, *_ in found] == [None, "a", "a", "b", "d"]
    assert found[1][0].children == ("d",)
    for _, sums, maxima in found:
        assert sums.tolist() == [5.0, 10.0]
        assert maxima.tolist() == [0.0, np.inf]


def test_sites_that_no_path_leads_to_are_noticed() -> None:
    ranks = {name: k for k, name in enumerate("abcdefg")}

    def live(name: str, peers: Threads) -> bool:
        try:
            SpanningTree.found(peers, list(NEAR[name]), ranks[name], ranks)
        except FederationError as error:
            return "no path of edges" in str(error)
        return False

    assert in_threads("abcdefg", live) == [False] * 5 + [True] * 2


def test_what_cannot_be_is_refused_with_the_name_of_the_site() -> None:
    shapes = {"w": (2, 1)}
    assert unpacked("north", "weights", packed({"w": np.ones((2, 1))}), shapes)["w"].tolist() == [[1.0], [1.0]]
    for content in (b"", b"123", packed({"w": np.ones((3, 1))}), packed({"w": np.array([[1.0], [np.inf]])})):
        with pytest.raises(FederationError, match="site 'north' has sent weights"):
            unpacked("north", "weights", content, shapes)


# --- gRPC -------------------------------------------------------------------------------------------------------


def peers_of(folder: Path, name: str, listen: str, near: Mapping[str, str], run: str = "run") -> GrpcPeers:
    key, mine = (folder / f"{name}.key").read_bytes(), (folder / f"{name}.crt").read_bytes()
    neighbours = {who: read_neighbour(address, folder / f"{who}.crt") for who, address in near.items()}
    board = Board(["north", "south", "stranger"])
    return GrpcPeers(name, listen, key, mine, neighbours, run, lambda *_: None, lambda _: None, 0.5, board)


def test_a_site_talks_to_those_whose_certificates_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.federation.transport.grpc_peers.LAST", 0.0)
    write_own_certificates(tmp_path, ["north", "south", "stranger"])
    a, b = (f"unix:{tmp_path}/{name}" for name in "ab")
    with peers_of(tmp_path, "north", a, {"south": b}) as north, peers_of(tmp_path, "south", b, {"north": a}) as south:
        north.publish("weights", 3, {"south": {"w": np.full((1, 1), 7.0)}})
        assert south.pull("north", "weights", 3, {"w": (1, 1)})["w"].item() == 7.0
        other = peers_of(tmp_path, "south", f"unix:{tmp_path}/c", {"north": a}, run="another")
        with pytest.raises(FederationError, match="site 'north': has other settings"):
            other.pull("north", "weights", 3, {"w": (1, 1)})
        for name, told in (
            ("stranger", "north"),
            ("south", "stranger"),
        ):  # a key that is not known; not who is expected
            (tmp_path / "told.crt").write_bytes((tmp_path / f"{told}.crt").read_bytes())
            who = peers_of(tmp_path, name, f"unix:{tmp_path}/d{name}", {"told": a})
            who.board = Board(["told"])
            who.may_be_held = {"told"}
            with pytest.raises(ChangedError):  # nobody is there
                who.pull("told", "weights", 3, {"w": (1, 1)})
            who.server.stop(0)
        south.board.close("site 'west' answered with nonsense")
        with pytest.raises(FederationError, match="site 'west' answered with nonsense"):
            north.pull("south", "weights", 3, {"w": (1, 1)})


# --- files, and processes ---------------------------------------------------------------------------------------


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Three sites that agree to talk to each other."""
    write_project(tmp_path / "fed", "fed")
    config = tmp_path / "fed" / "pyproject.toml"
    config.write_text(config.read_text().replace("lam = 0.01", "lam = 0.05"))
    for policy in (tmp_path / "fed").glob("sites/*/site.toml"):
        policy.write_text(policy.read_text().replace('"finish"]', '"finish", "gossip"]'))
    return tmp_path / "fed"


def full_disk(path: Path, **arrays: Any) -> None:
    path.write_bytes(b"half of it")
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_site_goes_on_from_what_it_has_said_and_from_nothing_that_is_damaged(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = sorted((app / "sites").iterdir())
    write_gossip(app, sites, tmp_path / "keys", [1, 2, 3])
    read = GossipFolder.read(sites[0])
    assert read.restore() is None
    board, n = Board(read.everyone, (0, 1, 0)), read.files.problem.n_features
    board.put("weights", 4, {"north": b"12345678"})
    w, u = np.ones((len(read.hood.own), n)), np.zeros((read.hood.graph.n_edges, n))
    far = np.full((len(read.hood.nodes), n), np.nan)
    progress = Progress(Place(w, u), Place(w, u), far, number=5, omega=1.0, reply=without_evidence(w))
    read.save(progress, board)
    found = read.restore()
    assert found is not None
    assert found[0].number == 5
    assert found[0].place.w.tolist() == w.tolist()
    assert found[1].entries == board.entries
    assert found[1].away == {"north"}
    assert found[0].reply is not None
    assert found[0].reply.bound == -np.inf, "what lies on a disk proves nothing"
    content = (read.folder / MEMORY).read_bytes()
    monkeypatch.setattr(np, "savez", full_disk)
    progress.number = 6
    with pytest.raises(RefusedError, match=r"written to \(No space left on device\); the same command goes on"):
        keep(read, progress, board)
    assert (read.folder / MEMORY).read_bytes() == content
    (read.folder / MEMORY).write_bytes(content[: len(content) // 2])
    with pytest.raises(FederationError, match="cannot be read"):
        read.restore()
    (read.folder / MEMORY).write_bytes(content)
    data = read.folder / "data.csv"
    data.write_text(data.read_text() + data.read_text().splitlines()[-1] + "\n")  # its last row twice
    with pytest.raises(FederationError, match="is about other data"):
        GossipFolder.read(sites[0]).restore()
    policy = read.folder / "site.toml"
    policy.write_text(policy.read_text().replace(', "gossip"]', "]"))
    with pytest.raises(RefusedError, match="does not answer 'gossip'"):
        GossipFolder.read(sites[0])


@pytest.mark.slow
@pytest.mark.skipif(not FORKS, reason="forks")
def test_sites_without_a_server_end_with_one_certificate_although_one_is_killed(app: Path, tmp_path: Path) -> None:
    sites = sorted((app / "sites").iterdir())
    with LocalGossip(app, sites, tmp_path / "work") as here:
        killed = []

        def see(line: str) -> None:
            if line.startswith("iteration 20 "):
                killed.append(here.processes["north"].pid)
                os.kill(killed[0], signal.SIGKILL)

        result = here.result(see)
        assert killed
        assert here.processes["north"].pid != killed[0]
    assert result["status"] == "OPTIMAL"
    assert all(json.loads((site / "gossip.json").read_text()) == result for site in sites)
    assert not list(app.glob(f"sites/*/{MEMORY}"))
    assert "goes on from iteration" in here.log(sites[1]).read_text()
