from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import coterie as ct
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.messages import ProxRequest
from coterie.federation.release_log import RELEASE_LOG, BudgetError, check_promise, noise_for
from coterie.federation.simulate import simulate
from problems import instance

THREE = np.arange(12) // 4
ALMOST_NONE = 1e-12  # of noise


@given(st.floats(0.01, 100), st.floats(0, 1e6), st.integers(0, 5))
def test_without_noise_nothing_moves_further_than_the_clip(clip: float, length: float, b: int) -> None:
    rng = np.random.default_rng(0)
    v, change = rng.standard_normal((2, b, 3))
    w = v + length * change
    moved = Privacy(ALMOST_NONE, clip).release(w, v, rng) - v
    assert np.linalg.norm(moved) <= clip * (1 + 1e-6)
    if np.linalg.norm(w - v) <= clip:
        np.testing.assert_allclose(moved, w - v, atol=1e-8)


def test_noise_has_the_standard_deviation_that_is_accounted_for() -> None:
    v = np.zeros((1, 200_000))
    noise = Privacy(0.7, clip=3.0).release(v, v, np.random.default_rng(0))
    assert noise.std() == pytest.approx(2 * 3.0 * 0.7, rel=0.01)
    assert abs(noise.mean()) < 0.05


@pytest.mark.parametrize(("noise", "rounds"), [(10.0, 20), (4.0, 5)])
def test_epsilon_is_that_of_the_composition(noise: float, rounds: int) -> None:
    """For Gaussian noise δ(ε) is known in closed form: Φ(μ/2 − ε/μ) − exp(ε) Φ(−μ/2 − ε/μ), with μ = √rounds/noise."""
    pytest.importorskip("dp_accounting", reason="needs the extra coterie[privacy]")
    epsilon = Privacy(noise, rounds=rounds, delta=1e-5).epsilon
    mu = np.sqrt(rounds) / noise
    delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": -1.0}, "privacy-noise must be positive, got -1.0"),
        ({"clip": 0.0}, "privacy-clip must be positive"),
        ({"rounds": 0}, "privacy-rounds must be at least 1"),
        ({"delta": 1.0}, "privacy-delta must lie between 0 and 1"),
    ],
)
def test_settings_that_promise_nothing_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Privacy(**{"noise": 1.0, **change})  # type: ignore[arg-type]


def test_privacy_is_off_unless_noise_is_asked_for() -> None:
    assert Privacy.of({}) is None
    assert Privacy.of({"privacy-noise": 0.0}) is None


def test_without_noise_plain_rounds_go_towards_the_optimum() -> None:
    problem = instance()
    best = ct.solve(problem, 1e-9).objective
    few, many = (simulate(problem, THREE, privacy=Privacy(ALMOST_NONE, 1e3, rounds)) for rounds in (3, 20))
    assert problem.objective(many.w) - best < 0.5 * (problem.objective(few.w) - best)
    assert problem.objective(many.w) <= 1.05 * best


def test_a_private_run_has_a_fixed_number_of_rounds_and_no_certificate() -> None:
    problem = instance()
    run = simulate(problem, THREE, privacy=Privacy(1.0, rounds=4), seed=1)
    again, other = (simulate(problem, THREE, privacy=Privacy(1.0, rounds=4), seed=seed) for seed in (1, 2))
    assert run.outcome.rounds == 4
    assert run.outcome.status is ct.Status.ITERATIONS_DONE
    assert np.isnan([run.outcome.gap, run.outcome.objective, run.outcome.dual_bound]).all()
    assert "no certificate" in run.outcome.condition
    assert (run.outcome.boundary == again.outcome.boundary).all()
    assert (run.outcome.boundary != other.outcome.boundary).all()


# --- the release log of a site ---------------------------------------------------------------------------------

PRIVACY = Privacy(1.0, rounds=2)


def asked(number: float) -> ProxRequest:
    return ProxRequest(np.full((2, 3), number), np.ones(2), np.inf)


def draw(folder: Path, number: float, privacy: Privacy = PRIVACY, problem: ct.Problem | None = None) -> float:
    rng = noise_for(folder, privacy, instance() if problem is None else problem, asked(number), ["a", "b"])
    return float(rng.standard_normal())


def test_the_same_request_gets_the_same_noise_and_counts_once(tmp_path: Path) -> None:
    assert draw(tmp_path, 1.0) == draw(tmp_path, 1.0) == draw(tmp_path, 1.0)
    assert draw(tmp_path, 2.0) != draw(tmp_path, 1.0)


def test_no_more_answers_than_were_accounted_for(tmp_path: Path) -> None:
    draw(tmp_path, 1.0)
    draw(tmp_path, 2.0)
    with pytest.raises(BudgetError, match="has released all of its 2 private answers"):
        draw(tmp_path, 3.0)
    assert draw(tmp_path, 2.0) == draw(tmp_path, 2.0)


def test_noise_is_not_shared_by_other_data_or_other_sites(tmp_path: Path) -> None:
    one = draw(tmp_path, 1.0)
    assert one != draw(tmp_path, 1.0, problem=instance(lam=0.123))
    (tmp_path / "other").mkdir()
    assert one != draw(tmp_path / "other", 1.0)


def test_noise_is_not_shared_by_other_exposures_or_other_digits(tmp_path: Path) -> None:
    """The difference of two answers with one noise would have none."""
    data = instance().data
    known = [
        ct.LocalDatasets.from_rows(data.X, data.y, data.nodes, data.n_nodes, offset=np.full(len(data.y), x))
        for x in (0.0, 1.0)
    ]
    one, other = (replace(instance(), data=rows) for rows in known)
    assert draw(tmp_path, 1.0, problem=one) != draw(tmp_path, 1.0, problem=other)
    (tmp_path / "rounded").mkdir()
    drawn = [noise_for(tmp_path / "rounded", PRIVACY, one, asked(1.0), ["a", "b"], step).random() for step in (0, 0.1)]
    assert drawn[0] != drawn[1]


def test_a_promise_is_kept_until_the_release_log_is_removed(tmp_path: Path) -> None:
    check_promise(tmp_path, None)
    assert not (tmp_path / RELEASE_LOG).exists()
    draw(tmp_path, 1.0)
    check_promise(tmp_path, PRIVACY)
    with pytest.raises(BudgetError, match="answers with differential privacy only"):
        check_promise(tmp_path, None)
    with pytest.raises(BudgetError, match="has promised the privacy"):
        draw(tmp_path, 1.0, Privacy(0.5, rounds=2))
    (tmp_path / RELEASE_LOG).unlink()
    check_promise(tmp_path, None)
