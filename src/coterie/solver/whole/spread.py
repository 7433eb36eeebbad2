"""Flows that conjugate gradients spread over many edges, before maximum flow sends along single ways what is left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import BLOCK, static_int
from coterie.kernels.choice import Either
from coterie.kernels.gradients import ConjugateGradients
from coterie.kernels.interruption import check
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

flow, laplacian = Either("flow"), Either("laplacian")

ROUNDS = 4
STEPS, ACCURACY = 200, 0.003  # of conjugate gradients, in each round: what they send has a long way to go
SHRINK = 0.2  # of the rest is left after a round, at most, where clusters are right: .01 to .08; else .3 and more


def spread(
    problem: BoundProblem, fixed: NDArray[np.bool_], u: Array, target: Array, enough: Callable[[Array], bool]
) -> bool:
    """Move feasible duals u, but for those that are fixed, so that Dᵀu + target becomes small; return if enough.

    Each round is a least-squares correction in which edges take part by their slack, and is clipped.
    """
    ends, c, kind = problem.graph.edges.astype(np.uint32), problem.c, problem.penalty.kind
    S, rest, diagonal = np.zeros(u.shape, dtype=np.float32), np.empty_like(target), np.empty_like(target)
    near, before = static_int(0), np.inf
    for _ in range(ROUNDS):
        check()
        flow.divergence(ends, u, rest)
        rest += target
        left = float(np.abs(rest).sum())
        if left > SHRINK * before:
            return False
        before = left
        flow.slack_weights(kind, c, u, S)
        S[fixed] = 0.0
        laplacian.diagonal(ends, S, laplacian.NO_GROUND, diagonal)
        descent = ConjugateGradients(
            lambda x, out: laplacian.apply(near, ends, S, laplacian.NO_GROUND, x, out), rest, diagonal
        )
        x = descent.run(STEPS, ACCURACY)
        flow.correct(static_int(min(u.shape[1], BLOCK)), kind, near, ends, c, S, x, 1.0, u)
        if enough(u):
            return True
    return False
