"""What stands in the way is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coterie as ct
from coterie.solver.reasons import in_words

rng = np.random.default_rng(0)
PLAIN = rng.standard_normal((12, 2))
NEARLY = np.column_stack([PLAIN[:, 0], PLAIN[:, 0] + 1e-7 * PLAIN[:, 1]])


def problem(X: np.ndarray, loss: ct.Loss, lam: float = 0.1) -> ct.Problem:
    data = ct.LocalDatasets.from_rows(X, rng.standard_normal(12), np.repeat(np.arange(3), 4))
    return ct.Problem(ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)]), data, loss, lam=lam)


@pytest.mark.parametrize(
    ("case", "status", "words"),
    [
        (problem(NEARLY, ct.SquaredError()), ct.Status.TIME_LIMIT, "Columns 0, 1 of X are collinear, or nearly so"),
        (problem(PLAIN, ct.SquaredError(), 1e-11), ct.Status.STALLED, "lam is next to nothing beside the losses"),
        (problem(PLAIN, ct.Lasso(1e-9)), ct.Status.STALLED, "alpha is next to nothing beside the losses"),
        (problem(PLAIN, ct.SquaredError()), ct.Status.TIME_LIMIT, "longer time_limit"),
        (problem(PLAIN, ct.SquaredError()), ct.Status.ITERATION_LIMIT, "larger max_iter"),
        (problem(PLAIN, ct.SquaredError()), ct.Status.STALLED, "Double precision cannot state it any better"),
    ],
)
def test_every_end_has_a_reason(case: ct.Problem, status: ct.Status, words: str) -> None:
    solution = replace(ct.solve(case, tol=1e-3), status=status, unconditional=True)
    assert words in in_words(case, solution, 1e-9)
