"""Quadratics in spectral form: the compiled kernels beside NumPy's."""

import numpy as np
import pytest

from coterie.kernels import spectral, vector_buffer
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.kernels.reference import spectral as plain


def quadratics(n):
    """Orthonormal rows, two of three with a curvature, at 20 nodes."""
    rng = np.random.default_rng(n)
    r = min(n, 3)
    V = np.linalg.svd(rng.standard_normal((20, r, n)), full_matrices=False)[2]
    h = rng.random((20, r))
    h[::2, -1] = 0.0
    return V, h, rng.standard_normal((20, n)), rng.random(20), rng.standard_normal((20, n))


@pytest.mark.parametrize("n", [1, 5, 12])
@pytest.mark.parametrize("form", [Form.ANY_N, Form.THIS_N])
def test_products_agree(n, form):
    V, h, _, _, x = quadratics(n)
    found, expected = np.empty_like(x), np.empty_like(x)
    with using(form):
        spectral.multiply(vector_buffer(n), V, h, x, found)
    plain.multiply(None, V, h, x, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [1, 5, 12])
@pytest.mark.parametrize("form", [Form.ANY_N, Form.THIS_N])
def test_conjugates_agree(n, form):
    V, h, centre, floor, p = quadratics(n)
    found, expected = (np.empty_like(p), np.empty(20)), (np.empty_like(p), np.empty(20))
    with using(form):
        spectral.conjugate(vector_buffer(n), V, h, centre, floor, p, *found)
    plain.conjugate(None, V, h, centre, floor, p, *expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
