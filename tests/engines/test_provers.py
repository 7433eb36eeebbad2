"""One suite for all provers: every operation of the contract against the NumPy engine's.

To check the prover of another engine, add it to PROVERS.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import gpu
import numpy as np
import pytest

import coterie as ct
from coterie.engines.base import Prover
from coterie.engines.numba import NumbaEngine
from coterie.engines.numpy import NumpyEngine
from coterie.kernels.choice import using
from problems import EVERY_PENALTY, instance

CLOSE = {"rtol": 1e-7, "atol": 1e-9}


class Made(NamedTuple):
    """How to make an engine, and whether its kernels are compiled."""

    make: Any
    compiled: bool

    @property
    def kernels(self) -> AbstractContextManager[None]:
        return using(compiled=self.compiled)


REFERENCE = Made(NumpyEngine, False)
PROVERS = {
    "numba, 1 thread": Made(partial(NumbaEngine, threads=1), True),
    "numba, 3 threads": Made(partial(NumbaEngine, threads=3), True),
    **{name: Made(make, False) for name, make in gpu.engines().items()},
}
CASES = [
    ("few labelled", ct.SquaredError()),
    ("few points", ct.SquaredError(ridge=0.1)),
    ("few points", ct.Lasso(0.1, unpenalised=(1,))),
    ("disconnected", ct.Logistic(ridge=0.05)),
]


def everything(prover: Prover, w: np.ndarray, u: np.ndarray) -> dict[str, Any]:
    """What each operation gives, one after the other, as in a certificate."""
    got: dict[str, Any] = {"arrays": None}  # some have handles elsewhere
    for name in ("needs_repair", "scales", "largest_strength"):
        got[name] = getattr(prover, name)
    w, u = prover.scatter(w), prover.scatter(u, edges=True)

    def gather(x: Any, edges: bool = False) -> np.ndarray:
        return prover.gather(
            x, edges
        ).copy()  # what moves later is another array in some provers, and in others the same

    got["scatter"], got["gather"] = gather(w), gather(u, edges=True)
    clipped = prover.copy(u)
    prover.clip(clipped)
    got["clip"], got["copy"] = gather(clipped, edges=True), gather(u, edges=True)
    got["no_duals"], got["is_finite"] = gather(prover.no_duals(), edges=True), prover.is_finite(u)
    got["is_nothing"] = prover.is_nothing(u), prover.is_nothing(prover.no_duals())
    got["objective"], got["largest_weight"] = prover.objective(w), prover.largest_weight(w)
    got["pooled_weights"] = gather(prover.pooled_weights())
    apart = prover.separating_weights()
    got["separating_weights"] = None if apart is None else gather(apart)
    clusters = prover.dual_clusters(clipped)
    got["dual_clusters"] = None if clusters is None else clusters.total
    got["average"] = None if clusters is None else gather(prover.average(clusters, w))
    got["glance"] = prover.glance(w, clipped, got["objective"])
    s = prover.split(w, clipped)
    got["split"] = None if s is None else gather(s)
    got["residual"] = prover.residual(clipped, s)
    got["weigh"] = prover.weigh(clipped)
    descent = prover.descent(s)
    descent.run(4, 0.0)
    got["descent"] = descent.steps_to(1e-6)
    got["stretch"] = prover.stretch(clipped, s, descent)
    prover.correct(clipped, s, descent, 1.25)
    got["correct"] = gather(clipped, edges=True), None if s is None else gather(s)
    below = prover.minorant(w, clipped, s)
    got["minorant"], got["residual_l1"] = below.value, prover.residual_l1(below.rest)
    got["charge"] = [prover.charge(below.rest, got["objective"], enough, True) for enough in (0.0, np.inf)]
    return got


@pytest.mark.parametrize("made", PROVERS.values(), ids=list(PROVERS))
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize(("kind", "loss"), CASES, ids=str)
def test_every_operation(made: Made, kind: str, loss: ct.Loss, penalty: ct.Penalty) -> None:
    problem = instance(kind, loss, penalty).bound
    rng = np.random.default_rng(0)
    w = rng.standard_normal((problem.graph.n_nodes, problem.n_features))
    u = 1.5 * problem.c[:, None] * rng.uniform(-1, 1, (problem.graph.n_edges, problem.n_features))
    results = []
    for one in (REFERENCE, made):
        with one.kernels:
            prover = one.make().prover(problem)
            results.append(everything(prover, w.copy(), u.copy()))
    expected, got = results
    if prover.arrays is None:  # what takes next to no time is something else elsewhere
        got["glance"] = expected["glance"]
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        parts = zip(value, got[name], strict=True) if isinstance(value, tuple | list) else [(value, got[name])]
        for right, given in parts:
            assert (right is None) == (given is None), name
            if right is not None:
                np.testing.assert_allclose(given, right, err_msg=name, **CLOSE)


def test_no_operation_is_left_out() -> None:
    problem = instance().bound
    with REFERENCE.kernels:
        tried = everything(
            NumpyEngine().prover(problem),
            np.zeros((problem.graph.n_nodes, problem.n_features)),
            np.zeros((problem.graph.n_edges, problem.n_features)),
        ).keys()
    named = {name for name in vars(Prover) if not name.startswith("_")} | Prover.__annotations__.keys()
    assert tried == named - {"problem", "cg_steps", "near_enough"}  # how far to go is no operation
