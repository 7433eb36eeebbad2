"""One suite for all engines."""

from __future__ import annotations

from functools import partial
from typing import Any

import gpu
import numpy as np
import pytest
from conformance import NaiveEngine

import coterie as ct
from coterie.engines import numba, ordering
from coterie.engines.base import Mode
from coterie.engines.numba import NumbaEngine
from coterie.engines.numpy import NumpyEngine
from coterie.problem.losses import row_losses
from coterie.solver.balance import Steps
from pairs import in_pairs
from problems import EVERY_PENALTY, FIRST_LOSSES, KINDS, OTHER_LOSSES, instance, oracle, rows_of

ENGINES = {
    "numpy": NumpyEngine,
    "numba, 1 thread": partial(NumbaEngine, threads=1),
    "numba, 3 threads": partial(NumbaEngine, threads=3),
    **gpu.engines(),
}
CLOSE = {"rtol": 1e-8, "atol": 1e-9}  # inner solves of some losses are iterative

engines = pytest.mark.parametrize("make", ENGINES.values(), ids=list(ENGINES))
modes = pytest.mark.parametrize("mode", [Mode.RELAXED, Mode.HALPERN], ids=lambda mode: mode.value)
# Every penalty, mode and kind of graph is compiled anew: all pairs of them are, and where more would show nothing new,
# one mode for each penalty. Edges have equal weights in some, and weights of their own in the others.
WEIGHTED = list(zip(EVERY_PENALTY, [Mode.RELAXED, Mode.HALPERN, Mode.RELAXED], strict=True))
EQUAL = list(zip(EVERY_PENALTY, [Mode.HALPERN, Mode.RELAXED, Mode.HALPERN], strict=True))
either_mode = pytest.mark.parametrize(("penalty", "mode"), WEIGHTED, ids=str)
one_of_a_sort = pytest.mark.parametrize(("penalty", "mode"), WEIGHTED[:2], ids=str)  # of columns alone, and of edges


def begin(make: Any, problem: ct.Problem, seed: int = 0) -> tuple[Any, NaiveEngine]:
    """The engine and its naive double, at the same point with the same steps."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((problem.graph.n_nodes, problem.n_features))
    u = rng.standard_normal((problem.graph.n_edges, problem.n_features))
    steps = Steps.of(problem.bound)
    engine = make()
    engine.setup(problem.bound, w, u)
    engine.set_steps(steps.tau, steps.sigma)
    return engine, NaiveEngine(problem, w, u, steps.tau, steps.sigma)


def point(engine: Any, problem: ct.Problem) -> tuple[np.ndarray, np.ndarray]:
    """The engine's point as arrays, wherever it is."""
    gather = engine.prover(problem.bound).gather
    w, u = engine.point()
    return gather(w), gather(u, edges=True)


def agree(engine: Any, naive: NaiveEngine, close: dict[str, float] = CLOSE) -> None:
    w, u = point(engine, naive.problem)
    np.testing.assert_allclose(w, naive.w_hat, **close)
    np.testing.assert_allclose(u, naive.u_hat, **close)


@engines
@pytest.mark.parametrize(
    ("kind", "penalty", "mode"),
    [("weighted edges", *one) for one in WEIGHTED] + [("few labelled", *one) for one in EQUAL],
    ids=str,
)
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_two_epochs(make: Any, loss: ct.Loss, penalty: ct.Penalty, mode: Mode, kind: str) -> None:
    engine, naive = begin(make, instance(kind, loss, penalty))
    for n_iter in (1, 4):
        assert engine.advance(n_iter, mode) == pytest.approx(naive.advance(n_iter, mode), rel=1e-7)
        agree(engine, naive)
        assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-7)
        agree(engine, naive)


@pytest.mark.parametrize("make", [NumpyEngine, partial(NumbaEngine, threads=1)], ids=["numpy", "numba"])
@pytest.mark.parametrize("loss", OTHER_LOSSES, ids=repr)
def test_two_epochs_of_other_losses(make: Any, loss: ct.Loss) -> None:
    engine, naive = begin(make, instance("few labelled", loss))
    close = {"rtol": 1e-5, "atol": 1e-6}  # models of one node have a trace of curvature of their own
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_losses, "ROUGH", row_losses.PROX_ACCURACY)
        for n_iter in (1, 4):
            assert engine.advance(n_iter, Mode.RELAXED) == pytest.approx(naive.advance(n_iter, Mode.RELAXED), rel=1e-6)
            agree(engine, naive, close)
            assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-6)


def test_updates_that_models_will_replace_are_rough() -> None:
    problem = instance("few labelled", ct.Poisson()).bound
    M, v = problem.M, np.random.default_rng(0).standard_normal((len(problem.M), problem.n_features))
    tau, start = np.full(len(M), 0.5), np.zeros_like(v)
    exact, rough = problem.f.prox(v, tau, start), problem.f.rough_prox(v, tau, start)
    assert 0 < np.abs(rough - exact).max() <= 0.02 * np.abs(exact).max()


