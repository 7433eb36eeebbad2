"""Small programs with kinks, node by node, in both forms."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest

from coterie.kernels import interior_point as compiled
from coterie.kernels.reference import interior_point as plain

FORMS = [plain, compiled]
forms = pytest.mark.parametrize("form", FORMS, ids=["numpy", "compiled"])


def nodes(n: int, ridge: float, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Nodes with no, few and many rows of n columns."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum([3, 0, 1, 12, n, 40])])
    X, y = rng.standard_normal((starts[-1], n)), rng.standard_normal(starts[-1])
    D, c = np.full((6, n), ridge), rng.standard_normal((6, n))
    low, high = -rng.uniform(0.2, 1.0, len(y)), rng.uniform(0.2, 1.0, len(y))
    return X, y, starts, D, c, low, high


def solved(form: ModuleType, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    b, z = np.empty(len(given[1])), np.empty_like(given[4])
    form.interior_point(*given, b, z)
    return b, z


@pytest.mark.parametrize(("n", "ridge"), [(1, 0.1), (4, 0.1), (4, 3.0), (7, 1e-3)])
def test_both_forms_find_the_same(n: int, ridge: float) -> None:
    given = nodes(n, ridge)
    for one, other in zip(*(solved(form, *given) for form in FORMS), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@forms
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_conditions_of_the_optimum_hold(form: ModuleType, ridge: float) -> None:
    X, y, starts, D, c, low, high = given = nodes(4, ridge, 1)
    b, z = solved(form, *given)
    assert ((low <= b) & (b <= high)).all()
    for i, (first, last) in enumerate(pairwise(starts)):
        rows = slice(first, last)
        if ridge == 0 and last - first <= 4:
            continue  # duals that are as good as zero
        e = y[rows] - X[rows] @ z[i]
        np.testing.assert_allclose(D[i] * (z[i] - c[i]), X[rows].T @ b[rows], atol=1e-6)
        loss = np.maximum(low[rows] * e, high[rows] * e).sum()
        assert loss == pytest.approx(b[rows] @ e, abs=1e-9)


@forms
def test_a_node_without_rows_stays_where_it_is(form: ModuleType) -> None:
    given = nodes(3, 0.0)
    np.testing.assert_array_equal(solved(form, *given)[1][1], given[4][1])


@forms
def test_numbers_that_overflow_come_to_an_end(form: ModuleType) -> None:
    X, y, *others = nodes(3, 0.1)
    b, _ = solved(form, 1e200 * X, y * 1e300, *others)
    assert np.isfinite(b).all()


def test_a_program_that_is_interrupted_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    given = nodes(4, 0.1)
    whole = solved(compiled, *given)
    monkeypatch.setattr(compiled, "WORK", 1)
    for one, other in zip(whole, solved(compiled, *given), strict=True):
        np.testing.assert_array_equal(one, other)
