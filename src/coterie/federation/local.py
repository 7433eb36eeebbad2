"""A whole federation on this machine: a server, a resident site for every folder, and one run.

The same processes as on separate machines, with TLS and keys, on loopback. Nothing contacts an outside host, and every
process that is started is ended, whatever happens.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from coterie.federation.fork_server import ForkServer, Program
from coterie.federation.programs import QUIET, needs_flower

NAME = "coterie"  # of the SuperLink in Flower's own configuration
START = 60.0  # seconds that the server may take
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
    processes: dict[str, Program] = field(default_factory=dict)
    again: dict[str, float] = field(default_factory=dict)  # when a site may be started again

    def __enter__(self) -> LocalFederation:
        needs_flower({})
        from coterie.federation.transport.keys import write_certificates, write_keys

        self.work.mkdir(parents=True, exist_ok=True)
        self.programs = ForkServer(self.environment, self.log("programs"))
        self.port, self.control_port = free_port(), free_port()
        try:
            self.tls = write_certificates(self.work / "tls")
            write_keys(self.work / "keys", [site.name for site in self.sites])
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
        said = self.log("flwr")
        said.unlink(missing_ok=True)
        code = self.programs.start(said, "flwr", *arguments).wait()
        text = said.read_text(encoding="utf-8")
        if code:
            raise LocalError(f"flwr {arguments[0]} failed: {text.strip()[-500:]}")
        return text

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
        said = self.flwr("run", str(self.app), NAME, "--run-config", str(override), "--format", "json")
        started, _ = json.JSONDecoder().raw_decode(said[max(said.find("{"), 0) :] or "{}")
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
        """End all processes that were started."""
        self.programs.close()
        self.processes.clear()

    def log(self, name: str) -> Path:
        return self.work / f"{name}.log"

    def _start(self, name: str, *arguments: str) -> None:
        self.processes[name] = self.programs.start(self.log(name), "coterie", "federate", *arguments)


def write_connection(home: Path, control_port: int, ca: Path) -> None:
    """Tell Flower's own commands how they reach the control port."""
    lines = [
        f"[superlink.{NAME}]",
        f'address = "127.0.0.1:{control_port}"',
        f"root-certificates = {json.dumps(str(ca))}",
    ]
    (home / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
