"""Every solver that is installed agrees with Coterie. Each runs in a process of its own, as in the benchmark."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.families import FAMILIES
from benchmarks.models import noisy_image
from benchmarks.peers import PEERS
from benchmarks.results import Result, measure, read

TINY = 0.02
TINIER = 0.002  # for the paper's steps, which take tens of thousands of iterations
OTHERS = [name for name in PEERS if name != "Coterie"]


def tiny(family: str):
    return FAMILIES[family].build(TINY, 0)


@cache
def reference(family: str, scale: float) -> float:
    return measure(family, "reference", scale=scale).runs[0].objective


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "family"),
    [  # the paper's steps take long, and tests/solver/test_algorithm1.py has every loss
        (name, family)
        for name in OTHERS
        for family in ("d", "c-lasso", "c-logistic")
        if name != "Algorithm 1" or family == "d"
    ],
)
def test_agrees_with_coterie(name, family):
    peer, problem = PEERS[name], tiny(family)
    if not peer.installed:
        pytest.skip(f"{peer.needs} is not installed")
    if peer.refuses(problem):
        pytest.skip(peer.refuses(problem))
    scale = TINIER if name == "Algorithm 1" else TINY
    optimum = reference(family, scale)
    result = measure(family, name, scale=scale, optimum=optimum, limit=60.0)
    assert not result.trouble
    assert result.runs[-1].objective == pytest.approx(optimum, rel=1.01e-6)
    assert result.seconds_to(1e-6, optimum) > 0


@pytest.mark.slow
def test_coterie_is_measured_with_its_certificate():
    result = measure("e", "Coterie", scale=TINY)
    assert [run.setting for run in result.runs] == [1e-4, 1e-6, 1e-8]
    assert all(run.gap <= run.setting for run in result.runs)
    assert all(run.peak_mb > 10 for run in result.runs)


def test_a_solver_that_runs_out_of_time_is_ended():
    result = measure("a", "Algorithm 1", optimum=0.0, limit=0.2, scale=TINY)
    assert result.trouble == "over 0.2 s"
    assert result.out_of_time
    assert read("", -24, "", Result("a", "PDLP (dual)", (), limit=180.0)).trouble == "over 180 s"


def test_who_refuses_what():
    refusals = {name: bool(peer.refuses(tiny("b-logistic"))) for name, peer in PEERS.items()}
    assert [name for name, refuses in refusals.items() if not refuses] == ["Coterie", "Algorithm 1", "CVXPY + Clarabel"]
    assert noisy_image(tiny("d")).shape == (42, 42)
    assert noisy_image(tiny("c")) is None
    assert "dense" in PEERS["pycut_pursuit"].refuses(FAMILIES["c"].build(1.0, 0))
