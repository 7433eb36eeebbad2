"""Real servers and sites on loopback, and attacks on them: one network serves most tests of this file."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

from flwr.proto.control_pb2 import StartRunRequest
from flwr.proto.fleet_pb2 import PullMessagesRequest, PushMessagesRequest, RegisterNodeFleetRequest
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.node_pb2 import Node
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.protobuf.constants import PROTOBUF_MEDIA_TYPE
from typer.testing import CliRunner

import coterie as ct
from coterie.cli import app as cli
from coterie.federation.audit import entries
from coterie.federation.local import LocalError, LocalFederation
from coterie.federation.project import write_project
from coterie.federation.site_files import Settings, SiteFiles, read_edges
from coterie.federation.transport.fleet import Fleet, FleetError, NeverError
from coterie.federation.transport.keys import write_certificates, write_keys

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"),
]

LAM = 0.05  # takes four rounds
LIMIT = 300.0  # seconds for one run, on a slow machine
WATCH = """\
import os, socket
_connect, _lookup = socket.socket.connect, socket.getaddrinfo
def _note(host):
    if str(host) not in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "None", ""):
        with open(os.environ["WATCHED"], "a") as file:
            file.write(f"{host}\\n")
        raise OSError(f"this test allows no connection to {host}")
def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        _note(address[0])
    return _connect(self, address)
def getaddrinfo(host, *args, **kwargs):
    _note(host.decode() if isinstance(host, bytes) else host)
    return _lookup(host, *args, **kwargs)
socket.socket.connect, socket.getaddrinfo = connect, getaddrinfo
"""


def write_example(folder: Path) -> Path:
    """An app with three sites that takes few rounds, and does not wait long for who is silent."""
    write_project(folder, "fed")
    config = folder / "pyproject.toml"
    text = config.read_text().replace("lam = 0.01", f"lam = {LAM}").replace("timeout = 180.0", "timeout = 45.0")
    config.write_text(text)
    return folder


def config_of(app: Path, **changes: Any) -> dict[str, Any]:
    places = {"sites": 3, "graph": str(app / "graph.csv"), "out": str(app / "model")}
    return {**places, "resume": False, **{key.replace("_", "-"): value for key, value in changes.items()}}


class Misnamed(LocalFederation):
    """The site in west's folder, with west's key, says that it is north."""

    def _start(self, name: str, *arguments: str) -> None:
        if name == "west":
            at = arguments.index("--name") + 1
            arguments = (*arguments[:at], "north", *arguments[at + 1 :])
        super()._start(name, *arguments)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFederation]:
    """A server and three sites; whatever they call outside is written down."""
    folder = tmp_path_factory.mktemp("network")
    (folder / "watch").mkdir()
    (folder / "watch" / "sitecustomize.py").write_text(WATCH)
    app = write_example(folder / "fed")
    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join([str(folder / "watch"), *filter(None, [os.environ.get("PYTHONPATH")])])
        patch.setenv("PYTHONPATH", path)
        patch.setenv("WATCHED", str(folder / "outside.txt"))
        with Misnamed(app, sorted((app / "sites").iterdir()), folder / "work") as federation:
            until = time.monotonic() + 60
            while not all((site / ".node").exists() for site in federation.sites) and time.monotonic() < until:
                time.sleep(0.05)  # the SuperLink knows a site once this is written
            yield federation


def problem_of(app: Path) -> tuple[ct.Problem, dict[str, int]]:
    """All sites' files, put together as no server could."""
    settings = Settings("node", "y", ct.SquaredError(), ct.TotalVariation(), LAM)
    sites = [SiteFiles.read(folder, settings) for folder in sorted((app / "sites").iterdir())]
    nodes = [node for site in sites for node in site.nodes]
    number = {node: k for k, node in enumerate(nodes)}
    edges, weights = read_edges(app / "graph.csv")
    pairs, A = [(number[a], number[b]) for a, b in edges], list(weights)
    X, y, of = [], [], []
    for site in sites:
        first = number[site.nodes[0]]
        pairs += [(first + int(i), first + int(j)) for i, j in site.problem.graph.edges]
        A += list(site.problem.graph.weights)
        data = site.problem.data
        X, y, of = [*X, data.X], [*y, data.y], [*of, first + data.nodes]
    graph = ct.EmpiricalGraph.from_edges(pairs, A, n_nodes=len(nodes))
    rows = ct.LocalDatasets.from_rows(np.concatenate(X), np.concatenate(y), np.concatenate(of), n_nodes=len(nodes))
    return ct.Problem(graph, rows, lam=LAM), number


