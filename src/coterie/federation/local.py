"""A whole federation on this machine: a SuperLink, a SuperNode for every site, and one run.

Nothing contacts an outside host, and every process that is started is ended, whatever happens.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from coterie.io.files import MissingExtraError

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
NAME = "coterie-local"  # of the SuperLink in Flower's own configuration
START = 60.0  # seconds that the SuperLink may take
END = 10.0  # seconds that a process may take to end when asked to
POLL = 0.2
AGAIN = 5.0  # seconds between two starts of the same SuperNode
LOOK = 15.0  # seconds between two looks at the state of a silent run


class LocalError(RuntimeError):
    """Something that was started did not do its work; the message says what, and where its log is."""


@dataclass(eq=False)
class LocalFederation:
    """Processes on loopback; use it in a with statement.

    Parameters
    ----------
    app : Path
        The folder of the Flower app.
    sites : sequence of Path
        A folder for every site.
    work : Path
        Where logs, and Flower's own files, go.
    superlink_options, supernode_options
        More command-line options, those of SuperNodes by the name of the site: certificates and keys for --insecure.
    connection : mapping
        How Flower's own commands reach the SuperLink.
    public_keys : sequence of Path
        Of SuperNodes that may take part, where they are authenticated.
    """

    app: Path
    sites: Sequence[Path]
    work: Path
    superlink_options: Sequence[str] = ("--insecure",)
    supernode_options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    connection: Mapping[str, Any] = field(default_factory=lambda: {"insecure": True})
    public_keys: Sequence[Path] = ()
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    again: dict[str, float] = field(default_factory=dict)  # when a SuperNode may be started again

    def __enter__(self) -> LocalFederation:
        self.work.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._configure()
        try:
            self.start_superlink()
            for key in self.public_keys:
                self.flwr("supernode", "vector_buffer", str(key), NAME)
            for site in self.sites:
                self.start_supernode(site)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def environment(self) -> dict[str, str]:
        beside = Path(program("flwr")).parent  # programs of Flower start each other by name
        path = f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, **QUIET, "FLWR_HOME": str(self.work / "flwr"), "PATH": path}

    def start_superlink(self) -> None:
        """Start the SuperLink and wait until it listens."""
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--disable-runtime-dependency-installation"]
        self._start("superlink", [program("flower-superlink"), *options, *self.superlink_options])
        deadline = time.monotonic() + START
        while not _listens(self.port):
            if self.processes["superlink"].poll() is not None or time.monotonic() > deadline:
                raise LocalError(f"the SuperLink did not start; its log is {self.log('superlink')}")
            time.sleep(POLL)

    def start_supernode(self, site: Path) -> None:
        """Start the SuperNode of a site."""
        options = ["--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port())]
        more = self.supernode_options.get(site.name, ("--insecure",))
        folder = json.dumps(str(site.resolve()))
        self._start(site.name, [program("flower-supernode"), *options, *more, "--node-config", f"folder={folder}"])

    def flwr(self, *arguments: str) -> str:
        """Run one of Flower's own commands and return what it prints."""
        done = subprocess.run(
            [program("flwr"), *arguments], env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalError(f"flwr {arguments[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stdout

    def run(self, config: Mapping[str, Any], out: Path, see: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Submit the app, show every line of progress to `see`, and return the last one.

        Raises
        ------
        LocalError
            When the run ends without a model.
        """
        progress = out / "progress.jsonl"
        progress.unlink(missing_ok=True)
        override = self.work / "run.toml"
        override.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items()))
        self.flwr("run", str(self.app), NAME, "--run-config", str(override))
        for line in self._lines(progress):
            if "error" in line:
                raise LocalError(str(line["error"]))
            see(line)
            if "done" in line:
                return line
        raise LocalError(f"the run ended without a model; its log is {self.log('superlink')}")

    def _lines(self, path: Path) -> Iterator[dict[str, Any]]:
        """Lines of progress as they come, until the run is over, and those that it wrote while it was asked whether."""
        seen, looked, over = 0, time.monotonic(), False
        while True:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
            for line in lines[seen:]:
                yield json.loads(line)
                looked = time.monotonic()
            seen = len(lines)
            if over:
                return
            if self.processes["superlink"].poll() is not None:
                raise LocalError("the SuperLink has died; the same command goes on from the last checkpoint")
            self._tend()
            if time.monotonic() - looked > LOOK:
                looked = time.monotonic()
                over = "finished" in self.flwr("list", NAME)
            time.sleep(POLL)

    def _tend(self) -> None:
        """Start SuperNodes that have died again, but not at once: one with a key is refused for about a minute."""
        for site in self.sites:
            if self.processes[site.name].poll() is not None and time.monotonic() > self.again.get(site.name, 0.0):
                self.again[site.name] = time.monotonic() + AGAIN
                self.start_supernode(site)

    def stop(self) -> None:
        """End all processes that were started, and what they started."""
        families = [_family(process.pid) for process in self.processes.values()]
        for process in self.processes.values():
            process.terminate()
        for process, family in zip(self.processes.values(), families, strict=True):
            with suppress(subprocess.TimeoutExpired):
                process.wait(END)
            _kill(family)
            process.wait()
        _kill(_orphans(self.environment["FLWR_HOME"]))
        self.processes.clear()

    def log(self, name: str) -> Path:
        return self.work / f"{name}.log"

    def _start(self, name: str, command: Sequence[str]) -> None:
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _configure(self) -> None:
        home = self.work / "flwr"
        home.mkdir(exist_ok=True)
        lines = [f"[superlink.{NAME}]", f'address = "127.0.0.1:{self.port}"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in self.connection.items()]
        (home / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def program(name: str) -> str:
    """The path of one of Flower's programs, in this environment before any other."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise MissingExtraError("a federation needs Flower: pip install 'coterie[flower]'")
    return found


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def ends_by_signal() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that whatever was started is ended."""

    def end(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _family(pid: int) -> list[int]:
    """A process and all that it started, and that they started: Flower gives each a session of its own."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[int]] = {}
    for child, parent in (map(int, line.split()) for line in listed.splitlines()):
        children.setdefault(parent, []).append(child)
    family = [pid]
    for member in family:
        family += children.get(member, [])
    return family


def _orphans(home: str) -> list[int]:
    """Processes of a federation whose parents were killed, where the system shows environments: they carry its home."""
    found, mark = [], f"FLWR_HOME={home}\0".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environment.read_bytes() + b"\0":
                found.append(int(environment.parent.name))
    return found


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
