from __future__ import annotations

import csv
import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

from flwr.app import Message

import coterie as ct
from coterie.datasets import stochastic_block_model
from coterie.federation import checkpoint
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.loop import FederationError, Outcome
from coterie.federation.partition import partition
from coterie.federation.project import write_sites
from coterie.federation.roster import ROSTER, write_roster
from coterie.federation.server_app import run
from coterie.federation.site_files import Settings, SiteFiles
from coterie.federation.transport.records import SiteError, _unpacked, read_prox_request
from flower_grid import CONFIG, InProcessGrid

NAMES = ("east", "north", "west")
THREE = np.arange(12) // 4


def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "sites" / name for name in NAMES]


def small(labelled: int = 8) -> ct.Problem:
    """Twelve nodes in three clusters, one at each site."""
    truth = ((2.0, 2.0), (-2.0, 2.0), (1.0, -1.0))
    network = stochastic_block_model((4, 4, 4), truth, p_in=0.8, p_out=0.05, labelled=labelled, noise=0.1, seed=1)
    return ct.Problem(network.graph, network.data, lam=0.01)


@pytest.fixture
def problem(tmp_path: Path) -> ct.Problem:
    """A small problem that takes few rounds, written to three sites' folders."""
    problem = small()
    write_sites(tmp_path, problem, THREE, NAMES)
    return problem


def settings(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    places = {"graph": str(tmp_path / "graph.csv"), "out": str(tmp_path / "model")}
    return {**CONFIG, **places, **{key.replace("_", "-"): value for key, value in changes.items()}}


def go(tmp_path: Path, grid: InProcessGrid, **changes: Any) -> Outcome:
    out = tmp_path / "model"
    out.mkdir(exist_ok=True)
    return run(grid, settings(tmp_path, **changes), out)  # type: ignore[arg-type]


def read_weights(path: Path, n_nodes: int) -> np.ndarray:
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    w = np.full((n_nodes, len(header) - 1), np.nan)
    for node, *numbers in rows:
        w[int(node)] = [float(x) for x in numbers]
    return w


def edit_policy(tmp_path: Path, name: str, old: str, new: str) -> None:
    path = tmp_path / "sites" / name / "site.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text if new in text else text.replace(old, new, 1))


def open_nodes(tmp_path: Path, name: str, *nodes: str) -> None:
    """Let a site be asked about these nodes too."""
    edit_policy(tmp_path, name, "\nnodes = [", "\nnodes = [" + "".join(f'"{node}", ' for node in nodes))


def federation(tmp_path: Path) -> dict[str, Any]:
    """What the model knows of the federation that it comes from."""
    note: dict[str, Any] = ct.load(tmp_path / "model").notes_["federation"]
    return note


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "lam", "config"),
    [
        (ct.SquaredError(), 1e-3, {"loss": "squared"}),
        (ct.Lasso(0.01), 1e-3, {"loss": "lasso", "alpha": 0.01}),
        (ct.Logistic(ridge=0.01), 1e-3, {"loss": "logistic", "ridge": 0.01}),
    ],
    ids=["squared", "lasso", "logistic"],
)
def test_the_papers_network_at_three_sites(tmp_path: Path, loss: ct.Loss, lam: float, config: dict[str, Any]) -> None:
    network = stochastic_block_model()
    data = network.data
    if isinstance(loss, ct.Logistic):
        y = np.where(np.isnan(data.y), np.nan, data.y > 0)
        data = ct.LocalDatasets.from_rows(data.X, y, data.nodes, n_nodes=300)
    problem = ct.Problem(network.graph, data, loss, lam=lam)
    write_sites(tmp_path, problem, np.arange(300) // 100, NAMES)
    changes = settings(tmp_path, lam=lam, **config)
    outcome = go(tmp_path, InProcessGrid(folders(tmp_path), changes), lam=lam, **config)
    best = ct.solve(problem, 1e-8)
    w = read_weights(tmp_path / "model" / "weights.csv", 300)
    assert problem.objective(w) <= best.objective * (1 + 1e-6)
    assert outcome.gap <= 1e-6
    assert outcome.unconditional


def test_the_model_says_what_it_is(tmp_path: Path, problem: ct.Problem) -> None:
    outcome = go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))
    model = ct.load(tmp_path / "model")
    assert model.gap_ == outcome.gap <= 1e-6
    assert federation(tmp_path)["sites"] == list(NAMES)
    assert federation(tmp_path)["rounds"] == model.n_iter_ == outcome.rounds
    w = read_weights(tmp_path / "model" / "weights.csv", 12)
    assert problem.objective(w) == pytest.approx(outcome.objective, rel=1e-9)
    own = read_weights(tmp_path / "sites" / "north" / "weights.csv", 12)[4:8]
    assert (own == w[4:8]).all()


