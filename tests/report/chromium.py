"""A headless Chromium, driven through its DevTools protocol over two pipes: nothing to install but the browser."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((found for found in map(shutil.which, NAMES) if found), None)
TIMEOUT = 60.0
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root in a container
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--enable-unsafe-swiftshader",  # WebGL without a graphics card
    "--hide-scrollbars",
    "about:blank",
)


class Browser:
    """One process, one page at a time; what the page says and asks for is kept in `events`."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        (theirs_in, self.to), (self.back, theirs_out) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out)]
        quiet = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in ((ends[0], 3), (ends[1], 4), (quiet, 1), (quiet, 2))]
        argv = [CHROMIUM, f"--user-data-dir={self.profile}", *FLAGS]
        self.pid = os.posix_spawn(CHROMIUM, argv, dict(os.environ), file_actions=actions, setsid=True)
        for fd in (theirs_in, theirs_out, quiet, *ends):
            os.close(fd)
        self.buffer, self.number, self.session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Load a file in a window of this size and forget what went before."""
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        deadline = time.monotonic() + TIMEOUT
        while not self.of("Page.loadEventFired"):
            self._receive(deadline)

    def run(self, script: str) -> Any:
        """Evaluate JavaScript; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, script: str) -> Any:
        """Evaluate JavaScript until it gives something."""
        deadline = time.monotonic() + TIMEOUT
        while not (value := self.run(script)):
            assert time.monotonic() < deadline, f"never came true: {script}"
            time.sleep(0.05)
        return value

    def move_mouse(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def of(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event["method"] == method]

    def complaints(self) -> list[Any]:
        """Errors and warnings of the page, and exceptions; what a graphics driver warns of does not count."""
        said = [e for e in self.of("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")]
        logged = [e["entry"] for e in self.of("Log.entryAdded") if e["entry"]["level"] == "error"]
        return said + logged + self.of("Runtime.exceptionThrown")

    def requests(self) -> list[str]:
        return [event["request"]["url"] for event in self.of("Network.requestWillBeSent")]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while (answer := self._receive(deadline)).get("id") != self.number:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(deadline - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            piece = os.read(self.back, 1 << 20)
            assert piece, "the browser has ended"
            self.buffer += piece
        line, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)
