"""The benchmarks of weighting and of the choice of λ, on little."""

import numpy as np
import pytest

import coterie as ct
from benchmarks.choice_of_lam import formerly
from benchmarks.uneven import drawn
from benchmarks.weighting import compare


def test_nodes_are_uneven_and_the_second_table_has_the_same_truth():
    table, more = drawn(0, classes=True, more=2)
    m = np.bincount(table.nodes, minlength=60)
    assert m.min() == 1
    assert m.max() > 10 * np.median(m)
    assert (np.bincount(more.nodes, minlength=60) == 2 * m).all()
    assert set(table.y) == {0.0, 1.0}


def test_former_folds_hold_out_everything_once():
    table, _ = drawn(1, classes=True)
    data = ct.LocalDatasets.from_rows(table.X, table.y, table.nodes)
    for over in ("rows", "nodes"):
        assert (sum(fold.test.astype(int) for fold in formerly(data, over, 0)) == 1).all()


@pytest.mark.slow
def test_weightings_are_compared_on_rows_held_out():
    by_rows, by_nodes = compare(ct.NetworkedLinearRegressionCV, drawn(0, classes=False, n_nodes=12)[0], "rows", 0)
    assert 0.2 < by_rows < 5
    assert 0.2 < by_nodes < 5
