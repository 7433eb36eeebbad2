"""Other solvers are given the problem that Coterie solves, whatever the loss."""

import numpy as np
import pytest

from benchmarks.losses import FAMILIES, LOSSES
from benchmarks.peers import cvxpy_problem


@pytest.mark.parametrize("name", LOSSES)
def test_objectives_agree(name):
    problem = FAMILIES["c"](0.002, loss=LOSSES[name])
    asked, shape = cvxpy_problem(problem)
    w = 0.5 * np.random.default_rng(0).standard_normal(shape)
    (x,) = asked.variables()
    x.value = w.ravel()
    assert float(asked.objective.value) == pytest.approx(problem.objective(w), rel=1e-9)
