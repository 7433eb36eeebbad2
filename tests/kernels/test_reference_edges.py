"""The NumPy form of every kernel on nodes and edges, beside the compiled one."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from functools import partial
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.io import moment_kernels as moments
from coterie.kernels import (
    L1,
    L2,
    SQUARED,
    cluster_systems,
    clusters,
    conjugate,
    contract,
    flow,
    laplacian,
    norms,
    static_int,
    unseen,
    vector_buffer,
)
from coterie.kernels import reference as package
from coterie.kernels.reference import cluster_systems as plain_systems
from coterie.kernels.reference import clusters as plain_clusters
from coterie.kernels.reference import conjugate as plain_conjugate
from coterie.kernels.reference import contract as plain_contract
from coterie.kernels.reference import flow as plain_flow
from coterie.kernels.reference import laplacian as plain_laplacian
from coterie.kernels.reference import moments as plain_moments
from coterie.kernels.reference import norms as plain_norms
from coterie.kernels.reference import repulsion as plain_repulsion
from coterie.kernels.reference import unseen as plain_unseen
from coterie.report import repulsion
from problems import Graph, graphs

KINDS = st.sampled_from([L1, L2, SQUARED])
SEEDS, COLUMNS = st.integers(0, 999), st.sampled_from([1, 2, 3, 12])


class Case:
    """Weights, duals in and out of their domain, and labels of a random graph."""

    def __init__(self, graph: Graph, n: int, seed: int) -> None:
        built, self.rng = graph.build(), np.random.default_rng(seed)
        self.V, self.ends, self.c, self.n = built.n_nodes, built.edges, built.weights.copy(), n
        self.w = np.round(self.rng.standard_normal((self.V, n)), 1)  # rounded, so that some are equal
        self.u = self.c[:, None] * self.rng.choice([0.0, 0.4, 1.0, -1.0, 1.5, -0.9], (len(self.c), n))
        self.labelled = self.rng.random(self.V) < 0.4

    def drawn(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape)


CASES = st.builds(Case, graphs(), COLUMNS, SEEDS)


def agree(compiled: Any, plain: Any, *arguments: Any, exactly: bool = False) -> Any:
    """Both forms on copies of the same arguments: the same results, and the same arrays afterwards."""
    runs = [[a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2)]
    results = [function(*run) for function, run in zip((compiled, plain), runs, strict=True)]
    for first, second in [*zip(*runs, strict=True), tuple(results)]:
        if isinstance(first, np.ndarray | float | int | np.generic):
            if exactly:
                np.testing.assert_array_equal(second, first)
            else:
                np.testing.assert_allclose(second, first, rtol=1e-9, atol=1e-12)
    return results[1]


def test_no_numpy_form_needs_the_compiler() -> None:
    names = [f"{package.__name__}.{module.name}" for module in iter_modules(package.__path__)]
    script = f"import sys, importlib\nfor name in {names}: importlib.import_module(name)\n"
    subprocess.run([sys.executable, "-c", script + "assert 'numba' not in sys.modules"], check=True)


@given(CASES)
def test_sums_over_edges(case: Case) -> None:
    out = np.empty_like(case.w)
    agree(flow.divergence, plain_flow.divergence, case.ends, case.u, out)
    agree(flow.divergence, plain_flow.divergence, case.ends.astype(np.uint32), case.u, out)
    agree(clusters.cut_forces, plain_clusters.cut_forces, case.ends, case.c, case.w, out)
    S, x = np.abs(case.drawn(*case.u.shape)).astype(np.float32), case.drawn(case.V, case.n)
    for ground in (laplacian.NO_GROUND, np.abs(case.drawn(case.V, case.n))):
        agree(laplacian.diagonal, plain_laplacian.diagonal, case.ends, S, ground, out)
        agree(laplacian.apply, plain_laplacian.apply, static_int(0), case.ends, S, ground, x, out)


@given(CASES)
def test_sums_in_twice_the_precision(case: Case) -> None:
    """Within what both say they may be off by."""
    u = case.u * 10.0 ** case.rng.integers(-9, 9, case.u.shape)
    hi, lo, rounding_bound = (np.empty_like(case.w) for _ in range(3))
    s = case.drawn(case.V, case.n)
    plain_flow.exact_divergence(case.ends, u, hi, lo, rounding_bound)
    plain_flow.add_exactly(s, hi, lo, rounding_bound)
    for i in range(case.V):
        for k in range(case.n):
            out = [Fraction(float(u[e, k])) for e in np.flatnonzero(case.ends[:, 0] == i)]
            into = [Fraction(float(u[e, k])) for e in np.flatnonzero(case.ends[:, 1] == i)]
            true = sum(out, Fraction(0)) - sum(into, Fraction(0)) + Fraction(float(s[i, k]))
            assert abs(true - Fraction(float(hi[i, k])) - Fraction(float(lo[i, k]))) <= Fraction(
                float(rounding_bound[i, k])
            )
    beside = [np.empty_like(case.w) for _ in range(3)]
    flow.exact_divergence(case.ends, u, *beside)
    flow.add_exactly(s, *beside)
    np.testing.assert_allclose(rounding_bound, beside[2], rtol=1e-9)


@given(CASES, KINDS)
def test_what_edges_cost(case: Case, kind: int) -> None:
    agree(flow.across, plain_flow.across, case.ends, case.u, case.w)
    value = agree(flow.variation, plain_flow.variation, kind, case.ends, case.c, case.w)
    assert isinstance(value, float)
    true = sum(
        (Fraction(float(u)) * (Fraction(float(a)) - Fraction(float(b))))
        for row, (i, j) in zip(case.u, case.ends, strict=True)
        for u, a, b in zip(row, case.w[i], case.w[j], strict=True)
    )
    assert Fraction(plain_flow.across(case.ends, case.u, case.w)) <= true


def test_what_is_no_number_proves_nothing() -> None:
    ends, w = np.array([[0, 1], [1, 2]]), np.array([[1e308], [-1e308], [1e308]])
    with np.errstate(all="ignore"):
        assert not np.isfinite(plain_flow.variation(L1, ends, np.ones(2), w))
        assert not plain_flow.across(ends, np.array([[1.0], [-1.0]]), w) > -np.inf


@given(CASES, KINDS)
def test_the_domain_of_duals(case: Case, kind: int) -> None:
    marks = case.rng.choice([0.0, flow.PUSHED], case.u.shape).astype(np.float32)
    c = np.where(case.rng.random(len(case.c)) < 0.1, 0.0, case.c)
    agree(flow.into_domain, plain_flow.into_domain, kind, c, case.u)
    agree(flow.slack_weights, plain_flow.slack_weights, kind, case.c, case.u, marks)
    fixed = np.empty(case.u.shape, dtype=bool)
    agree(flow.saturate_cuts, plain_flow.saturate_cuts, case.ends, case.c, case.w, case.u, fixed)


@given(CASES, KINDS)
def test_corrections(case: Case, kind: int) -> None:
    S = np.abs(case.drawn(*case.u.shape)).astype(np.float32)
    moving = static_int(min(case.n, 8)), kind, static_int(0), case.ends, case.c, S, case.drawn(case.V, case.n)
    agree(flow.stretch, plain_flow.stretch, *moving, case.u)
    agree(flow.correct, plain_flow.correct, *moving, 1.25, case.u)


@given(CASES)
def test_what_no_data_see(case: Case) -> None:
    seen = np.linalg.qr(case.drawn(max(int(case.labelled.sum()), 1), case.n, max(case.n - 1, 1)))[0].transpose(0, 2, 1)
    x = case.drawn(case.V, case.n)
    both = (partial(module.leave, vector_buffer(case.n)) for module in (unseen, plain_unseen))
    nodes = np.flatnonzero(case.labelled)
    agree(*both, nodes, np.ascontiguousarray(seen)[: len(nodes)], x, x)


@given(CASES)
def test_conjugate_gradients_and_lanczos(case: Case) -> None:
    a, b, c, d, e, f = case.drawn(6, case.V, case.n)
    agree(conjugate.inner, plain_conjugate.inner, a, b)
    agree(conjugate.descend, plain_conjugate.descend, 0.3, a, b, c, d, e, f)
    agree(conjugate.turn, plain_conjugate.turn, 0.3, a, b)
    if len(case.ends):
        degree = np.bincount(case.ends.ravel(), minlength=case.V) + 1.0
        bare, plain = (module.lanczos(case.ends, case.c, degree, a[:, 0].copy(), 4) for module in (norms, plain_norms))
        steps = int(np.flatnonzero(np.append(bare[1] < 1e-6, True))[0])  # after that, all is rounding
        np.testing.assert_allclose(plain[0][:steps], bare[0][:steps], rtol=1e-6, atol=1e-9)


@given(CASES, st.sampled_from([L1, L2]))
def test_clusters(case: Case, kind: int) -> None:
    label = np.empty((case.V, case.n), dtype=np.int64)
    counts = agree(
        clusters.find_clusters, plain_clusters.find_clusters, kind, case.ends, case.c, case.u, 1e-6, label, exactly=True
    )
    plain_clusters.find_clusters(kind, case.ends, case.c, case.u, 1e-6, label)
    agree(clusters.average, plain_clusters.average, label, counts, case.w, np.empty_like(case.w))
    seen = case.rng.random(case.w.shape) < 0.5
    agree(clusters.join_unseen, plain_clusters.join_unseen, case.ends, seen, case.w, label, counts, exactly=True)
    flat = np.empty_like(case.w)
    plain_clusters.average(label, counts, case.w, flat)
    moved = np.empty_like(case.w)
    plain_clusters.average(label, counts, case.w + case.drawn(case.V, case.n), moved)
    crossing = case.ends, flat, moved, 1e-12, label, counts
    agree(clusters.join_crossed, plain_clusters.join_crossed, *crossing, exactly=True)
    level = case.rng.integers(-1, 3, case.V)
    agree(clusters.split, plain_clusters.split, level, 0, label, int(counts[0]), exactly=True)


@given(SEEDS, COLUMNS)
def test_products_of_clusters(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    H, at, (ridge, x) = rng.standard_normal((4, n, n)), rng.integers(0, 7, (4, n)), rng.standard_normal((2, 7))
    both = (partial(module.multiply, vector_buffer(n)) for module in (cluster_systems, plain_systems))
    agree(*both, H, at, ridge, x, np.empty(7))


@pytest.mark.slow
@given(CASES, st.booleans())
def test_contraction(case: Case, leaves_only: bool) -> None:
    via, root, order = np.full((3, case.V), -1)
    dominant = case.V, case.ends, case.c, case.labelled, leaves_only, via
    agree(contract.dominant_edges, plain_contract.dominant_edges, *dominant, exactly=True)
    contract.dominant_edges(*dominant)
    agree(contract.break_cycles, plain_contract.break_cycles, case.ends, via, root, order, exactly=True)
    edge_of = case.rng.integers(0, 3, len(case.c))
    agree(contract.sum_parallel, plain_contract.sum_parallel, edge_of, case.c, np.zeros(3))
    plain_contract.break_cycles(case.ends, via, root, order)
    agree(contract.push_flows, plain_contract.push_flows, case.ends, via, order, case.drawn(case.V, case.n), case.u)


@given(CASES)
def test_a_spanning_forest(case: Case) -> None:
    """As many roots as the compiled form has, and every node after the one that it points at."""
    via, order = np.full((2, case.V), -1)
    plain_contract.spanning_forest(case.V, case.ends, via, order)
    compiled = np.full(case.V, -1), np.full(case.V, -1)
    contract.spanning_forest(case.V, case.ends, *compiled)
    assert (via < 0).sum() == (compiled[0] < 0).sum()
    assert sorted(order) == list(range(case.V))
    place = np.argsort(order)
    for i in np.flatnonzero(via >= 0):
        assert i in case.ends[via[i]]
        assert place[case.ends[via[i]].sum() - i] < place[i]


@pytest.mark.parametrize("V", [1, 3])
def test_graphs_without_edges(V: int) -> None:
    ends, via, root, order = np.empty((0, 2), dtype=np.int64), *np.full((3, V), -1)
    plain_contract.dominant_edges(V, ends, np.empty(0), np.zeros(V, dtype=bool), False, via)
    assert plain_contract.break_cycles(ends, via, root, order) == V
    plain_contract.spanning_forest(V, ends, via, order)
    assert (via == -1).all()
    assert sorted(order) == list(range(V))


@pytest.mark.parametrize("V", [1, 2, 50, 300])
@pytest.mark.parametrize("side", [1, 3, 7])
def test_points_of_a_drawing(V: int, side: int) -> None:
    x = np.random.default_rng(V).standard_normal((V, 2))
    agree(repulsion.repulsion, plain_repulsion.repulsion, x, side, np.empty_like(x))


@given(st.lists(st.integers(-(2**62), 2**62), max_size=30), SEEDS)
def test_numbers_of_ids(ids: list[int], seed: int) -> None:
    given_ids = np.random.default_rng(seed).choice(np.array([*ids, 7], dtype=np.int64), 40)
    table = np.full((128, 2), -1)
    numbers = np.empty(40, dtype=np.int64)
    known = agree(moments.number_ids, plain_moments.number_ids, given_ids, table, 0, numbers, exactly=True)
    moments.number_ids(given_ids, table, 0, numbers)
    agree(moments.number_ids, plain_moments.number_ids, given_ids[::-1].copy(), table, known, numbers, exactly=True)


@given(st.integers(0, 40), st.sampled_from([1, 2]), SEEDS)
def test_moments(count: int, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 5, count), rng.standard_normal((3, count)) + 1e3
    state = [np.zeros(5, dtype=np.int64), np.zeros((5, 3)), np.zeros((5, 3)), np.zeros((5, 6))]
    for _ in range(2):  # into nothing, and to what is there
        agree(moments.add_rows, plain_moments.add_rows, parts - 1, parts, *rows, *state)
        moments.add_rows(parts - 1, parts, *rows, *state)
