"""Real SuperLink, SuperNodes and processes, on loopback: minutes, not seconds."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

import coterie as ct
from coterie.federation.local import LocalFederation
from coterie.federation.project import write_project
from coterie.federation.site_files import Settings, SiteFiles, read_edges

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"),
]

LAM = 0.05  # takes four rounds
LIMIT = 420.0  # seconds for one run, on a slow machine
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


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "fed"
    write_project(folder, "fed")
    config = folder / "pyproject.toml"
    text = config.read_text().replace("lam = 0.01", f"lam = {LAM}").replace("timeout = 180.0", "timeout = 75.0")
    config.write_text(text)
    return folder


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
            time.sleep(0.2)

    def end(self) -> int:
        code = self.process.wait(LIMIT)
        self.reader.join()
        return code


def processes_of(app: Path, *words: str) -> list[int]:
    """Processes of Flower that were started for this federation, with these words among their arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().decode(errors="replace")
            arguments = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        ours = f"TMPDIR={app.parent}" in environment and any(name in arguments for name in ("flower-", "flwr"))
        if ours and all(word in arguments for word in words):
            found.append(int(folder.name))
    return found


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


def test_processes_are_killed_the_run_is_resumed_and_nobody_is_called(app: Path, tmp_path: Path) -> None:
    """A SuperNode that is killed comes back; after the SuperLink, the same command goes on where it was."""
    watch = tmp_path / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(WATCH)
    path = os.pathsep.join([str(watch), *filter(None, [os.environ.get("PYTHONPATH")])])
    watched = {"PYTHONPATH": path, "WATCHED": str(tmp_path / "outside.txt")}
    first = Command(app, **watched)
    first.wait_for("round   1 ")
    (victim,) = processes_of(app, "flower-supernode", str(app / "sites" / "north"))
    os.kill(victim, signal.SIGKILL)
    first.wait_for("round   [2-9] .*sites 3 of 3")
    (victim,) = processes_of(app, "flower-superlink")
    os.kill(victim, signal.SIGKILL)
    assert first.end() == 1
    assert any("SuperLink has died" in line for line in first.lines)
    again = Command(app, **watched)
    assert again.end() == 0, again.lines
    assert not any("round   1 " in line for line in again.lines)
    assert not (tmp_path / "outside.txt").exists(), (tmp_path / "outside.txt").read_text()
    assert not processes_of(app)
    check_model(app)


def test_ctrl_c_leaves_nothing_behind(app: Path) -> None:
    command = Command(app)
    command.wait_for("3 sites; logs in")
    command.process.send_signal(signal.SIGINT)
    assert command.end() == 130
    assert "interrupted" in command.lines[-1]
    assert not processes_of(app)


# --- TLS and authenticated SuperNodes, with the commands of docs/federation.md ---------------------------------

DOCS = Path(__file__).parents[2] / "docs" / "federation.md"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Certificates and keys, made by the commands that the page shows."""
    folder = tmp_path / "keys"
    folder.mkdir()
    script = re.search(r"<!-- keys -->\n```bash\n(.*?)```", DOCS.read_text(), re.S)
    assert script is not None
    for name in ("east", "north", "west"):
        text = script.group(1).replace("server.example.org", "localhost").replace("SITE", name)
        subprocess.run(["bash", "-euc", text], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.skipif(not (which("openssl") and which("ssh-keygen")), reason="needs openssl and ssh-keygen")
def test_authenticated_supernodes_over_tls(app: Path, keys: Path, tmp_path: Path) -> None:
    sites = sorted((app / "sites").iterdir())
    state = ["--database", str(tmp_path / "state.db"), "--enable-supernode-auth"]
    certificates = ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key"]
    certificates = [str(keys / part) if part.endswith(("crt", "key")) else part for part in certificates]
    options = {
        site.name: ["--root-certificates", str(keys / "ca.crt"), "--auth-supernode-private-key", str(keys / site.name)]
        for site in sites
    }
    federation = LocalFederation(
        app,
        sites,
        tmp_path / "work",
        [*certificates, *state],
        options,
        {"root-certificates": str(keys / "ca.crt")},
        [keys / f"{site.name}.pub" for site in sites],
    )
    config = {"sites": 3, "graph": str(app / "graph.csv"), "out": str(app / "model"), "timeout": 180.0}

    def see(line: dict[str, Any]) -> None:
        if line.get("number") == 1:
            os.kill(federation.processes["north"].pid, signal.SIGKILL)

    with federation:
        last = federation.run(config, app / "model", see)
    assert last["gap"] <= 1e-6
    assert not last["held"]
    check_model(app)