@engines
@modes
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_problem(make: Any, mode: Mode, kind: str) -> None:
    engine, naive = begin(make, instance(kind))
    assert engine.advance(7, mode) == pytest.approx(naive.advance(7, mode), rel=1e-9)
    agree(engine, naive)


@engines
def test_steps_and_modes_may_change_on_the_way(make: Any) -> None:
    engine, naive = begin(make, instance("weighted edges"))
    for mode, factor in ((Mode.HALPERN, 1.0), (Mode.RELAXED, 0.5), (Mode.HALPERN, 0.25)):
        naive.tau, naive.sigma = factor * naive.tau, naive.sigma / factor
        engine.set_steps(naive.tau, naive.sigma)
        assert engine.advance(3, mode) == pytest.approx(naive.advance(3, mode), rel=1e-9)
        agree(engine, naive)
        assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-9)


@engines
@modes
def test_blocks_may_be_cut_anywhere(make: Any, mode: Mode) -> None:
    problem = instance("few points")
    (one, _), (many, _) = (begin(make, problem) for _ in range(2))
    whole = one.advance(6, mode)
    many.advance(1, mode)
    many.advance(3, mode)
    assert many.advance(2, mode) == pytest.approx(whole, rel=1e-12)
    for a, b in zip(point(one, problem), point(many, problem), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)  # the last iteration of a block may round otherwise


@engines
def test_the_starting_point_is_not_changed_and_is_the_first_point(make: Any) -> None:
    problem = instance()
    w, u = np.ones((12, 3)), np.zeros((problem.graph.n_edges, 3))
    engine = make()
    engine.setup(problem.bound, w, u)
    np.testing.assert_array_equal(point(engine, problem)[0], w)
    steps = Steps.of(problem.bound)
    engine.set_steps(steps.tau, steps.sigma)
    engine.advance(3, Mode.RELAXED)
    engine.restart()
    engine.advance(3, Mode.HALPERN)
    np.testing.assert_array_equal(w, 1.0)
    np.testing.assert_array_equal(u, 0.0)


@engines
@modes
def test_a_fixed_point_is_a_solution(make: Any, mode: Mode) -> None:
    problem = instance("all labelled")
    engine, _ = begin(make, problem)
    for _ in range(30):
        r = engine.advance(40, mode)
        engine.restart()
    assert r < 1e-8
    assert problem.objective(point(engine, problem)[0]) == pytest.approx(oracle(problem).value, rel=1e-8)


@engines
@pytest.mark.parametrize("V", [1, 4])
def test_no_edges(make: Any, V: int) -> None:
    data = ct.LocalDatasets.from_rows(np.ones((1, 2)), [1.0], [0], n_nodes=V)
    engine, naive = begin(make, ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=V), data))
    assert engine.advance(5, Mode.RELAXED) == pytest.approx(naive.advance(5, Mode.RELAXED), rel=1e-9)
    agree(engine, naive)
    assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-9)


def random_problem(
    V: int, n: int, m: int, loss: ct.Loss | None = None, penalty: ct.Penalty | None = None, seed: int = 0
) -> ct.Problem:
    """Two random edges per node, weighted; every third node without labels."""
    rng = np.random.default_rng(seed)
    pairs = {(int(min(p)), int(max(p))) for p in rng.integers(0, V, (2 * V, 2)) if p[0] != p[1]}
    graph = ct.EmpiricalGraph.from_edges(sorted(pairs), rng.lognormal(size=len(pairs)), n_nodes=V)
    loss = loss or ct.SquaredError()
    X, y, nodes = rows_of(loss, rng.standard_normal((V, n)), m, rng)
    y[nodes % 3 == 0] = np.nan
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V)
    return ct.Problem(graph, data, loss, penalty or ct.TotalVariation(), 0.1)


@engines
@pytest.mark.parametrize(("n", "m"), [(1, 3), (3, 1), (3, 5), (20, 3), (20, 25)])
@one_of_a_sort
def test_any_number_of_features_and_points(make: Any, mode: Mode, penalty: ct.Penalty, n: int, m: int) -> None:
    """n ≤ 10 has vectors in registers, above that in memory; 2m ≤ n has a primal update of low rank."""
    engine, naive = begin(make, random_problem(10, n, m, penalty=penalty))
    for n_iter in (3, 1):
        assert engine.advance(n_iter, mode) == pytest.approx(naive.advance(n_iter, mode), rel=1e-9)
        agree(engine, naive)
        assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-9)


@engines
@pytest.mark.parametrize(("n", "loss", "way"), in_pairs([1, 20], FIRST_LOSSES[1:], WEIGHTED[:2]), ids=str)
def test_losses_without_a_closed_form(make: Any, n: int, loss: ct.Loss, way: tuple[ct.Penalty, Mode]) -> None:
    penalty, mode = way
    engine, naive = begin(make, random_problem(10, n, 2, loss, penalty))
    assert engine.advance(4, mode) == pytest.approx(naive.advance(4, mode), rel=1e-7)
    agree(engine, naive)