def test_sites_may_keep_their_models_to_themselves(tmp_path: Path, problem: ct.Problem) -> None:
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path, share_weights=False))
    go(tmp_path, grid, share_weights=False)
    w = read_weights(tmp_path / "model" / "weights.csv", 12)
    _, cut = partition(problem.graph, THREE)
    assert set(np.flatnonzero(~np.isnan(w[:, 0]))) == set(cut.nodes)
    assert (tmp_path / "sites" / "east" / "weights.csv").exists()


def test_parquet_is_as_good_as_csv(tmp_path: Path, problem: ct.Problem) -> None:
    polars = pytest.importorskip("polars")
    for name in ("data", "edges"):
        path = tmp_path / "sites" / "north" / f"{name}.csv"
        polars.read_csv(path).write_parquet(path.with_suffix(".parquet"))
        path.unlink()
    assert go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path))).gap <= 1e-6


def test_a_site_imports_no_estimators() -> None:
    """Flower starts a process for every message, and scikit-learn takes a second to import."""
    code = "import sys, coterie.federation.client_app; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- what travels ---------------------------------------------------------------------------------------------

ALLOWED = {  # (direction, kind) → facts
    ("to site", "query.introduce"): {"nodes", "settings"},
    ("to server", "query.introduce"): {"site", "hosts", "columns", "floor", "scale", "constant", "size", "digest"},
    ("to site", "query.answer"): {"nodes", "level", "question", "width", "settings"},
    ("to server", "query.answer"): {"site", "value", "bound", "left", "reach", "w", "width"},
    ("to site", "query.finish"): {"nodes", "level", "question", "width", "settings"},
    ("to server", "query.finish"): {"site", "nodes", "w", "width"},
}


def test_nothing_travels_but_what_is_listed(tmp_path: Path) -> None:
    problem = small(labelled=12)
    write_sites(tmp_path, problem, THREE, NAMES)
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path), stock=True)
    go(tmp_path, grid)
    _, cut = partition(problem.graph, THREE)
    most = max(cut.of(k).stop - cut.of(k).start for k in range(3))
    private = {f"{x:.12g}" for x in [*problem.data.X.ravel(), *problem.data.y]}
    for k in range(12):
        rows = problem.data.X[problem.data.nodes == k]
        private |= {f"{x:.12g}" for x in [*(rows.T @ rows).ravel(), *(rows.T @ rows).ravel() / 5]}
    for way, messages in (("to site", grid.sent), ("to server", grid.received)):
        for message in messages:
            check(way, message, most, problem.n_features, private)
            assert str(tmp_path) not in str(message.content.config_records["facts"])


def check(way: str, message: Message, most: int, n: int, private: set[str]) -> None:
    kind, content = message.metadata.message_type, message.content
    assert set(content) == {"facts"}
    facts = content.config_records["facts"]
    assert set(facts) == ALLOWED[way, kind]
    numbers = [x for x in facts.values() if isinstance(x, float)]
    for name in {"question", "w"} & set(facts):
        array = _unpacked(facts, name)
        assert array.shape[1] == (n + 1 if way == "to site" else n)
        assert len(array) <= (most if kind == "query.answer" else 4)
        numbers += array.ravel().tolist()
    assert not private & {f"{x:.12g}" for x in numbers}


# --- differential privacy ---------------------------------------------------------------------------------------

PRIVATE = {"privacy_noise": 5.0, "privacy_clip": 0.3, "privacy_rounds": 4, "share_weights": False}


