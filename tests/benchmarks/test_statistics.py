"""The benchmarks of intervals, of rules for λ and of a shared component, on little."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.intervals import covered
from benchmarks.lam_rules import errors_of
from benchmarks.uneven import drawn


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:node")  # some have no labels in a draw
def test_shares_of_labels_inside_intervals():
    found = covered(drawn(0, classes=False, n_nodes=10)[0], "rows", 0, 0.8)
    assert set(found) == {"split", "cross"}
    assert all(0.5 < share <= 1 and width > 0 for share, width in found.values())


def test_every_way_to_choose_has_an_error():
    ways = {"best": {"cv": 2}, "bic": {"criterion": "bic"}}
    found = np.array(errors_of(drawn(0, classes=False, n_nodes=10)[0], 0, "l1", ways))
    assert found.shape == (2, 3)
    assert np.isfinite(found).all()
