"""Intervals for times to come and for new places: what they are calibrated by, whom they are for, what they cover."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import coterie as ct

PLACES, TIMES, BOTH = 12, 8, ["place", "time"]
SPACE = ct.EmpiricalGraph.from_edges([(k, k + 1) for k in range(PLACES - 1)], n_nodes=PLACES)
ONE_UNIT = {"standardize": False, "weight_by": "nodes"}  # the units of a fit to some of the rows are those of all


def rows(times: int = TIMES, seed: int = 0, step: float = 0.3) -> tuple[pd.DataFrame, np.ndarray]:
    """Two rows of every place at every time: a slope of places, and a level that walks."""
    rng = np.random.default_rng(seed)
    pairs = [(place, time) for place in range(PLACES) for time in range(times) for _ in range(2)]
    frame = pd.DataFrame(pairs, columns=BOTH).assign(x=rng.standard_normal(len(pairs)))
    level = np.cumsum(step * rng.standard_normal(times))[frame["time"]]
    slope = np.where(frame["place"] < PLACES // 2, 1.0, -1.0)
    return frame, slope * frame["x"].to_numpy() + level + 0.2 * rng.standard_normal(len(pairs))


def fitted(frame, y, times: int = TIMES, **options):
    options = {"lam": 0.05, "engine": "numpy"} | options
    model = ct.NetworkedLinearRegression((SPACE, ct.time_graph(range(times))), **options)
    return model.fit(frame, y, groups=BOTH)


def covered(model, frame, y, coverage: float = 0.9) -> float:
    ends = model.predict_interval(frame, coverage=coverage)
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))


def test_residuals_of_times_are_those_of_fits_that_end_before_them() -> None:
    frame, y = rows()
    model = fitted(frame, y, **ONE_UNIT).calibrate(by="times", cv=3)
    assert model.calibration_[:2] == ("times", "cross")
    expected = []
    for last in (2, 4, 6):  # of eight times, stretches of two after the first two
        known, next_ones = frame["time"] < last, frame["time"].isin([last, last + 1])
        before = fitted(frame[known], y[known], times=last, **ONE_UNIT)
        with pytest.warns(UserWarning, match="are predicted with the models of that time"):
            expected.append(y[next_ones] - before.predict(frame[next_ones]))
    got = model.calibration_.residuals
    assert len(got) == sum(map(len, expected)) == 6 * PLACES * 2
    np.testing.assert_allclose(np.sort(got), np.sort(np.concatenate(expected)), atol=0.02)  # folds are solved to 1e-4


def test_labels_to_come_change_no_residual_of_times_before() -> None:
    frame, y = rows()
    first, other = (
        fitted(frame, labels, **ONE_UNIT).calibrate(by="times", cv=3).calibration_.residuals
        for labels in (y, np.where(frame["time"] >= 6, y + 100, y))
    )
    early = 4 * PLACES * 2  # of the first two stretches
    np.testing.assert_allclose(first[:early], other[:early], atol=0.05)
    assert (other[early:] - first[early:] > 90).all()


def test_as_many_folds_over_times_as_there_can_be() -> None:
    frame, y = rows()
    model = fitted(frame, y).calibrate(by="times", cv=100)
    assert len(model.calibration_.residuals) == (TIMES - 1) * PLACES * 2  # each time but the first, from all before


def test_intervals_of_times_to_come_need_no_warning_once_calibrated_by_times(tmp_path) -> None:
    frame, y = rows(TIMES + 2)
    known = frame["time"] < TIMES
    model, late = fitted(frame[known], y[known]), frame[~known]
    with pytest.warns(
        UserWarning, match=r'rows of times after 7, .* calibrated by rows: .* use calibrate\(by="times"\)'
    ):
        model.predict_interval(late)
    model.calibrate(by="times")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends = model.predict_interval(late, coverage=0.8)
        model.predict_interval(frame[known])
    residuals = np.sort(np.abs(model.calibration_.residuals))
    half = residuals[int(np.ceil(0.8 * (len(residuals) + 1))) - 1]
    middle = model.predict(frame[~known].assign(time=TIMES - 1))
    np.testing.assert_allclose(ends, middle[:, None] + [-half, half])
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(ct.load(tmp_path / "model").predict_interval(late, coverage=0.8), ends)


def test_times_of_the_graph_without_labels_are_to_come_as_well() -> None:
    frame, y = rows()
    known = frame["time"] < 6
    model = fitted(frame[known], y[known])  # of a graph with eight times
    model.calibrate(by="rows")
    with pytest.warns(UserWarning, match=r'rows of times after 5, .* use calibrate\(by="times"\)'):
        model.predict_interval(frame[~known])
    model.calibrate(frame[~known], y[~known], by="times")
    assert model.calibration_[:2] == ("times", "split")
    assert len(model.calibration_.residuals) == (~known).sum()


def test_rows_of_times_to_come_that_were_kept_calibrate() -> None:
    frame, y = rows(TIMES + 1)
    known = (frame["time"] < TIMES).to_numpy()
    model = fitted(frame[known], y[known])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.calibrate(frame[~known], y[~known], by="times")
    expected = y[~known] - model.predict(frame[~known].assign(time=TIMES - 1))
    np.testing.assert_allclose(model.calibration_.residuals, expected)
    with pytest.raises(ValueError, match=r'time 0 is not after the last that had labels in the fit; by="times"'):
        model.calibrate(frame, y, by="times")
    with pytest.raises(ValueError, match="the time 8 is not among the 8 times"):
        model.calibrate(frame[~known], y[~known], by="rows")


def test_whole_places_are_held_out_and_one_row_of_each_counts() -> None:
    frame, y = rows(step=0.0)
    new = (frame["place"] % 4 == 1).to_numpy()
    model = fitted(frame[~new], y[~new]).calibrate(by="places")
    assert model.calibration_[:2] == ("places", "cross")
    assert len(model.calibration_.residuals) == PLACES - PLACES // 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.predict_interval(frame, coverage=0.8)).all()
    model.calibrate(frame[new], y[new], by="places")
    assert len(model.calibration_.residuals) == PLACES // 4
    with pytest.raises(ValueError, match=r'place 0 had labels in the fit; by="places" is for those that had none'):
        model.calibrate(frame, y, by="places")


@pytest.mark.parametrize("by", ["rows", "nodes", "times"])
def test_a_place_without_labels_is_warned_of(by) -> None:
    frame, y = rows()
    new = frame["place"] == 3
    model = fitted(frame[~new], y[~new]).calibrate(by=by)
    says = rf'place 3 has no labels at any time, but .* calibrated by {by}: .* use calibrate\(by="places"\)'
    with pytest.warns(UserWarning, match=says):
        model.predict_interval(frame[new])
    with pytest.warns(UserWarning, match=r"times after 7, .*, at place 3, which has none, .* for both"):
        model.predict_interval(frame[new].assign(time=TIMES))


def test_a_gap_is_a_node_and_no_place() -> None:
    frame, y = rows()
    gap = (frame["place"] == 3) & (frame["time"] == 4)
    model = fitted(frame[~gap], y[~gap]).calibrate(by="rows")
    with pytest.warns(UserWarning, match=r'node \(3, 4\) has no labels, .* use calibrate\(by="nodes"\)'):
        model.predict_interval(frame[gap])
    for by in ("nodes", "places", "times"):
        model.calibrate(by=by)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict_interval(frame[gap], coverage=0.5)


def test_what_has_no_next_time_is_refused() -> None:
    frame, y = rows()
    round_ = ct.NetworkedLinearRegression((SPACE, ct.time_graph(range(TIMES), period=TIMES)), lam=0.05, engine="numpy")
    with pytest.raises(ValueError, match='by="times": times go round, so that none comes next'):
        round_.fit(frame, y, groups=BOTH).calibrate(by="times")
    plain = ct.NetworkedLinearRegression(SPACE, lam=0.05, engine="numpy").fit(frame[["x"]], y, groups=frame["place"])
    with pytest.raises(ValueError, match=r"got 'times'; places and times are of models with graph=\(space, time\)"):
        plain.calibrate(by="times")
    with pytest.raises(ValueError, match='by must be "auto", "rows", "nodes", "places" or "times", got \'blocks\''):
        fitted(frame, y).calibrate(by="blocks")
    early = frame["time"] < 2
    with pytest.raises(ValueError, match="folds over times need labels at 3 times or more"):
        fitted(frame[early], y[early]).calibrate(by="times")


@pytest.mark.slow
def test_forecasts_are_covered_by_times_and_not_by_rows() -> None:
    shares = []
    for seed in range(12):
        frame, y = rows(13, seed)
        known = (frame["time"] < 12).to_numpy()
        model = fitted(frame[known], y[known], times=12)
        next_one = frame[~known], y[~known]
        by_times = covered(model.calibrate(by="times", cv=11), *next_one)
        model.calibrate(by="rows")
        with pytest.warns(UserWarning, match="rows of times after 11"):
            shares.append((by_times, covered(model, *next_one)))
    by_times, by_rows = np.mean(shares, axis=0)
    assert by_times > 0.8
    assert by_rows < by_times - 0.1