def go_privately(tmp_path: Path, change: Any = None, **changes: Any) -> tuple[Outcome, InProcessGrid]:
    pytest.importorskip("dp_accounting", reason="needs the extra coterie[privacy]")
    for name in NAMES:
        edit_policy(tmp_path, name, '"answer", ', '"answer", "release", ')
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path, **PRIVATE), change)
    return go(tmp_path, grid, **PRIVATE, **changes), grid


def test_with_privacy_only_noisy_weights_leave_a_site(tmp_path: Path, problem: ct.Problem) -> None:
    outcome, grid = go_privately(tmp_path)
    read = Settings.of(grid.config)
    requests = [m for m in grid.sent if m.metadata.message_type == "query.release"]
    replies = [m for m in grid.received if m.metadata.message_type == "query.release"]
    assert len(requests) == len(replies) == 3 * outcome.rounds == 12
    noise = []
    for asked, answered in zip(requests, replies, strict=True):
        request, nodes = read_prox_request(asked.content)
        (folder,) = [f for f in folders(tmp_path) if f.name == answered.content.config_records["facts"]["site"]]
        files = SiteFiles.read(folder, read)
        true = files.site(nodes).weights(request)[[files.nodes.index(node) for node in nodes]] - request.v
        clipped = true * min(1.0, 0.3 / np.linalg.norm(true))
        noise.append(_unpacked(answered.content.config_records["facts"], "w") - request.v - clipped)
        assert set(answered.content.config_records["facts"]) == {"site", "nodes", "w", "width"}
    drawn = np.concatenate([part.ravel() for part in noise])
    assert (np.abs(drawn) > 0).all()
    assert len(set(drawn)) == len(drawn)
    assert 0.5 < drawn.std() / (2 * 0.3 * 5.0) < 1.5
    rest = [m for m in grid.received if m.metadata.message_type != "query.release"]
    for message in rest:
        facts = message.content.config_records["facts"]
        if message.metadata.message_type == "query.introduce":
            assert (facts["floor"], facts["scale"], facts["constant"], facts["size"]) == (-np.inf, 0.0, 0.0, 0.0)
        else:
            assert message.metadata.message_type == "query.finish"
            assert list(facts["nodes"]) == []
            assert facts["w"] == b""


def test_the_record_states_epsilon_and_that_there_is_no_certificate(tmp_path: Path, problem: ct.Problem) -> None:
    go_privately(tmp_path)
    solution, promise = ct.load(tmp_path / "model").solution_, federation(tmp_path)["privacy"]
    assert np.isnan([solution.gap, solution.objective, solution.dual_bound]).all()
    assert "no certificate" in solution.condition
    assert promise["epsilon"] == pytest.approx(Privacy(5.0, 0.3, 4).epsilon)
    assert promise["delta"] == 1e-5
    assert "any one site" in promise["protects"]
    assert (tmp_path / "sites" / "north" / "weights.csv").exists()


def test_a_private_run_given_again_gets_the_same_answers(tmp_path: Path, problem: ct.Problem) -> None:
    first, _ = go_privately(tmp_path)
    again, _ = go_privately(tmp_path, lambda site, k, reply: None if k == 1 else reply)
    assert (first.boundary == again.boundary).all()


def test_a_site_that_has_promised_privacy_answers_nothing_else(tmp_path: Path, problem: ct.Problem) -> None:
    go_privately(tmp_path)
    with pytest.raises(SiteError, match=r"site 'east' has no private release left, .*\(budget\)"):
        go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))


def test_with_privacy_all_weights_cannot_be_shared(tmp_path: Path, problem: ct.Problem) -> None:
    with pytest.raises(ValueError, match="share-weights must be false"):
        go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)), **{**PRIVATE, "share_weights": True})


def test_without_privacy_the_record_says_so(tmp_path: Path, problem: ct.Problem) -> None:
    go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))
    assert federation(tmp_path)["privacy"] is None
    assert not (tmp_path / "sites" / "north" / "privacy.db").exists()


# --- sites that come, go, and disagree ------------------------------------------------------------------------