@engines
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
@either_mode
def test_another_order_of_the_nodes_stays_invisible(
    make: Any, loss: ct.Loss, penalty: ct.Penalty, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "FITS_IN_CACHE", 0)
    monkeypatch.setattr(ordering, "WORTH_IT", np.inf)
    monkeypatch.setattr(ordering, "FAR", 0)
    engine, naive = begin(make, random_problem(180, 3, 4, loss, penalty))
    if isinstance(engine, NumbaEngine):
        assert (engine.order.rank != np.arange(180)).any()
        assert engine.far
    for n_iter in (2, 1):
        assert engine.advance(n_iter, mode) == pytest.approx(naive.advance(n_iter, mode), rel=1e-7)
        agree(engine, naive)
        assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-7)


@pytest.mark.parametrize("long_rows", [0, np.inf])
@pytest.mark.parametrize(("n", "penalty", "mode"), [*((3, *one) for one in WEIGHTED), (20, *WEIGHTED[0])], ids=str)
def test_by_edges_or_by_rows(
    long_rows: float, n: int, penalty: ct.Penalty, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba, "LONG_ROWS", long_rows)
    engine, naive = begin(partial(NumbaEngine, threads=2), random_problem(60, n, 4, ct.SquaredError(), penalty))
    for n_iter in (3, 1):
        assert engine.advance(n_iter, mode) == pytest.approx(naive.advance(n_iter, mode), rel=1e-7)
        agree(engine, naive)
        assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-7)


def even_problem(n: int, penalty: ct.Penalty) -> ct.Problem:
    """Every node labelled, with losses that are about equally curved in all directions."""
    graph = random_problem(10, n, 1).graph
    rng = np.random.default_rng(0)
    X = np.tile(np.eye(n), (10, 1)) * rng.uniform(1.0, 1.5, (10 * n, 1))
    data = ct.LocalDatasets.from_rows(X, rng.standard_normal(10 * n), np.repeat(np.arange(10), n))
    return ct.Problem(graph, data, ct.SquaredError(), penalty, 0.1)


@engines
@pytest.mark.parametrize(
    ("n", "penalty"), [*((3, one) for one in EVERY_PENALTY), (1, EVERY_PENALTY[0]), (20, EVERY_PENALTY[1])], ids=str
)
def test_dual_steps(make: Any, penalty: ct.Penalty, n: int) -> None:
    problem = even_problem(n, penalty)
    assert Steps.of(problem.bound).modes == (Mode.DUAL,)
    engine, naive = begin(make, problem)
    for n_iter in (1, 5, 2):
        assert engine.advance(n_iter, Mode.DUAL) == pytest.approx(naive.advance(n_iter, Mode.DUAL), rel=1e-9)
        agree(engine, naive)
    engine.restart()
    naive.restart()
    assert engine.advance(3, Mode.DUAL) == pytest.approx(naive.advance(3, Mode.DUAL), rel=1e-9)
    agree(engine, naive)


@engines
def test_dual_steps_reach_the_solution(make: Any) -> None:
    problem = even_problem(3, ct.TotalVariation())
    engine, _ = begin(make, problem)
    for _ in range(40):
        r = engine.advance(40, Mode.DUAL)
        engine.restart()
    assert r < 1e-8
    assert problem.objective(point(engine, problem)[0]) == pytest.approx(oracle(problem).value, rel=1e-8)


@engines
def test_an_engine_may_be_set_up_again(make: Any) -> None:
    engine, _ = begin(make, instance("few labelled"))
    engine.advance(5, Mode.HALPERN)
    problem = random_problem(10, 1, 3)
    again, naive = begin(lambda: engine, problem)
    assert again.advance(5, Mode.HALPERN) == pytest.approx(naive.advance(5, Mode.HALPERN), rel=1e-9)
    agree(again, naive)
    for n in (3, 1):
        again, naive = begin(lambda: engine, even_problem(n, ct.TotalVariation()))
        assert again.advance(5, Mode.DUAL) == pytest.approx(naive.advance(5, Mode.DUAL), rel=1e-9)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "loss",
    [ct.Logistic(ridge=0.1, l1=0.02), ct.SquaredError(positive=True), ct.Poisson(lower=-0.2, upper=0.3, l1=0.01)],
    ids=repr,
)
def test_models_with_norms_and_bounds(loss: ct.Loss, threads: int) -> None:
    """Their primal updates are called between two halves of a node pass, and are those of NumPy."""
    problem = instance("few labelled", loss)
    compiled, plain = (begin(make, problem)[0] for make in (partial(NumbaEngine, threads=threads), NumpyEngine))
    for n_iter in (1, 4, 6):
        residuals = [engine.advance(n_iter, Mode.RELAXED) for engine in (compiled, plain)]
        assert residuals[0] == pytest.approx(residuals[1], rel=1e-7)
        for here, there in zip(point(compiled, problem), point(plain, problem), strict=True):
            np.testing.assert_allclose(here, there, **CLOSE)
    assert compiled.models is None or compiled.model is None or compiled.model.ground is not None
