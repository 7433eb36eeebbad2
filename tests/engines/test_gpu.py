"""What only the GPU engine has: sums in any order, its layout, clusters, sentences, and the way from float32 to 64."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import gpu
import numpy as np
import pytest

import coterie as ct
from coterie.kernels.choice import using
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.pace import Pace
from problems import EVERY_PENALTY, instance

needs_torch = pytest.mark.skipif(not gpu.HERE, reason="torch is not installed")
ROWS = [ct.Logistic(ridge=0.05), ct.Poisson(), ct.Huber(delta=0.5), ct.SquaredHinge(ridge=0.05)]
needs_kernels = pytest.mark.skipif(not gpu.kernels_run(), reason="no GPU, and TRITON_INTERPRET=1 is not set")


def exactly(numbers: Any) -> Fraction:
    return sum((Fraction(float(x)) for x in numbers), Fraction(0))


@needs_torch
@pytest.mark.parametrize("spread", [0, 20, 60])
def test_sums_in_any_order_are_within_their_bounds(spread: int) -> None:
    import torch

    from coterie.engines.gpu.exact import in_any_order

    rng = np.random.default_rng(spread)
    x = rng.standard_normal((300, 2)) * 2.0 ** rng.integers(-spread, spread + 1, (300, 2))
    group = torch.as_tensor(rng.integers(0, 5, 300))
    terms = torch.bincount(group, minlength=5)[:, None].double()

    def add(values: Any) -> Any:
        return torch.zeros((5, 2), dtype=torch.float64).index_add_(0, group, values)

    hi, lo, bound = in_any_order(add, torch.as_tensor(x), terms)
    for g in range(5):
        for k in range(2):
            true = exactly(x[group.numpy() == g, k])
            assert abs(exactly([hi[g, k], lo[g, k]]) - true) <= Fraction(float(bound[g, k]))


def on_kernels(*arrays: Any) -> Any:
    """Tensors where Triton's kernels run."""
    import torch

    return [torch.as_tensor(x, device="cuda" if torch.cuda.is_available() else "cpu") for x in arrays]


@needs_kernels
@pytest.mark.parametrize("spread", [0, 30])
def test_kernels_for_two_numbers_lose_nothing(spread: int) -> None:
    from coterie.engines.gpu.exact import _by_kernel

    rng = np.random.default_rng(spread)
    a, b = rng.standard_normal((2, 70, 30)) * 2.0 ** rng.integers(-spread, spread + 1, (2, 70, 30))
    b = b[:, :1]
    pairs = list(zip(a[:, :2].ravel(), np.repeat(b, 2, axis=1).ravel(), strict=True))
    for product in (False, True):
        out, error = (part[:, :2].cpu().numpy().ravel() for part in _by_kernel(*on_kernels(a, b), product))
        for (x, y), s, e in zip(pairs, out, error, strict=True):
            true = Fraction(x) * Fraction(y) if product else Fraction(x) + Fraction(y)
            assert Fraction(float(s)) + Fraction(float(e)) == true
            assert s == (x * y if product else x + y)


@needs_kernels
@pytest.mark.parametrize("m", [1, 2, 3, 10, 33, 64])
@pytest.mark.parametrize("with_errors", [False, True])
def test_kernels_add_in_pairs(m: int, with_errors: bool) -> None:
    from coterie.engines.gpu.exact import UNIT, _in_pairs

    rng = np.random.default_rng(m)
    hi = rng.standard_normal((5, m, 3)) * 2.0 ** rng.integers(-20, 21, (5, m, 3))
    lo = UNIT * hi * rng.uniform(-1, 1, hi.shape)
    given = on_kernels(hi, lo)
    for dim in (1, 0, 2):
        moved = [x.movedim(1, dim) for x in given]
        found = _in_pairs(moved[0], moved[1] if with_errors else None, dim)
        sums, rest = (x.cpu().numpy() for x in found)
        levels = (m - 1).bit_length()
        for k in range(5):
            for j in range(3):
                terms = [*hi[k, :, j], *(lo[k, :, j] if with_errors else [])]
                size = exactly(np.abs(hi[k, :, j]))
                off = abs(exactly([sums[k, j], rest[k, j]]) - exactly(terms))
                assert off <= 2 * levels * (levels + 1) * Fraction(UNIT) ** 2 * size * (1 + Fraction(1, 10**9))


@needs_torch
@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_totals_are_rounded_once(size: int) -> None:
    import torch

    from coterie.engines.gpu.exact import total

    x = np.random.default_rng(0).standard_normal(size) * 1e10
    x = np.concatenate([x, -x, np.full(min(size, 3), 0.1)])
    assert total(torch.as_tensor(x)) == pytest.approx(float(exactly(x)), rel=1e-15)