def test_a_killed_supernode_comes_back_under_another_id(tmp_path: Path, problem: ct.Problem) -> None:
    def crash(site: str, before: int, reply: Message) -> Message | None:
        if site == "north" and before == 3 and 11 in grid.folders:
            grid.folders[77] = grid.folders.pop(11)
            grid.replies[77] = 4
            return None
        return reply

    grid = InProcessGrid(folders(tmp_path), settings(tmp_path), crash)
    outcome = go(tmp_path, grid)
    assert outcome.gap <= 1e-6
    assert not outcome.held
    w = read_weights(tmp_path / "model" / "weights.csv", 12)
    assert problem.objective(w) <= ct.solve(problem, 1e-8).objective * (1 + 1e-6)


def test_a_site_is_its_key_whatever_it_says_of_itself(
    tmp_path: Path, problem: ct.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An impostor has north's name, folder and nodes, but no key: it is not even asked."""
    write_roster(tmp_path / "roster.json", {"north": 10, "south": 11, "west": 12})
    monkeypatch.setenv(ROSTER, str(tmp_path / "roster.json"))
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path))
    grid.folders = {99: tmp_path / "sites" / "north", **grid.folders}
    grid.replies[99] = 0
    assert go(tmp_path, grid).gap <= 1e-6
    assert {message.metadata.dst_node_id for message in grid.sent} == {10, 11, 12}
    assert federation(tmp_path)["sites"] == ["north", "south", "west"]
    assert grid.folders[10].name == "east"


def test_an_extra_supernode_that_cannot_take_part_does_not_stop_the_others(tmp_path: Path, problem: ct.Problem) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    assert go(tmp_path, InProcessGrid([extra, *folders(tmp_path)], settings(tmp_path))).gap <= 1e-6
    with pytest.raises(SiteError, match=r"^site 'extra' has no site\.toml that can be read \(no-policy\)$"):
        go(tmp_path, InProcessGrid([extra, *folders(tmp_path)[:2]], settings(tmp_path)))
    grid = InProcessGrid([extra, *folders(tmp_path)[:2], folders(tmp_path)[0]], settings(tmp_path))
    with pytest.raises(TimeoutError, match=r"2 of 3 sites .*site 'extra' has no .*two SuperNodes say .* site 'east'"):
        go(tmp_path, grid, wait=1.0)


@pytest.mark.parametrize("hosts", [[999], [-1], [0, 0], ["a"]])
def test_an_introduction_that_makes_no_sense_is_named(tmp_path: Path, problem: ct.Problem, hosts: list[Any]) -> None:
    class Liar(InProcessGrid):
        def pull_messages(self, message_ids: Any) -> Any:
            replies = super().pull_messages(message_ids)
            for reply in replies:
                facts = reply.content.config_records["facts"]
                if facts["site"] == "north":
                    facts["hosts"] = hosts
            return replies

    with pytest.raises(SiteError, match="site 'north' sent an introduction"):
        go(tmp_path, Liar(folders(tmp_path), settings(tmp_path)))


def test_lost_replies_are_asked_for_again(tmp_path: Path, problem: ct.Problem) -> None:
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path), lambda s, k, reply: None if k % 5 == 2 else reply)
    assert go(tmp_path, grid).gap <= 1e-6


def test_a_site_that_stays_away_is_held(tmp_path: Path, problem: ct.Problem) -> None:
    def leave(site: str, before: int, reply: Message) -> Message | None:
        if site == "west" and before == 3:
            del grid.folders[12]
            return None
        return reply

    grid = InProcessGrid(folders(tmp_path), settings(tmp_path, timeout=1.0, hold_after=2), leave)
    outcome = go(tmp_path, grid, timeout=1.0, hold_after=2)
    assert outcome.held == ("west",)
    assert outcome.gap <= 1e-6
    assert federation(tmp_path)["held"] == ["west"]
    solution = ct.load(tmp_path / "model").solution_
    assert solution.status is ct.Status.CONDITIONAL
    assert not solution.unconditional
    assert solution.condition == "the weights of west stay as they are"