def check_model(app: Path) -> None:
    """The model in the folder is optimal."""
    problem, number = problem_of(app)
    with (app / "model" / "weights.csv").open(newline="") as file:
        _, *rows = list(csv.reader(file))
    w = np.full((problem.graph.n_nodes, 2), np.nan)
    for node, *numbers in rows:
        w[number[node]] = [float(x) for x in numbers]
    assert problem.objective(w) <= ct.solve(problem, 1e-8).objective * (1 + 1e-6)


@pytest.fixture(scope="module")
def last(network: LocalFederation) -> dict[str, Any]:
    """What the server says last of a run with all sites."""
    return network.run(config_of(network.app), network.app / "model", lambda line: None)


def test_three_sites_reach_the_optimum_and_nobody_else_is_called(
    network: LocalFederation, last: dict[str, Any]
) -> None:
    """Names are those of keys, whatever a site says of itself."""
    assert last["gap"] <= 1e-6
    check_model(network.app)
    assert ct.load(network.app / "model").notes_["federation"]["sites"] == ["east", "north", "west"]
    outside = network.work.parent / "outside.txt"
    assert not outside.exists(), outside.read_text()


@pytest.mark.usefixtures("last")
def test_what_left_a_site_is_in_its_log(network: LocalFederation) -> None:
    site = network.sites[0]
    kinds = [entry.kind for entry in entries(site)]
    assert kinds[0] == "introduce"
    assert "answer" in kinds
    assert "finish" in kinds
    printed = CliRunner().invoke(cli, ["federate", "audit", str(site)]).output
    assert all(entry.hash[:16] in printed for entry in entries(site))


# --- an outsider with ca.crt, who reaches the public port -------------------------------------------------------


def post(network: LocalFederation, path: str, request: Any, port: int | None = None, **headers: str) -> httpx.Response:
    """A call to the public port, or another, without a key."""
    media = {"content-type": PROTOBUF_MEDIA_TYPE, "accept": PROTOBUF_MEDIA_TYPE}
    with httpx.Client(verify=ssl.create_default_context(cafile=str(network.tls[0]))) as client:
        url = f"https://127.0.0.1:{port or network.port}{path}"
        return client.post(url, content=request.SerializeToString(), headers={**media, **headers})


def test_nobody_submits_an_app_takes_a_task_or_registers_at_the_public_port(network: LocalFederation) -> None:
    for path, request in (
        ("/v1/control/start-run", StartRunRequest()),
        ("/v1/runtime/acquire-task", AcquireTaskRequest(supported_task_types=["serverapp"])),
        ("/v1/fleet/register-node", RegisterNodeFleetRequest(public_key=b"mine")),
        ("/v1/fleet/../control/start-run", StartRunRequest()),
        ("/openapi.json", StartRunRequest()),
    ):
        assert post(network, path, request).status_code == 404, path


def test_another_user_of_the_machine_starts_no_run_and_takes_no_task(network: LocalFederation) -> None:
    """Whoever cannot read the server's folder has neither its token nor its secret."""
    start, task = "/v1/control/start-run", "/v1/runtime/acquire-task"
    wanted = AcquireTaskRequest(supported_task_types=["serverapp"])
    for headers in ({}, {"authorization": "Bearer mine"}, {"host": "a/v1/fleet?"}):
        assert not post(network, start, StartRunRequest(), network.control_port, **headers).is_success
        assert not post(network, task, wanted, network.control_port, **headers).is_success
    assert post(network, start, StartRunRequest(), network.control_port).status_code == 401
    assert post(network, task, wanted, network.control_port).status_code == 401
    folder = network.work / "superlink"
    assert folder.stat().st_mode & 0o077 == 0


def test_nobody_without_a_key_is_a_site(network: LocalFederation, tmp_path: Path) -> None:
    write_keys(tmp_path, ["north"])
    with pytest.raises(FleetError, match="does not know this site's key"), own_fleet(network, tmp_path / "north"):
        pass
    north = int((network.sites[1] / ".node").read_text())
    for headers in ({}, {"host": "a/v1/runtime/pull-object?"}, {"host": "a/v1/control/list-runs?"}):
        pull = PullMessagesRequest(node=Node(node_id=north))
        assert post(network, "/v1/fleet/pull-messages", pull, **headers).status_code == 401


def own_fleet(network: LocalFederation, key: Path, ca: Path | None = None) -> Fleet:
    return Fleet(f"127.0.0.1:{network.port}", ca or network.tls[0], key)