@needs_torch
@pytest.mark.parametrize("n", [1, 3, 7, 10, 19, 32])
@pytest.mark.parametrize("split", [512, 3])
def test_the_layout_gives_back_what_it_took(n: int, split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from coterie.engines.gpu import layout

    monkeypatch.setattr(layout, "SPLIT", split)
    monkeypatch.setattr(layout, "PART", 2)
    rng = np.random.default_rng(n)
    edges = np.unique(np.sort(rng.integers(0, 70, (200, 2)), axis=1), axis=0)
    i, j = torch.as_tensor(edges[edges[:, 0] != edges[:, 1]].T.astype(np.int32))
    labelled = torch.as_tensor(rng.random(70) < 0.5)
    order = torch.as_tensor(rng.permutation(70)) if n % 2 else None
    made = layout.Layout(i, j, labelled, n, 8, order=order)
    assert (made.hubs > 0) == (split == 3)
    w, u = torch.as_tensor(rng.standard_normal((70, n))), torch.as_tensor(rng.standard_normal((len(i), n)))
    inside = made.nodes_in(w, torch.float64)
    assert torch.equal(made.nodes_out(inside), w)
    assert torch.equal(made.unpacked(made.packed(inside)), inside)
    assert torch.equal(made.duals_out(made.duals_in(u, torch.float64)), u)
    assert torch.equal(made.neighbour[made.first].long(), made.rank[j.long()])
    assert torch.equal(made.neighbour[made.second].long(), made.rank[i.long()])


@needs_torch
@pytest.mark.parametrize("n", [1, 5, 11, 16, 24])
def test_tables_hold_every_entry_of_symmetric_matrices(n: int) -> None:
    import torch

    from coterie.engines.gpu.layout import Layout
    from coterie.engines.gpu.tables import Tables

    rng, K, C = np.random.default_rng(n), 21, 8
    none = torch.zeros(0, dtype=torch.int32)
    tables = Tables(K, Layout(none, none, torch.ones(K, dtype=torch.bool), n, C), torch.float64)
    A, q = rng.standard_normal((K, n, n)), rng.standard_normal((K, n))
    P = torch.as_tensor(A + A.transpose(0, 2, 1))
    tables.fill(P, torch.as_tensor(q))
    assert torch.equal(tables.q[:, :n], torch.as_tensor(q))
    N = tables.q.shape[1]
    for of, r, k in rng.integers(0, (K, n, n), (50, 3)):
        low, high = min(r, k), max(r, k)
        kept = tables.P[of, r, k] if tables.whole else tables.P[of // C, low * N - low * (low + 1) // 2 + high, of % C]
        assert kept == P[of, r, k]
    assert not tables.q[:, n:].any()


@needs_torch
def test_an_order_of_clusters_brings_neighbours_together() -> None:
    import torch

    from coterie.engines.gpu.order import clustered

    side, rng = 40, np.random.default_rng(0)
    node = rng.permutation(side * side).reshape(side, side)
    ends = [np.concatenate([a.ravel(), b.ravel()]) for a, b in ((node[:, 1:], node[1:]), (node[:, :-1], node[:-1]))]
    i, j = (torch.as_tensor(end.astype(np.int32)) for end in ends)
    order = clustered(i, j, side * side)
    assert sorted(order.tolist()) == list(range(side * side))
    place = torch.argsort(order)
    span = (place[i.long()] - place[j.long()]).abs().double()
    assert float(span.median()) < side  # as in rows one after the other
    assert float(span.mean()) < side * side / 8  # a third of all nodes in the given order
    assert clustered(i[:0], j[:0], 5).tolist() == list(range(5))


@needs_torch
def test_a_good_order_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from coterie.engines.gpu import order

    i = torch.arange(99, dtype=torch.int32)
    monkeypatch.setattr(order, "CACHED", 1000)
    monkeypatch.setattr(order, "NEAR", 80)
    shuffled = torch.as_tensor(np.random.default_rng(0).permutation(100), dtype=torch.int32)
    given = torch.arange(100)
    assert torch.equal(order.nearby(i, i + 1, 100, 16), given)
    assert torch.equal(order.nearby(shuffled[:-1], shuffled[1:], 100, 8), given)  # few enough for any order
    assert not torch.equal(order.nearby(shuffled[:-1], shuffled[1:], 100, 16), given)


@needs_torch
@pytest.mark.parametrize("penalty", EVERY_PENALTY[:2], ids=repr)
def test_clusters_are_those_of_the_reference(penalty: ct.Penalty) -> None:
    import torch

    from coterie.engines.gpu.engine import GpuEngine

    problem = instance("weighted edges", penalty=penalty).bound
    prover = GpuEngine("cpu", fused=False).prover(problem)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((problem.graph.n_nodes, problem.n_features))
    u = problem.c[:, None] * rng.choice([0.1, 1.0], (problem.graph.n_edges, problem.n_features))
    with using(compiled=False):
        expected = DualClusters.shown_by(problem, u)
        assert expected is not None
        average = expected.average(w)
    clusters = prover.dual_clusters(torch.as_tensor(u))
    assert clusters is not None
    assert clusters.total == expected.total
    np.testing.assert_allclose(prover.average(clusters, torch.as_tensor(w)), average)


@needs_torch
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("kind", ["few labelled", "few points"])
def test_a_glance_tells_what_the_minorant_comes_to(kind: str, penalty: ct.Penalty) -> None:
    import torch

    from coterie.engines.gpu.engine import GpuEngine

    problem = instance(kind, penalty=penalty).bound
    prover = GpuEngine("cpu", fused=False).prover(problem)
    rng = np.random.default_rng(0)
    w = torch.as_tensor(rng.standard_normal((problem.graph.n_nodes, problem.n_features)))
    u = torch.as_tensor(rng.standard_normal((problem.graph.n_edges, problem.n_features)))
    prover.clip(u)
    level = prover.objective(w)
    assert prover.glance(w, u, level) == pytest.approx(prover.minorant(w, u, None).value, rel=1e-9)
    assert prover.glance(w, u, level) <= level


@needs_torch
@pytest.mark.parametrize("kind", ["few labelled", "few points"])
@pytest.mark.parametrize("loss", [ct.SquaredError(), *ROWS], ids=str)
def test_rows_prove_what_they_prove_in_numpy(loss: ct.Loss, kind: str) -> None:
    import torch

    from coterie.engines.gpu.rows import Rows

    f = instance(kind, loss).bound.f
    here, w = Rows(f.design, "cpu"), np.random.default_rng(0).standard_normal((f.design.n_nodes, len(f.design.ridge)))
    there = torch.as_tensor(w)
    given, found = f.design.support(*f.design.slopes(w), w), here.support(*here.slopes(there), there)
    for name in ("at", "q", "rounding_bound"):
        np.testing.assert_allclose(getattr(found, name), getattr(given, name), rtol=1e-13, atol=1e-15)
    assert here.ceiling(10.0, there) == pytest.approx(f.design.ceiling(10.0, w), rel=1e-15)
    assert (found.at.numpy() <= f.design.values(w)).all()
    lost = Rows(f.design, "cpu").values(torch.full_like(there, 1e200))
    np.testing.assert_array_equal(np.isfinite(lost.numpy()), np.isfinite(f.design.values(np.full_like(w, 1e200))))


@needs_torch
@pytest.mark.parametrize("kind", ["few labelled", "few points"])
@pytest.mark.parametrize("loss", ROWS, ids=str)
def test_models_and_primal_updates_of_rows_are_those_of_numpy(loss: ct.Loss, kind: str) -> None:
    import torch

    from coterie.engines.gpu.losses import on_device

    f, rng = instance(kind, loss).bound.f, np.random.default_rng(0)
    there = on_device(f, torch.device("cpu"))
    w, before = (0.3 * rng.standard_normal((f.design.n_nodes, len(f.design.ridge))) for _ in range(2))
    tau = rng.uniform(0.1, 2, len(w))
    for last in (None, before):
        given = f.model(w, last)
        found = there.model(torch.as_tensor(w), None if last is None else torch.as_tensor(last))
        np.testing.assert_allclose(found.slope, given.slope, atol=1e-13)
        np.testing.assert_allclose(found.H, given.H, atol=1e-13)
        assert (found.change, found.everywhere) == pytest.approx((given.change, given.everywhere))
    updated = there.prox(*map(torch.as_tensor, (w, tau, before)))
    np.testing.assert_allclose(updated, f.prox(w, tau, before), atol=1e-9)


@needs_torch
@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(0.1), *ROWS, ct.Quantile(), ct.Huber(l1=0.05)], ids=str)
def test_a_solve_is_certified(loss: ct.Loss) -> None:
    from coterie.engines.gpu.engine import GpuEngine

    problem = instance("few labelled", loss)
    here, there = (ct.solve(problem, 1e-6, engine=engine) for engine in ("numpy", GpuEngine("cpu", fused=False)))
    assert there.status is ct.Status.OPTIMAL
    assert there.dual_bound <= here.objective * (1 + 1e-12)
    assert there.objective == pytest.approx(here.objective, rel=3e-6)
    assert ct.certify(problem, there.w, there.u).unconditional