def _spoiled(how: str) -> Any:
    def spoil(site: str, before: int, reply: Message) -> Message:
        if site != "north" or before < 3:
            return reply
        facts = reply.content.config_records["facts"]
        if how == "nan":
            facts["w"] = np.full(len(facts["w"]) // 8, np.nan).tobytes()
        elif how == "shape":
            facts["w"], facts["width"] = np.zeros(7).tobytes(), 7
        else:
            facts["w"] = {"garbage": b"no array at all", "text": "a"}[how]
        return reply

    return spoil


@pytest.mark.slow
@pytest.mark.parametrize("how", ["nan", "shape", "garbage", "text"])
def test_nonsense_is_named_and_stops_the_run_or_is_set_aside(tmp_path: Path, problem: ct.Problem, how: str) -> None:
    with pytest.raises(FederationError, match="site 'north' answered with weights"):
        go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path), _spoiled(how)))
    outcome = go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path), _spoiled(how)), on_bad_site="set-aside")
    assert outcome.held == ("north",)
    assert outcome.gap <= 1e-6


class LiarAtTheEnd(InProcessGrid):
    """North shares what `lie` makes of its weights."""

    def __init__(self, tmp_path: Path, lie: dict[str, Any]) -> None:
        super().__init__(folders(tmp_path), settings(tmp_path))
        self.lie = lie

    def _reply(self, node: int, message: Message) -> Message:
        reply = super()._reply(node, message)
        if message.metadata.message_type == "query.finish" and self.folders[node].name == "north":
            facts = reply.content.config_records["facts"]
            for key, change in self.lie.items():
                facts[key] = change(facts[key])
        return reply


@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        ({"nodes": lambda nodes: ["0", *nodes[1:]]}, "shared weights of node '0', which another site has"),
        ({"nodes": lambda nodes: ["1", *nodes[1:]]}, "shared weights of node '1', which another site has"),
        ({"nodes": lambda nodes: [nodes[0], *nodes[:-1]]}, "or a node twice"),
        ({"nodes": lambda nodes: 7}, "0 nodes with weights of shape"),
        ({"width": lambda n: 1, "nodes": lambda nodes: [f"9{k}" for k in range(8)]}, "shared weights of shape (8, 1)"),
        ({"w": lambda w: (10 + np.frombuffer(w)).tobytes()}, ""),
    ],
)
def test_what_a_site_shares_at_the_end_replaces_nothing_that_was_certified(
    tmp_path: Path, problem: ct.Problem, lie: dict[str, Any], complaint: str
) -> None:
    """An inner node that two sites have is nobody's: its weights are left out."""
    left_out = 1 if "'1'" in complaint else -1
    outcome = go(tmp_path, LiarAtTheEnd(tmp_path, lie))
    lines = (tmp_path / "model" / "progress.jsonl").read_text().splitlines()
    assert any(complaint in json.loads(line).get("warning", "") for line in lines)
    w = read_weights(tmp_path / "model" / "weights.csv", 12)
    _, cut = partition(problem.graph, THREE)
    boundary = sorted(cut.nodes.tolist(), key=lambda node: (node // 4, str(node)))
    assert np.abs(w[boundary] - outcome.boundary).max() < 1e-5
    others = np.r_[0:4, 8:12]
    honest = np.concatenate([read_weights(folder / "weights.csv", 12)[others] for folder in folders(tmp_path)[::2]])
    assert ((w[others] == honest[~np.isnan(honest[:, 0])]) | (others == left_out)[:, None]).all()
    assert left_out < 0 or np.isnan(w[left_out]).all()


def test_a_site_with_other_columns_is_named(tmp_path: Path, problem: ct.Problem) -> None:
    path = tmp_path / "sites" / "north" / "data.csv"
    path.write_text(path.read_text().replace("x1", "height", 1))
    edit_policy(tmp_path, "north", '"x1"', '"height"')
    with pytest.raises(FederationError, match=r"site 'north' has the columns .*it lacks \['x1'\]"):
        go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("data.csv", "node,", "place,", "data.csv: there is no column 'node'"),
        ("data.csv", None, "node,x0,x1,y\n4,1,much,3\n", "data.csv: column 'x1', row 1: 'much' is not"),
        ("data.csv", None, "node,x0,x1,y\n4,1,1,3\n,1,1,3\n", "data.csv: column 'node', row 2: there is no node"),
        ("data.csv", None, "", "data.csv: the file is empty"),
        ("edges.csv", None, "a,b,weight\n4,,1\n", "edges.csv: column 'b', row 1: there is no node id"),
        ("edges.csv", None, "a,b,weight\n4,4,1\n", "edges.csv: column 'b', row 1: node '4' is joined to itself"),
    ],
)
def test_what_is_wrong_with_files_stays_at_the_site(
    tmp_path: Path,
    problem: ct.Problem,
    caplog: pytest.LogCaptureFixture,
    file: str,
    old: str | None,
    new: str,
    message: str,
) -> None:
    path = tmp_path / "sites" / "north" / file
    path.write_text(new if old is None else path.read_text().replace(old, new, 1))
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path))
    with pytest.raises(SiteError, match=r"^site 'north' cannot use its files as they are \(files\)$"):
        go(tmp_path, grid)
    (said,) = [facts for facts in facts_of(grid.received) if "error" in facts]
    assert dict(said) == {"site": "north", "error": "files"}
    assert message in caplog.text