def test_a_server_with_another_certificate_is_not_spoken_to(network: LocalFederation, tmp_path: Path) -> None:
    ca, *_ = write_certificates(tmp_path)
    key = network.work / "keys" / "north"
    with pytest.raises(NeverError, match="certificate is not to be trusted"), own_fleet(network, key, ca):
        pass


# --- a member, with a key ---------------------------------------------------------------------------------------


def test_a_key_is_in_one_place_and_its_owner_asks_nobody(network: LocalFederation) -> None:
    """A second process with north's key does not take over; with west's key nobody is asked in the server's name."""
    with (
        pytest.raises(FleetError, match="sees another process with this key"),
        own_fleet(network, network.work / "keys" / "north"),
    ):
        pass
    west = own_fleet(network, network.work / "keys" / "west")
    node = Node(node_id=int((network.sites[2] / ".node").read_text()))
    question = ProtoMessage()
    question.metadata.src_node_id, question.metadata.dst_node_id = 1, int((network.sites[1] / ".node").read_text())
    with west.client, pytest.raises(httpx.HTTPStatusError, match="404"):
        west.client.PushMessages(PushMessagesRequest(node=node, messages_list=[question]))


# --- the operator of the server, who may submit what she likes --------------------------------------------------

EVIL = '''"""An app that wants more than it may have."""
from pathlib import Path
from flwr.clientapp import ClientApp
app = ClientApp()
Path({marker!r}).write_text("a site has run this")
@app.query("introduce")
def introduce(message, context):
    Path({marker!r}).write_text("a site has run this")
'''
EVIL_SERVER = '''"""Asks sites for what they did not agree to."""
import json, time
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp
app = ServerApp()
@app.main()
def main(grid, context):
    settings = json.dumps({settings!r})
    said = []
    for kind in ("query.introduce", "query.answer", "train", "query.mine", "evaluate"):
        content = RecordDict({{"facts": ConfigRecord({{"nodes": ["1"], "settings": settings}})}})
        asked = [Message(content, dst_node_id=node, message_type=kind, ttl=60.0) for node in grid.get_node_ids()]
        waiting = [one for one in grid.push_messages(asked) if one]
        while waiting:
            for reply in grid.pull_messages(waiting):
                waiting.remove(reply.metadata.reply_to_message_id)
                facts = reply.content.config_records["facts"] if reply.has_content() else {{}}
                said.append([kind, str(dict(facts))])
            time.sleep(.05)
    Path({said!r}).write_text(json.dumps(said))
'''


def test_a_site_runs_nothing_that_arrives_and_answers_what_its_policy_names(
    network: LocalFederation, tmp_path: Path
) -> None:
    app, marker, said = tmp_path / "evil", tmp_path / "marker", tmp_path / "said.json"
    write_project(app, "evil")
    settings = {"loss": "squared", "penalty": "l1", "lam": 0.1, "alpha": 0.0, "ridge": 0.0, "node": "x0", "label": "y"}
    (app / "federation" / "client_app.py").write_text(EVIL.format(marker=str(marker)))
    (app / "federation" / "server_app.py").write_text(EVIL_SERVER.format(said=str(said), settings=settings))
    network.flwr("run", str(app), "coterie")
    deadline = time.monotonic() + LIMIT
    while not said.exists():
        assert time.monotonic() < deadline, network.log("server").read_text()[-2000:]
        time.sleep(0.2)
    replies = json.loads(said.read_text())
    assert len(replies) == 15
    assert {answer for kind, answer in replies if kind in ("query.introduce", "query.answer")} == {
        f"{{'site': '{name}', 'error': 'columns'}}" for name in ("east", "north")
    }
    assert {answer.partition("error")[2] for kind, answer in replies if "query" not in kind} == {"': 'question'}"}
    assert not marker.exists()


def test_settings_that_a_site_did_not_agree_to_end_the_run_in_a_sentence(network: LocalFederation) -> None:
    with pytest.raises(LocalError, match=r"^site '\w+' has a policy with another loss \(loss\)"):
        network.run(config_of(network.app, loss="logistic"), network.app / "model", lambda line: None)


# --- crashes ----------------------------------------------------------------------------------------------------


