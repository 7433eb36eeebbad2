import numpy as np
import pytest

from coterie.report.repulsion import repulsion


def by_definition(x: np.ndarray) -> np.ndarray:
    away = x[:, None] - x[None]
    return (away / np.maximum((away**2).sum(axis=2), 1e-6)[..., None]).sum(axis=1)


@pytest.mark.parametrize("V", [1, 2, 3, 50])
@pytest.mark.parametrize("side", [1, 2])
def test_exact_on_a_coarse_grid(V, side):
    x, out = np.random.default_rng(V).standard_normal((V, 2)), np.empty((V, 2))
    repulsion(x, side, out)
    np.testing.assert_allclose(out, by_definition(x), rtol=1e-9, atol=1e-9)


def test_close_on_a_fine_grid():
    x, out = np.random.default_rng(0).standard_normal((800, 2)), np.empty((800, 2))
    repulsion(x, 9, out)
    exact = by_definition(x)
    assert np.linalg.norm(out - exact) < 0.05 * np.linalg.norm(exact)


def test_points_in_one_place_do_not_push():
    out = np.empty((4, 2))
    repulsion(np.ones((4, 2)), 3, out)
    np.testing.assert_array_equal(out, 0)
