"""The benchmarks of intervals, of rules for λ and of a shared component, on little."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from benchmarks.intervals import covered
from benchmarks.intervals_in_time import AHEAD, WAYS, shares
from benchmarks.intervals_in_time import drawn as drawn_in_time
from benchmarks.lam_rules import errors_of
from benchmarks.uneven import drawn


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:node")  # some have no labels in a draw
def test_shares_of_labels_inside_intervals():
    found = covered(drawn(0, classes=False, n_nodes=10)[0], "rows", 0, 0.8)
    assert set(found) == {"split", "cross"}
    assert all(0.5 < share <= 1 and width > 0 for share, width in found.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*calibrated by rows")  # which is what is compared
def test_shares_of_labels_to_come_inside_intervals():
    frame, y, space = drawn_in_time("steady", 0)
    few = (frame["time"] < 7 + AHEAD).to_numpy()
    frame, y = frame[few], y[few]
    known = ((frame["time"] < 7) & (frame["place"] % 4 != 0)).to_numpy()
    model = ct.NetworkedLinearRegression((space, ct.time_graph(range(7))), lam=0.1, engine="numpy", tol=1e-3)
    model.fit(frame[known], y[known], groups=["place", "time"])
    found = shares(model, known, frame, y, 0.8)
    assert {what for what, _ in found} == {"1 ahead", "2 ahead", "new places"}
    assert {name for _, name in found} == set(WAYS)
    assert all(0.4 < share <= 1 and width > 0 for share, width in found.values())


def test_every_way_to_choose_has_an_error():
    ways = {"best": {"cv": 2}, "bic": {"criterion": "bic"}}
    found = np.array(errors_of(drawn(0, classes=False, n_nodes=10)[0], 0, "l1", ways))
    assert found.shape == (2, 3)
    assert np.isfinite(found).all()
