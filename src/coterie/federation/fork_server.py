"""Programs that start at once: one process imports what they need, and forks for each of them.

A new interpreter that imports Flower and Coterie takes one to two seconds of processor time, and a federation on one
machine has half a dozen. Requests come as lines of JSON, and each gets a line back. Where forking is not safe, programs
are started as usual. Whatever was started ends with this process, and this process ends with whoever started it, also
by kill -9.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

from coterie.federation.programs import program

FORKS = sys.platform == "linux"  # elsewhere system libraries may have threads that do not survive a fork
GRACE = 0.5  # seconds that programs which are no forks may take to end when asked to
POLL = 0.02
SITE = ("coterie.cli", "coterie.federation.resident")
NEEDS = {  # by the words that a program is started with: what to import before the fork. Polars would start threads.
    ("coterie", "federate", "serve"): (*SITE, "coterie.federation.transport.superlink"),  # its ServerApps solve, too
    ("coterie", "federate", "join"): SITE,
    ("coterie", "federate", "gossip"): ("coterie.cli", "coterie.federation.gossip_life"),
    ("flwr",): ("flwr.cli.app",),
}


class ForkServer:
    """The process, as whoever started it sees it.

    Parameters
    ----------
    environment : mapping
        Of all programs.
    log : Path
        What the process itself has to say goes to the end of this file.
    """

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )

    def start(self, log: Path, *argv: str) -> Program:
        """Start a program; what it says goes to the end of the log."""
        return Program(int(self._ask({"start": argv, "log": str(log)})), self)

    def poll(self, pid: int) -> int | None:
        """The exit code of a program that has ended, negative for a signal."""
        code = self._ask({"poll": pid})
        return None if code is None else int(code)

    def close(self) -> None:
        """End all programs, and the process."""
        self.process.communicate()

    def _ask(self, request: Mapping[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            raise RuntimeError("the process that starts programs has died") from None


class Program:
    """A program that was started."""

    def __init__(self, pid: int, server: ForkServer) -> None:
        self.pid, self.server = pid, server
        self.code: int | None = None

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        if self.code is None:
            self.code = self.server.poll(self.pid)
        return self.code

    def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        while (code := self.poll()) is None:
            time.sleep(POLL)
        return code


def fork() -> int:
    """Fork; the new process is killed when this one ends."""
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    return pid


def serve() -> None:
    """Start programs as they are asked for, until there is nobody left to ask."""
    running: dict[int, bool] = {}  # whether it is a fork
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        for line in sys.stdin:
            request = json.loads(line)
            if "start" in request:
                pid = _start(request["start"], request["log"])
                if pid == 0:
                    running.clear()  # they are the parent's, and so is the pipe
                    answers.close()
                    _become(request["start"])
                running[pid] = _is_forked(request["start"])
                answer: int | None = pid
            else:
                answer = _poll(request["poll"], running)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    finally:
        _end(running)
    os._exit(0)  # nothing is left to tidy up


def _needs(argv: Sequence[str]) -> tuple[str, ...]:
    return next((modules for words, modules in NEEDS.items() if words == tuple(argv[: len(words)])), ())


def _is_forked(argv: Sequence[str]) -> bool:
    return FORKS and bool(_needs(argv))


def _start(argv: Sequence[str], log: str) -> int:
    """Return the id of a new process; 0 in a fork."""
    into = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        if not _is_forked(argv):
            actions = [(os.POSIX_SPAWN_DUP2, into, 1), (os.POSIX_SPAWN_DUP2, into, 2)]
            return os.posix_spawn(program(argv[0]), tuple(argv), os.environ, file_actions=actions)
        for module in _needs(argv):
            import_module(module)
        gc.freeze()  # what all have in common stays where it is: no copies when garbage is looked for
        pid = fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(into, 1)
            os.dup2(into, 2)
        return pid
    finally:
        os.close(into)


def _become(argv: Sequence[str]) -> NoReturn:
    """Be the program, in a fork."""
    sys.argv = list(argv)
    (entry,) = entry_points(group="console_scripts", name=argv[0])
    sys.exit(entry.load()())


def _poll(pid: int, running: dict[int, bool]) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    del running[pid]
    return os.waitstatus_to_exitcode(status)


def _end(running: dict[int, bool]) -> None:
    """End forks at once, since all that they write is whole at any time; others are asked first."""
    for pid, is_fork in running.items():
        os.kill(pid, signal.SIGKILL if is_fork else signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while not all(running.values()) and time.monotonic() < deadline:
        for pid in [pid for pid, is_fork in running.items() if not is_fork]:
            _poll(pid, running)
        time.sleep(POLL)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    serve()