def facts_of(messages: list[Message]) -> list[Any]:
    return [message.content.config_records["facts"] for message in messages]


def test_what_nobody_foresaw_leaves_a_site_as_a_code(
    tmp_path: Path, problem: ct.Problem, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for error, code in ((PermissionError(13, "denied", "secret"), "disk"), (ZeroDivisionError("secret"), "failed")):

        def fail(*arguments: Any, error: Exception = error) -> SiteFiles:
            raise error

        monkeypatch.setattr(SiteFiles, "read", fail)
        with pytest.raises(SiteError, match=rf"^site 'east' .*\({code}\)$"):
            go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))
        assert "secret" in caplog.text


def test_a_site_that_cannot_write_its_weights_is_named(
    tmp_path: Path, problem: ct.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *arguments: Any) -> None:
        if "north" in str(path):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("coterie.federation.responder.write_weights", full)
    assert go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path))).gap <= 1e-6
    lines = [json.loads(line) for line in (tmp_path / "model" / "progress.jsonl").read_text().splitlines()]
    (warning,) = [line["warning"] for line in lines if "warning" in line]
    assert warning == (
        "site 'north' answered the end of the run with an error: it cannot read or write in its folder (disk)"
    )


def test_edges_are_read_by_the_names_of_their_columns(tmp_path: Path, problem: ct.Problem) -> None:
    outcome = go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))
    for path in [*tmp_path.glob("sites/*/edges.csv"), tmp_path / "graph.csv"]:
        _, *rows = csv.reader(path.read_text().splitlines())
        path.write_text("".join(["weight,from,to\n", *(f"{a},{i},{j}\n" for i, j, a in rows)]))
    again = go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))
    assert (again.objective, again.rounds) == (outcome.objective, outcome.rounds)
    assert again.w.keys() == outcome.w.keys()
    assert all((again.w[k] == outcome.w[k]).all() for k in outcome.w)


def test_a_site_may_have_no_inner_edge(tmp_path: Path, problem: ct.Problem) -> None:
    for name in NAMES:
        (tmp_path / "sites" / name / "edges.csv").write_text("a,b,weight\n")
    (tmp_path / "sites" / "east" / "edges.csv").unlink()
    assert go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path))).gap <= 1e-6


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,99,1.0", "node '99', which no site hosts"),
        ("0,1,1.0", "lies inside site 'east'"),
    ],
)
def test_a_graph_that_does_not_fit_the_sites_is_refused(
    tmp_path: Path, problem: ct.Problem, line: str, message: str
) -> None:
    path = tmp_path / "graph.csv"
    path.write_text(path.read_text() + line + "\n" + "1,5,1.0\n")
    open_nodes(tmp_path, "east", "0", "1")
    open_nodes(tmp_path, "north", "5")
    with pytest.raises(FederationError, match=message):
        go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))


