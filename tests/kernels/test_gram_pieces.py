"""Gram matrices in pieces are those of one pass, to the last bit, and end when the time is up."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.kernels import gram, interruption
from coterie.kernels.interruption import TimeUp, allow, interruptible


def passes(n: int, n_nodes: int, n_groups: int) -> list[np.ndarray]:
    """All that the passes compute, of random rows."""
    rng = np.random.default_rng(n)
    m = rng.integers(1, 9, n_nodes)
    starts = np.concatenate([[0], np.cumsum(m)])
    X, h = rng.standard_normal((starts[-1], n)), rng.random(starts[-1])
    X[:, -1] *= n != 3  # a column of zeros
    ridge, group = np.where(np.arange(n) % 2 == 0, 0.0, 0.3), np.arange(n_nodes) % n_groups
    C = rng.standard_normal((n_groups, n, n))
    C[:, :, -1] *= n != 3
    G, spoilt, weak = np.empty_like(C), np.empty((n_groups, n)), np.zeros((n_groups, n), dtype=bool)
    rounding_bound, longest = np.empty((2, n_groups))
    gram.gram(X, h, starts, ridge, group, C, G, rounding_bound, spoilt, longest)
    found = [G.copy(), rounding_bound.copy(), spoilt, longest]
    gram.orthonormalise(G, spoilt, C, weak)
    out, a, b = np.empty((n_groups, n)), rng.standard_normal(starts[-1]), rng.standard_normal((n_nodes, n))
    gram.project(X, starts, group, C, a, np.abs(a), b, out, rounding_bound)
    return [*found, C, weak, out, rounding_bound]


@pytest.mark.parametrize(("n", "n_nodes", "n_groups"), [(1, 20, 20), (3, 40, 7), (12, 9, 2), (5, 6, 1)])
@pytest.mark.parametrize("work", [1, 30, 2000])
def test_pieces_add_up_to_the_same(
    n: int, n_nodes: int, n_groups: int, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = passes(n, n_nodes, n_groups)
    monkeypatch.setattr(interruption, "WORK", work)
    monkeypatch.setattr(gram, "WORK", work)
    for one, other in zip(whole, passes(n, n_nodes, n_groups), strict=True):
        np.testing.assert_array_equal(one, other)


def test_they_end_between_two_pieces_but_not_within_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with interruptible():
        allow(0.0)
        passes(3, 10, 2)
        monkeypatch.setattr(interruption, "WORK", 50)
        with pytest.raises(TimeUp):
            passes(3, 10, 2)
