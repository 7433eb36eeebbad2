"""Runs the ServerApps that are submitted to a SuperLink, as Flower's SuperExec does, each in a fork.

SuperExec starts two interpreters one after the other, which import what this process has imported before anyone asks.
Like `superlink.py` this is for one version of Flower.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import httpx
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor, SuperExecAuthHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.superlink.cli import flwr_serverapp

from coterie.federation.fork_server import fork

LOOK = 0.2  # seconds between two looks for a task
SIGNED = "/flwr.proto.Runtime/AcquireTask"  # who asks for a task proves that it knows the secret


def run_server_apps(address: str, ca: Path, secret: bytes) -> NoReturn:
    """Take tasks for ever, and run each in a process of its own; calls for tasks are signed with the secret."""
    import coterie.federation.server_app  # noqa: F401  (what most apps need)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # how they end is between them and the SuperLink
    signing = SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=[SIGNED])
    interceptors = [RuntimeVersionHttpInterceptor("SuperExec"), signing]
    client = RuntimeHttpClient.from_server_address(address, False, ca.read_bytes(), interceptors)
    wanted = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
    while True:
        try:
            task = client.AcquireTask(wanted)
            if task.token and fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                options = ["--runtime-api-address", address, "--root-certificates", str(ca), "--token", task.token]
                sys.argv = ["flwr-serverapp", *options]
                sys.exit(flwr_serverapp())
        except httpx.HTTPError:
            pass  # the SuperLink is not there yet
        time.sleep(LOOK)
