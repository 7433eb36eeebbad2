"""A whole federation on this machine: a server, a resident site for every folder, and one run.

The same processes as on separate machines, with TLS and keys, on loopback. Nothing contacts an outside host, and every
process that is started is ended, whatever happens.
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
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from coterie.io.files import MissingExtraError

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
NAME = "coterie"  # of the SuperLink in Flower's own configuration
START = 60.0  # seconds that the server may take
END = 10.0  # seconds that a process may take to end when asked to
POLL = 0.1
AGAIN = 5.0  # seconds between two starts of the same site
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
        Where logs, keys, and Flower's own files go.
    """

    app: Path
    sites: Sequence[Path]
    work: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    again: dict[str, float] = field(default_factory=dict)  # when a site may be started again

    def __enter__(self) -> LocalFederation:
        needs_flower({})
        from coterie.federation.transport.keys import write_certificates, write_keys

        self.work.mkdir(parents=True, exist_ok=True)
        self.port, self.control_port = free_port(), free_port()
        self.tls = write_certificates(self.work / "tls")
        write_keys(self.work / "keys", [site.name for site in self.sites])
        try:
            self.start_server()
            for site in self.sites:
                self.start_site(site)
            self._wait_for_server()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def home(self) -> Path:
        """Flower's own folder."""
        return self.work / "superlink" / "flwr"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **QUIET, "FLWR_HOME": str(self.home)}

    def start_server(self) -> None:
        """Start the server."""
        ca, certificate, private = map(str, self.tls)
        self._start(
            "server",
            *("serve", "--host", "127.0.0.1", "--port", str(self.port), "--control-port", str(self.control_port)),
            *("--ca", ca, "--certificate", certificate, "--private-key", private),
            *("--keys", str(self.work / "keys"), "--state", str(self.work / "superlink")),
        )

    def _wait_for_server(self) -> None:
        deadline = time.monotonic() + START
        while not _listens(self.control_port):
            if self.processes["server"].poll() is not None or time.monotonic() > deadline:
                raise LocalError(f"the server did not start: {self._last_words('server')}")
            time.sleep(POLL)

    def start_site(self, site: Path) -> None:
        """Start the process of a site."""
        folder, key = str(site.resolve()), str(self.work / "keys" / site.name)
        options = ["--folder", folder, "--name", site.name, "--root-certificates", str(self.tls[0]), "--key", key]
        self._start(site.name, "join", f"127.0.0.1:{self.port}", *options)

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
        started = json.loads(self.flwr("run", str(self.app), NAME, "--run-config", str(override), "--format", "json"))
        if "run-id" not in started:
            raise LocalError(f"the run could not be started: {started}")
        for line in self._lines(progress, str(started["run-id"])):
            if "error" in line:
                raise LocalError(str(line["error"]))
            see(line)
            if "done" in line:
                return line
        raise LocalError(f"the run ended without a model; its log is {self.log('server')}")

    def _lines(self, path: Path, run_id: str) -> Iterator[dict[str, Any]]:
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
            if self.processes["server"].poll() is not None:
                raise LocalError("the server has died; the same command goes on from the last checkpoint")
            self._tend()
            if time.monotonic() - looked > LOOK:
                looked = time.monotonic()
                over = "finished" in self.flwr("list", NAME, "--run-id", run_id)
            time.sleep(POLL)

    def _tend(self) -> None:
        """Start sites that were killed again, but not at once: a key that seems to be there is refused for a while."""
        for site in self.sites:
            code = self.processes[site.name].poll()
            if code is None or time.monotonic() < self.again.get(site.name, 0.0):
                continue
            if code > 0:
                raise LocalError(f"site {site.name!r} cannot take part: {self._last_words(site.name)}")
            self.again[site.name] = time.monotonic() + AGAIN
            self.start_site(site)

    def _last_words(self, name: str) -> str:
        """The last line that a process wrote, and where the others are."""
        lines = self.log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{lines[-1].removeprefix('coterie: ') if lines else 'it said nothing'} (its log is {self.log(name)})"

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

    def _start(self, name: str, *arguments: str) -> None:
        command = [program("coterie"), "federate", *arguments]
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )


def needs_flower(environment: Mapping[str, str]) -> None:
    """Prepare this process, and all that it starts, for Flower, if it is installed.

    Raises
    ------
    MissingExtraError
    """
    if find_spec("flwr") is None:
        raise MissingExtraError("a federation needs Flower: pip install 'coterie[flower]'")
    beside = Path(program("flwr")).parent  # programs of Flower start each other by name
    os.environ.update(environment)
    if str(beside) not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"


def write_connection(home: Path, control_port: int, ca: Path) -> None:
    """Tell Flower's own commands how they reach the control port."""
    lines = [
        f"[superlink.{NAME}]",
        f'address = "127.0.0.1:{control_port}"',
        f"root-certificates = {json.dumps(str(ca))}",
    ]
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
