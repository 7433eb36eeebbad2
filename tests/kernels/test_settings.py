"""What is set for our kernels stays with them, and what the user sets counts."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest

from coterie.kernels.compiling import OPTIONS
from coterie.kernels.team import Team, cores


def test_kernels_of_the_user_are_compiled_with_his_own_settings() -> None:
    """In a new process: the pass that our kernels need is off before and after them, and on while they are compiled."""
    script = """
import numba
from numba.core import event
import coterie.kernels.norms as norms

seen = {}

class Listener(event.Listener):
    def on_start(self, event): seen[event.data["dispatcher"].py_func.__name__] = numba.config.SLP_VECTORIZE
    def on_end(self, event): pass

event.register("numba:compile", Listener())

@numba.njit
def theirs(x):
    return x + 1

@numba.njit
def ours(x):
    return x + 1

ours.py_func.__module__ = "coterie.kernels.anything"
assert numba.config.SLP_VECTORIZE == 0
ours(1.0)
theirs(1.0)
assert seen == {"ours": 1, "theirs": 0}, seen
assert numba.config.SLP_VECTORIZE == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert "nogil" in OPTIONS


@pytest.mark.parametrize("name", ["NUMBA_NUM_THREADS", "OMP_NUM_THREADS"])
def test_fewer_threads_where_the_environment_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert cores() == 1
    assert Team(None, 10**7, 10).T == 1
    assert Team(3, 10**7, 10).T == 3  # who asks for three gets three
    monkeypatch.setenv(name, "many")
    assert 1 <= cores() <= (os.cpu_count() or 1)
    assert numba.config.SLP_VECTORIZE == 0  # type: ignore[attr-defined]