@needs_kernels
def test_single_precision_gives_way_to_double() -> None:
    import torch

    from coterie.engines.gpu.engine import GpuEngine

    engine = GpuEngine("cuda" if torch.cuda.is_available() else "cpu")
    solution = ct.solve(instance("all labelled", ct.Lasso(0.1)), 1e-9, engine=engine)
    assert solution.status is ct.Status.OPTIMAL
    assert engine.iteration.dtype is torch.float64


@needs_kernels
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_rows_that_are_cut_give_the_same_answer(penalty: ct.Penalty, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from coterie.engines.gpu import layout
    from coterie.engines.gpu.engine import GpuEngine

    device, problem = "cuda" if torch.cuda.is_available() else "cpu", instance("few labelled", penalty=penalty)
    whole = ct.solve(problem, 1e-6, engine=GpuEngine(device, torch.float64, fused=True))
    monkeypatch.setattr(layout, "SPLIT", 3)
    monkeypatch.setattr(layout, "PART", 2)
    engine = GpuEngine(device, torch.float64, fused=True)
    cut = ct.solve(problem, 1e-6, engine=engine)
    assert engine.iteration.layout.hubs > 0
    assert cut.status is whole.status is ct.Status.OPTIMAL
    assert cut.objective == pytest.approx(whole.objective, rel=1e-9)
    assert cut.dual_bound <= whole.objective * (1 + 1e-12)


@needs_kernels
def test_another_order_of_nodes_gives_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from coterie.engines.gpu import order
    from coterie.engines.gpu.engine import GpuEngine

    device, problem = "cuda" if torch.cuda.is_available() else "cpu", instance("few labelled")
    given = ct.solve(problem, 1e-6, engine=GpuEngine(device, torch.float64, fused=True))
    monkeypatch.setattr(order, "CACHED", 0)
    monkeypatch.setattr(order, "NEAR", 0)
    other = ct.solve(problem, 1e-6, engine=GpuEngine(device, torch.float64, fused=True))
    assert other.status is given.status is ct.Status.OPTIMAL
    assert other.objective == pytest.approx(given.objective, rel=3e-6)
    assert other.dual_bound <= given.objective * (1 + 1e-12)


@needs_torch
def test_a_problem_that_is_too_large_is_refused_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.engines.gpu import device, engine

    monkeypatch.setattr(device, "bytes_free", lambda where: 1000)
    problem = instance()
    with pytest.raises(
        MemoryError, match=rf"{device.bytes_needed(problem.bound):,} bytes on a GPU, and 1,000 are free"
    ):
        ct.solve(problem, engine=engine.GpuEngine("cpu"))


def test_without_torch_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.engines.gpu import device

    device.missing.cache_clear()
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    with pytest.raises(device.NoGPU, match="needs torch, which is not installed: install torch"):
        ct.solve(instance(), engine="gpu")
    device.missing.cache_clear()


@needs_torch
def test_without_a_gpu_a_sentence_says_so() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match=r'engine="gpu" (needs a build of torch for CUDA|cannot use a GPU here)'):
        ct.solve(instance(), engine="gpu")


def test_auto_loads_torch_for_large_problems_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.engines.gpu import device
    from coterie.solver import pace

    asked: list[None] = []
    monkeypatch.setattr(device, "missing", lambda: asked.append(None) or "nothing here")
    assert not Pace(instance().bound).suits_gpu()
    assert not asked
    monkeypatch.setattr(pace, "WORTH_A_GPU", 0.0)
    assert not Pace(instance().bound).suits_gpu()
    assert asked
    assert not Pace(instance("few labelled", ct.Logistic()).bound).suits_gpu()
    assert len(asked) == 1


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import importlib.util as util
found = util.find_spec
util.find_spec = lambda name, package=None: None if name == "numba" else found(name, package)
import coterie as ct
graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
engines = ["auto"]
if found("torch") is not None:
    from coterie.engines.gpu.engine import GpuEngine
    engines.append(GpuEngine("cpu", fused=False))
for engine in engines:
    assert ct.solve(ct.Problem(graph, data, lam=0.5), engine=engine).status is ct.Status.OPTIMAL
"""


def test_neither_the_package_nor_the_engine_needs_numba() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], check=True)
