"""When two sets of moments are the same."""

import numpy as np


def assert_same(moments, expected, rtol=1e-12):
    """The same up to rounding, whatever the order of the nodes."""
    assert sorted(moments.ids) == sorted(expected.ids)
    place = [moments.ids.index(name) for name in expected.ids]
    np.testing.assert_array_equal(moments.m[place], expected.m)
    size = np.sqrt(np.einsum("ijj->ij", expected.comoments))
    spread = size / np.sqrt(np.maximum(expected.m, 1))[:, None]
    assert (abs(moments.mean[place] - expected.mean) <= rtol * (abs(expected.mean) + spread)).all()
    assert (abs(moments.comoments[place] - expected.comoments) <= rtol * size[:, :, None] * size[:, None, :]).all()