def test_a_site_and_the_server_are_killed_and_the_run_is_resumed(network: LocalFederation) -> None:
    first, rounds, again = network.processes["north"], list[int](), list[int]()

    def see(line: dict[str, Any]) -> None:
        if "number" in line:
            rounds.append(line["number"])
            if len(rounds) == 1:
                _kill(network, "north")
            elif network.processes["north"] is not first and line["present"] == 3:
                _kill(network, "server")

    endless = config_of(network.app, tol=0.0, max_rounds=1000)
    with pytest.raises(LocalError, match="the server has died"):
        network.run(endless, network.app / "model", see)
    network.start_server()
    network._wait_for_server()
    last = network.run(
        config_of(network.app, resume=True), network.app / "model", lambda x: again.append(x.get("number"))
    )
    assert last["gap"] <= 1e-6
    assert not last["held"]
    assert again[0] is None or again[0] > rounds[-1]
    check_model(network.app)


def _kill(network: LocalFederation, name: str) -> None:
    os.kill(network.processes[name].pid, signal.SIGKILL)


class Command:
    """`coterie federate run` in a process of its own; its progress is read as it comes."""

    def __init__(self, app: Path, *options: str, **environment: str) -> None:
        coterie = str(Path(sys.executable).with_name("coterie"))
        command = [coterie, "federate", "run", "--local", str(app / "sites"), *options]
        self.app, self.lines = app, list[str]()
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "TMPDIR": str(app.parent), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line)

    def wait_for(self, what: str) -> None:
        deadline = time.monotonic() + LIMIT
        while not any(re.search(what, line) for line in self.lines):
            assert time.monotonic() < deadline, self.lines
            assert self.process.poll() is None, self.lines
            time.sleep(0.05)

    def end(self) -> int:
        code = self.process.wait(LIMIT)
        self.reader.join()
        return code


def processes_of(app: Path, *words: str) -> list[int]:
    """Processes that were started for this federation, with these words among their arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().decode(errors="replace")
            arguments = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        ours = f"TMPDIR={app.parent}" in environment and any(name in arguments for name in ("federate", "fl"))
        if ours and all(word in arguments for word in words):
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_process_behind(end: signal.Signals, tmp_path: Path) -> None:
    app = write_example(tmp_path / "fed")
    command = Command(app)
    command.wait_for("3 sites; logs in")
    command.process.send_signal(end)
    command.process.wait(LIMIT)
    if end == signal.SIGINT:
        assert command.end() == 130
        assert "interrupted" in command.lines[-1]
        assert not processes_of(app)
    deadline = time.monotonic() + LIMIT
    while processes_of(app):
        assert time.monotonic() < deadline
        time.sleep(0.1)


# --- the commands of docs/federation.md, and a stock SuperNode ------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs" / "federation.md"


class Stock(LocalFederation):
    """With the keys that the page makes; north is a stock SuperNode."""

    def start_site(self, site: Path) -> None:
        if site.name != "north":
            super().start_site(site)
            return
        command = _block("supernode").replace("server.example.org:8000", f"localhost:{self.port}")
        command = command.replace("/data/SITE", str(site)).replace("SITE", "keys/north").replace("ca.crt", "tls/ca.crt")
        command = f"cd {self.work}\n{command.replace('flower-supernode', 'exec flower-supernode')}"
        self.processes[site.name] = self.programs.start(self.log(site.name), "bash", "-euc", command)


def _block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```bash\n(.*?)```", DOCS.read_text(), re.S)
    assert found is not None
    return found.group(1)


@pytest.mark.skipif(not (which("openssl") and which("ssh-keygen")), reason="needs openssl and ssh-keygen")
def test_the_keys_of_the_page_and_a_stock_supernode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
        folder.mkdir(parents=True)
        text = _block("certificates").replace("server.example.org", "localhost")
        subprocess.run(["bash", "-euc", text], cwd=folder, check=True, capture_output=True)
        return folder / "ca.crt", folder / "server.crt", folder / "server.key"

    def make_keys(folder: Path, names: list[str]) -> None:
        folder.mkdir(parents=True)
        for name in names:
            text = _block("key").replace("SITE", name)
            subprocess.run(["bash", "-euc", text], cwd=folder, check=True, capture_output=True)

    monkeypatch.setattr("coterie.federation.transport.keys.write_certificates", make_certificates)
    monkeypatch.setattr("coterie.federation.transport.keys.write_keys", make_keys)
    app = write_example(tmp_path / "fed")
    with Stock(app, sorted((app / "sites").iterdir()), tmp_path / "work") as federation:
        present = list[int]()
        config = config_of(app, timeout=120.0, max_rounds=2)
        federation.run(config, app / "model", lambda line: present.append(line.get("present", 3)))
    assert max(present) == 3  # a slow one may miss a round
