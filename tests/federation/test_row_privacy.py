"""Differential privacy of single rows: noisy moments, released once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import coterie as ct
from coterie.federation import dp_moments
from coterie.federation.dp_moments import SENSITIVITY, RowPrivacy, numpy_noisy
from coterie.federation.release_log import BudgetError
from coterie.federation.released_rows import RELEASED, promised_rows
from coterie.federation.simulate import simulate
from problems import instance

pytest.importorskip("dp_accounting", reason="needs the extra coterie[privacy]")

THREE = np.arange(12) // 4


def no_noise(values: np.ndarray, scale: float) -> np.ndarray:
    return values


@given(st.integers(0, 10_000))
def test_one_row_in_the_place_of_another_moves_the_moments_by_the_sensitivity_at_most(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((8, 3)) * 10.0 ** rng.uniform(-2, 2), rng.standard_normal(8) * 10.0 ** rng.uniform(-2, 2)
    other = X.copy(), y.copy()
    other[0][3], other[1][3] = rng.standard_normal(3) * 10.0 ** rng.uniform(-2, 2), -10 * y[3]
    seen: list[np.ndarray] = []

    def see(values: np.ndarray, scale: float) -> np.ndarray:
        seen.append(values)
        return values

    for rows in ((X, y), other):
        RowPrivacy(1.0, x_clip=2.0, y_clip=0.5).release(
            ct.LocalDatasets.from_rows(*rows, np.repeat([0, 1], 4), n_nodes=2), see
        )
    assert np.linalg.norm(seen[0] - seen[1]) <= SENSITIVITY * (1 + 1e-12)
    assert (seen[0][1] == seen[1][1]).all() == (np.arange(8)[3] < 4)


def test_the_noise_is_what_the_promise_needs() -> None:
    """δ(ε) of one Gaussian mechanism in closed form: Φ(1/2z − εz) − exp(ε) Φ(−1/2z − εz)."""
    for epsilon in (0.5, 3.0):
        z = RowPrivacy(epsilon, 1e-5).noise
        delta = norm.cdf(0.5 / z - epsilon * z) - np.exp(epsilon) * norm.cdf(-0.5 / z - epsilon * z)
        assert delta == pytest.approx(1e-5, rel=1e-3)
    drawn: list[float] = []
    problem = instance()
    RowPrivacy(1.0).release(problem.data, lambda values, scale: drawn.append(scale) or values)  # type: ignore[func-returns-value]
    assert drawn == [SENSITIVITY * RowPrivacy(1.0).noise]


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(0.1)], ids=str)
def test_without_noise_and_clipping_the_released_rows_are_the_same_problem(loss: ct.Loss) -> None:
    problem = instance("few labelled", loss)
    wide = RowPrivacy(1.0, x_clip=1e3, y_clip=1e3)
    released = ct.Problem(problem.graph, wide.release(problem.data, no_noise), loss, lam=problem.lam)
    w = np.random.default_rng(0).standard_normal((12, problem.n_features))
    assert released.objective(w) == pytest.approx(problem.objective(w), rel=1e-6)
    assert (released.M == problem.M).all()


def test_noisy_problems_keep_their_certificate() -> None:
    problem = instance()
    noisy = RowPrivacy(3.0, x_clip=3.0, y_clip=5.0).release(problem.data, numpy_noisy(np.random.default_rng(0)))
    released = ct.Problem(problem.graph, noisy, lam=problem.lam)
    outcome = simulate(released, THREE).outcome
    assert outcome.gap <= 1e-6
    assert outcome.objective == pytest.approx(ct.solve(released, 1e-8).objective, rel=1e-5)


def test_opendp_draws_the_noise_where_it_is_installed() -> None:
    pytest.importorskip("opendp", reason="needs the extra coterie[privacy]")
    noise = dp_moments.opendp_noisy(np.zeros((20, 50)), 3.0)
    assert noise.shape == (20, 50)
    assert 2.5 < noise.std() < 3.5


@pytest.mark.parametrize("change", [{"epsilon": -1.0}, {"delta": 0.0}, {"x_clip": 0.0}, {"y_clip": np.inf}])
def test_settings_that_promise_nothing_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="row-privacy-"):
        RowPrivacy(**{"epsilon": 1.0, **change})  # type: ignore[arg-type]


# --- the release of a site -------------------------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Where OpenDP is not installed, NumPy draws; how often is counted."""
    count: list[float] = []
    rng = np.random.default_rng(0)

    def noisy(values: np.ndarray, scale: float) -> np.ndarray:
        count.append(scale)
        return values + scale * rng.standard_normal(values.shape)

    monkeypatch.setattr(dp_moments, "opendp_noisy", noisy)
    return count


def test_rows_are_released_once(tmp_path: Path, drawn: list[float]) -> None:
    data, privacy = instance().data, RowPrivacy(1.0)
    first, again = (promised_rows(tmp_path, data, privacy) for _ in range(2))
    assert (first.X == again.X).all()
    assert len(drawn) == 1
    with pytest.raises(BudgetError, match="answers from its released moments only"):
        promised_rows(tmp_path, data, None)
    with pytest.raises(BudgetError, match="other settings"):
        promised_rows(tmp_path, data, RowPrivacy(2.0))
    with pytest.raises(BudgetError, match="other rows"):
        promised_rows(tmp_path, instance("few labelled").data, privacy)
    (tmp_path / RELEASED).unlink()
    assert promised_rows(tmp_path, data, None) is data


def test_a_federation_of_released_rows_says_what_its_certificate_is_of(tmp_path: Path, drawn: list[Any]) -> None:
    pytest.importorskip("flwr", reason="needs the extra coterie[flower]")
    from coterie.federation.project import write_sites
    from coterie.federation.server_app import run
    from flower_grid import CONFIG, InProcessGrid

    problem, names = instance(), ("east", "north", "west")
    write_sites(tmp_path, problem, THREE, names)
    private = {
        "row-privacy-epsilon": 5.0,
        "row-privacy-delta": 1e-5,
        "row-privacy-x-clip": 3.0,
        "row-privacy-y-clip": 5.0,
    }
    places = {"graph": str(tmp_path / "graph.csv"), "out": str(tmp_path / "model")}
    config = {**CONFIG, **places, **private, "ridge": 0.1, "max-rounds": 4}
    (tmp_path / "model").mkdir()
    outcome = run(InProcessGrid([tmp_path / "sites" / name for name in names], config), config, tmp_path / "model")  # type: ignore[arg-type]
    assert np.isfinite(outcome.gap)
    model = ct.load(tmp_path / "model")
    assert "noisy problem" in model.solution_.condition
    assert model.notes_["federation"]["privacy"]["epsilon"] == 5.0
    assert len(drawn) == 3
