"""Compiled kernels for any number of features: compiled once, where those of engine="numba" are for each."""

from coterie.engines.growing import GrowingEngine
from coterie.kernels.forms import Form


def any_n() -> GrowingEngine:
    """The engine of these kernels, for `engine=`."""
    return GrowingEngine(lambda n_iter: Form.ANY_N)