def test_two_sites_with_the_same_node_are_named(tmp_path: Path, problem: ct.Problem) -> None:
    path = tmp_path / "sites" / "west" / "data.csv"
    _, cut = partition(problem.graph, THREE)
    shared = cut.nodes[cut.of(1)][0]
    path.write_text(path.read_text() + f"{shared},1,1,\n")
    open_nodes(tmp_path, "west", str(shared))
    with pytest.raises(FederationError, match=f"node '{shared}' is at site 'north' and at site 'west'"):
        go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))


def test_sites_that_never_come_are_counted(tmp_path: Path, problem: ct.Problem) -> None:
    with pytest.raises(TimeoutError, match=r"2 of 3 sites came within 1 s \(east, north\)"):
        go(tmp_path, InProcessGrid(folders(tmp_path)[:2], settings(tmp_path)), wait=1.0)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path, problem: ct.Problem) -> None:
    whole = go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)))
    go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)), max_rounds=3)
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path))
    rest = go(tmp_path, grid, resume=True)
    assert rest.gap <= 1e-6
    assert rest.objective == pytest.approx(whole.objective, rel=1e-6)
    asked = sum(message.metadata.message_type == "query.answer" for message in grid.sent) // 3
    assert asked == rest.rounds - 3


def warnings_of(tmp_path: Path) -> list[str]:
    lines = [json.loads(line) for line in (tmp_path / "model" / "progress.jsonl").read_text().splitlines()]
    return [line["warning"] for line in lines if "warning" in line]


def _settings(tmp_path: Path) -> dict[str, Any]:
    return {"lam": 0.2}


def _labels(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "sites" / "north" / "data.csv"
    lines = path.read_text().splitlines()
    k = next(k for k, line in enumerate(lines) if k and not line.endswith(","))
    lines[k] = ",".join([*lines[k].split(",")[:-1], "7.5"])
    path.write_text("\n".join(lines) + "\n")
    return {}


def _weights(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "graph.csv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *(f"{row.rsplit(',', 1)[0]},40.0" for row in rows)]) + "\n")
    return {}


@pytest.mark.parametrize(
    ("change", "what"),
    [(_settings, "the settings"), (_labels, "the data of site 'north'"), (_weights, "the graph")],
    ids=["settings", "labels", "edge weights"],
)
def test_what_has_changed_since_the_checkpoint_starts_anew_and_is_named(
    tmp_path: Path, problem: ct.Problem, change: Any, what: str
) -> None:
    go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)), max_rounds=2)
    changes = change(tmp_path)
    grid = InProcessGrid(folders(tmp_path), settings(tmp_path, **changes))
    outcome = go(tmp_path, grid, resume=True, max_rounds=2, **changes)
    (warning,) = warnings_of(tmp_path)
    assert f"another problem: {what} changed; the run starts anew" in warning
    assert [one.number for one in outcome.history] == [1, 2]


def test_a_checkpoint_of_other_sites_or_a_damaged_one_starts_anew(tmp_path: Path, problem: ct.Problem) -> None:
    go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)), max_rounds=2)
    (tmp_path / "model" / "checkpoint.npz").write_bytes(b"PK, but no more than that")
    assert go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path)), resume=True, max_rounds=3).rounds == 3
    for name in NAMES:
        (tmp_path / "sites" / name).rename(tmp_path / "sites" / f"{name}2")
    moved = [tmp_path / "sites" / f"{name}2" for name in NAMES]
    assert go(tmp_path, InProcessGrid(moved, settings(tmp_path)), resume=True).gap <= 1e-6
    damaged, other = warnings_of(tmp_path)
    assert "cannot be read" in damaged
    assert "another problem" in other


def test_a_full_disk_at_a_checkpoint_loses_nothing(
    tmp_path: Path, problem: ct.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save", full)
    assert go(tmp_path, InProcessGrid(folders(tmp_path), settings(tmp_path))).gap <= 1e-6
    assert all("No space left on device" in warning for warning in warnings_of(tmp_path))
    assert federation(tmp_path)["rounds"] == len(warnings_of(tmp_path))
