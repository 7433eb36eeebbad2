"""Shared instances, naive formulas, and CVXPY + Clarabel as the oracle.

Everything here is written a second time and the slow way: plain loops, no code of the package. A new loss
or penalty joins all tests by one entry in LOSSES or PENALTIES.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from hypothesis import strategies as st

import coterie as ct

# --- what the tests must know of each loss and penalty ------------------------------------------------------


@dataclass(frozen=True)
class LossCase:
    """Examples of a loss; its formula as a loop over one node's rows, and in CVXPY over all rows."""

    examples: tuple[ct.Loss, ...]
    labels: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    naive: Callable[[Any, np.ndarray, np.ndarray, np.ndarray], float]  # (loss, X, y, w) of one node
    convex: Callable[..., cp.Expression]  # (loss, ⟨x_r, w⟩ of all rows, y, m of each row's node, w of labelled nodes)
    rank_rows: Callable[[Any, int], np.ndarray]  # rows that, stacked on X, span what the loss is not flat along


@dataclass(frozen=True)
class PenaltyCase:
    """Examples of a penalty; φ as a loop, in CVXPY, and how far outside its dual domain a point lies."""

    examples: tuple[ct.Penalty, ...]
    naive: Callable[[np.ndarray], float]  # φ of one edge's difference
    convex: Callable[[cp.Expression, np.ndarray], cp.Expression]
    outside: Callable[[np.ndarray, float], float]  # of one edge's dual and c_e: ≤ 0 inside


def penalised(loss: Any, n: int) -> np.ndarray:
    """1 for the columns that ridge or alpha applies to, 0 for the others."""
    mask = np.ones(n)
    mask[list(loss.unpenalised)] = 0.0
    return mask


def _naive_l1(loss: Any, w: np.ndarray) -> float:
    return getattr(loss, "l1", 0.0) * sum(penalised(loss, len(w)) * abs(w))


def _convex_l1(loss: Any, w: cp.Expression) -> cp.Expression:
    return getattr(loss, "l1", 0.0) * cp.sum(cp.abs(w) @ penalised(loss, w.shape[1]))


def _naive_squared(loss: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    total = sum((y_r - sum(x_r * w)) ** 2 for x_r, y_r in zip(X, y, strict=True))
    if getattr(loss, "reduction", "mean") == "mean":
        total /= len(y)
    return total + getattr(loss, "ridge", 0.0) * sum(penalised(loss, len(w)) * w**2) + _naive_l1(loss, w)


def _naive_lasso(loss: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    return _naive_squared(loss, X, y, w) + loss.alpha * sum(penalised(loss, len(w)) * abs(w))


def _naive_logistic(loss: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    total = 0.0
    for x_r, y_r in zip(X, y, strict=True):
        z = sum(x_r * w)
        total += max(z, 0.0) + np.log1p(np.exp(-abs(z))) - y_r * z
    ridge = loss.ridge * sum(penalised(loss, len(w)) * w**2)
    return total / (len(y) if loss.reduction == "mean" else 1) + ridge + _naive_l1(loss, w)


def _convex_squared(loss: Any, z: cp.Expression, y: np.ndarray, m: np.ndarray, w: cp.Expression) -> cp.Expression:
    scale = np.ones(len(m)) if getattr(loss, "reduction", "mean") == "sum" else 1 / m
    ridge = getattr(loss, "ridge", 0.0) * penalised(loss, w.shape[1])
    fit = cp.sum_squares(cp.multiply(np.sqrt(scale), z - y)) + cp.sum_squares(w @ np.diag(np.sqrt(ridge)))
    return fit + _convex_l1(loss, w)


def _convex_lasso(loss: Any, z: cp.Expression, y: np.ndarray, m: np.ndarray, w: cp.Expression) -> cp.Expression:
    alpha = loss.alpha * penalised(loss, w.shape[1])
    return _convex_squared(loss, z, y, m, w) + cp.sum(cp.abs(w) @ alpha)


def _convex_logistic(loss: Any, z: cp.Expression, y: np.ndarray, m: np.ndarray, w: cp.Expression) -> cp.Expression:
    ridge = loss.ridge * penalised(loss, w.shape[1])
    scale = np.ones(len(m)) if loss.reduction == "sum" else 1 / m
    fit = scale @ (cp.logistic(z) - cp.multiply(y, z)) + cp.sum_squares(w @ np.diag(np.sqrt(ridge)))
    return fit + _convex_l1(loss, w)


def _naive_rows(psi: Callable[[Any, float, float], float]) -> Callable[..., float]:
    """The formula of a loss, given ψ of a loss, a margin and a label."""

    def naive(loss: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
        total = sum(psi(loss, sum(x_r * w), y_r) for x_r, y_r in zip(X, y, strict=True))
        ridge = loss.ridge * sum(penalised(loss, len(w)) * w**2)
        return total / (len(y) if loss.reduction == "mean" else 1) + ridge + _naive_l1(loss, w)

    return naive


def _convex_rows(psi: Callable[[Any, cp.Expression, np.ndarray], cp.Expression]) -> Callable[..., cp.Expression]:
    """The same in CVXPY, given ψ of all rows."""

    def convex(loss: Any, z: cp.Expression, y: np.ndarray, m: np.ndarray, w: cp.Expression) -> cp.Expression:
        ridge = loss.ridge * penalised(loss, w.shape[1])
        scale = np.ones(len(m)) if loss.reduction == "sum" else 1 / m
        return scale @ psi(loss, z, y) + cp.sum_squares(w @ np.diag(np.sqrt(ridge))) + _convex_l1(loss, w)

    return convex


def _poisson(loss: Any, z: float, y: float) -> float:
    with np.errstate(over="ignore"):
        return np.exp(z) - y * z + (y * np.log(y) - y if y else 0.0)


def _huber(loss: Any, z: float, y: float) -> float:
    size = abs(y - z)
    return size**2 if size <= loss.delta else 2 * loss.delta * size - loss.delta**2


def _hinge(loss: Any, z: float, y: float) -> float:
    return max(0.0, 1 - (z if y > 0.5 else -z)) ** 2


def _seen_by(strength: str) -> Callable[[Any, int], np.ndarray]:
    return lambda loss, n: np.diag(getattr(loss, strength) * penalised(loss, n))


def _real_labels(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return z + 0.3 * rng.standard_normal(len(z))


def _binary_labels(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (z + 0.3 * rng.standard_normal(len(z)) > 0).astype(float)


def _counts(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """None of them zero: every node's loss has a minimiser."""
    return 1.0 + rng.poisson(np.exp(np.clip(z, -3, 3)))


LOSSES: dict[type[ct.Loss], LossCase] = {
    ct.SquaredError: LossCase(
        (
            ct.SquaredError(),
            ct.SquaredError(reduction="sum"),
            ct.SquaredError(ridge=0.3),
            ct.SquaredError(ridge=0.3, unpenalised=(-1,)),
            ct.SquaredError(ridge=0.3, l1=0.2, unpenalised=(1,)),
        ),
        _real_labels,
        _naive_squared,
        _convex_squared,
        _seen_by("ridge"),
    ),
    ct.Lasso: LossCase(
        (
            ct.Lasso(0.2),
            ct.Lasso(0.2, unpenalised=(0,)),
            ct.Lasso(0.0),
            ct.Lasso(0.2, reduction="sum"),
            ct.Lasso(0.2, ridge=0.1),
        ),
        _real_labels,
        _naive_lasso,
        _convex_lasso,
        _seen_by("ridge"),
    ),
    ct.Logistic: LossCase(
        (
            ct.Logistic(),
            ct.Logistic(ridge=0.1),
            ct.Logistic(ridge=0.1, unpenalised=(1,)),
            ct.Logistic(ridge=0.1, reduction="sum"),
            ct.Logistic(ridge=0.1, l1=0.05),
        ),
        _binary_labels,
        _naive_logistic,
        _convex_logistic,
        _seen_by("ridge"),
    ),
    ct.Poisson: LossCase(
        (ct.Poisson(), ct.Poisson(ridge=0.1, unpenalised=(1,)), ct.Poisson(ridge=0.1, reduction="sum")),
        _counts,
        _naive_rows(_poisson),
        _convex_rows(
            lambda loss, z, y: cp.exp(z) - cp.multiply(y, z) + (y * np.log(np.maximum(y, 1.0)) - y),
        ),
        _seen_by("ridge"),
    ),
    ct.Huber: LossCase(
        (ct.Huber(delta=0.5), ct.Huber(ridge=0.1, unpenalised=(1,)), ct.Huber(l1=0.1, reduction="sum", delta=0.2)),
        lambda z, rng: z + 0.3 * rng.standard_t(2, len(z)),
        _naive_rows(_huber),
        _convex_rows(lambda loss, z, y: cp.huber(z - y, loss.delta)),
        _seen_by("ridge"),
    ),
    ct.Quantile: LossCase(
        (ct.Quantile(), ct.Quantile(ridge=0.1, unpenalised=(1,), q=0.8), ct.Quantile(reduction="sum", q=0.25, l1=0.2)),
        _real_labels,
        _naive_rows(lambda loss, z, y: max(loss.q * (y - z), (loss.q - 1) * (y - z))),
        _convex_rows(lambda loss, z, y: cp.maximum(loss.q * (y - z), (loss.q - 1) * (y - z))),
        _seen_by("ridge"),
    ),
    ct.SquaredHinge: LossCase(
        (ct.SquaredHinge(), ct.SquaredHinge(ridge=0.1), ct.SquaredHinge(ridge=0.1, reduction="sum", unpenalised=(1,))),
        _binary_labels,
        _naive_rows(_hinge),
        _convex_rows(lambda loss, z, y: cp.square(cp.pos(1 - cp.multiply(2 * y - 1, z)))),
        _seen_by("ridge"),
    ),
}

PENALTIES: dict[type[ct.Penalty], PenaltyCase] = {
    ct.TotalVariation: PenaltyCase(
        (ct.TotalVariation(),),
        lambda z: sum(abs(z)),
        lambda z, c: cp.sum(c @ cp.abs(z)),
        lambda u, c: max(abs(u)) - c,
    ),
    ct.GroupTotalVariation: PenaltyCase(
        (ct.GroupTotalVariation(),),
        lambda z: sum(z**2) ** 0.5,
        lambda z, c: c @ cp.norm(z, 2, axis=1),
        lambda u, c: sum(u**2) ** 0.5 - c,
    ),
    ct.SquaredVariation: PenaltyCase(
        (ct.SquaredVariation(),),
        lambda z: sum(z**2),
        lambda z, c: cp.sum(c @ cp.square(z)),
        lambda u, c: -np.inf if c > 0 else max(abs(u)),
    ),
}

EVERY_LOSS = [example for case in LOSSES.values() for example in case.examples]
EVERY_PENALTY = [example for case in PENALTIES.values() for example in case.examples]
FIRST_LOSSES = [LOSSES[kind].examples[0] for kind in (ct.SquaredError, ct.Lasso, ct.Logistic)]  # by how they are solved
OTHER_LOSSES = [LOSSES[kind].examples[0] for kind in LOSSES if kind not in (ct.SquaredError, ct.Lasso, ct.Logistic)]


def case_of(part: ct.Loss | ct.Penalty) -> Any:
    return (LOSSES if isinstance(part, ct.Loss) else PENALTIES)[type(part)]


def is_binary(loss: ct.Loss) -> bool:
    return case_of(loss).labels is _binary_labels


# --- naive values -------------------------------------------------------------------------------------------


def naive_objective(problem: ct.Problem, w: np.ndarray) -> float:
    """f(w) + g(Dw), node by node and edge by edge."""
    data, total = problem.data, 0.0
    for i in range(problem.graph.n_nodes):
        rows = [r for r in range(len(data.y)) if data.nodes[r] == i and not np.isnan(data.y[r])]
        if rows:
            total += case_of(problem.loss).naive(problem.loss, data.X[rows], data.y[rows], w[i])
    for (i, j), a in zip(problem.graph.edges, problem.graph.weights, strict=True):
        d, (t, tied) = w[i] - w[j], units_of_columns(problem)
        total += np.inf if d[tied].any() else problem.lam * a * case_of(problem.penalty).naive(t * d)
    return float(total)


def units_of_columns(problem: ct.Problem) -> tuple[np.ndarray, np.ndarray]:
    """What differences are to be multiplied with before φ, and the columns that are tied: strengths in other words."""
    s = np.ones(problem.n_features) if problem.strength is None else problem.strength
    tied = s == np.inf
    t = np.where(tied, 0.0, s)
    return np.sqrt(t) if isinstance(problem.penalty, ct.SquaredVariation) else t, tied


def outside_domain(problem: ct.Problem, u: np.ndarray) -> float:
    """How far the worst edge's dual lies outside the domain of g*; ≤ 0 when all are inside."""
    outside, (t, tied) = case_of(problem.penalty).outside, units_of_columns(problem)
    if u[:, (t == 0) & ~tied].any():
        return np.inf
    scaled = np.divide(u, t, out=np.zeros_like(u), where=t > 0)
    return max((outside(u_e, c_e) for u_e, c_e in zip(scaled, problem.c, strict=True)), default=-np.inf)


# --- the oracle ---------------------------------------------------------------------------------------------


class Oracle(NamedTuple):
    """Weights found by Clarabel and their objective: never below the optimum, whatever Clarabel's accuracy."""

    w: np.ndarray
    value: float


def oracle(problem: ct.Problem, box: tuple[np.ndarray, np.ndarray] | None = None) -> Oracle:
    """Minimise with CVXPY + Clarabel, over a box if one is given."""
    w = cp.Variable((problem.graph.n_nodes, problem.n_features))
    rows = ~np.isnan(problem.data.y)
    X, y, nodes = problem.data.X[rows], problem.data.y[rows], problem.data.nodes[rows]
    objective = cp.Constant(0.0)
    if len(y):
        m = np.bincount(nodes)[nodes]
        margins = cp.sum(cp.multiply(X, w[nodes]), axis=1)
        objective += case_of(problem.loss).convex(problem.loss, margins, y, m, w[np.unique(nodes)])
    if problem.graph.n_edges:
        (i, j), (t, tied) = problem.graph.edges.T, units_of_columns(problem)
        z = w[i] - w[j] if problem.strength is None else (w[i] - w[j]) @ np.diag(t)
        objective += case_of(problem.penalty).convex(z, problem.c)
    within = [] if box is None else [w >= np.maximum(box[0], -1e20), w <= np.minimum(box[1], 1e20)]
    if problem.graph.n_edges and tied.any():
        within.append(w[i][:, tied] == w[j][:, tied])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": its value is computed again below
        asked = cp.Problem(cp.Minimize(objective), within)
        try:
            asked.solve(cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        except cp.SolverError:
            with contextlib.suppress(cp.SolverError):  # then zero weights have to do
                asked.solve(cp.CLARABEL)
    best = np.zeros(w.shape) if w.value is None else np.asarray(w.value)
    if box is not None:
        best = np.clip(best, *box)
    component = problem.graph.components
    for k in np.flatnonzero(units_of_columns(problem)[1]):
        best[:, k] = (np.bincount(component, best[:, k]) / np.bincount(component))[component]
    return Oracle(best, naive_objective(problem, best))


# --- instances ----------------------------------------------------------------------------------------------

KINDS = ("all labelled", "few labelled", "disconnected", "isolated nodes", "few points", "weighted edges")


def instance(
    kind: str = "all labelled",
    loss: ct.Loss | None = None,
    penalty: ct.Penalty | None = None,
    lam: float = 0.05,
    seed: int = 1,
) -> ct.Problem:
    """Twelve nodes in two clusters with three features; `kind` says what is special."""
    rng = np.random.default_rng(seed)
    V, m = 12, 2 if kind == "few points" else 5
    i, j = np.triu_indices(V, 1)
    keep = rng.random(len(i)) < np.where((i < 6) == (j < 6), 0.6, 0.1)
    labelled = np.arange(V)
    if kind == "few labelled":
        labelled = np.array([0, 4, 7, 11])
    if kind == "disconnected":  # 0–4 and 5–9 with labels, 10–11 without
        part = np.digitize(np.arange(V), [5, 10])
        keep &= part[i] == part[j]
        keep |= (i == 10) & (j == 11)
        labelled = np.arange(10)
    if kind == "isolated nodes":  # 0 with a label, 11 without
        keep &= (i != 0) & (j != 11)
        labelled = np.arange(11)
    edges = np.stack([i[keep], j[keep]], axis=1)
    weights = rng.uniform(0.2, 3.0, len(edges)) if kind == "weighted edges" else None
    truth = np.where(np.arange(V)[:, None] < 6, [1.0, 2.0, 0.0], [-1.0, 0.0, 1.0])
    loss = ct.SquaredError() if loss is None else loss
    X, y, nodes = rows_of(loss, truth, m, rng)
    y[~np.isin(nodes, labelled)] = np.nan
    return ct.Problem(
        ct.EmpiricalGraph.from_edges(edges, weights, n_nodes=V),
        ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V),
        loss,
        ct.TotalVariation() if penalty is None else penalty,
        lam,
    )


def rows_of(
    loss: ct.Loss, truth: np.ndarray, m: int | np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m_i random points for each node, with the labels that the loss wants.

    Each binary point appears three times, once of them with the wrong label: nothing can be separated,
    so that every node's loss has a minimiser.
    """
    nodes = np.repeat(np.arange(len(truth)), m)
    X = rng.standard_normal((len(nodes), truth.shape[1]))
    y = case_of(loss).labels(np.einsum("rk,rk->r", X, truth[nodes]), rng)
    if is_binary(loss):
        X, nodes, y = np.tile(X, (3, 1)), np.tile(nodes, 3), np.concatenate([y, y, 1 - y])
    return X, y, nodes


def bound_rows(loss: ct.Loss, sizes: tuple[int, ...], n: int = 3, seed: int = 0) -> Any:
    """Labelled rows of nodes with these sizes m_i."""
    rng = np.random.default_rng(seed)
    X, y, nodes = rows_of(loss, rng.standard_normal((len(sizes), n)), np.array(sizes), rng)
    return ct.LocalDatasets.from_rows(X, y, nodes).labelled


def rows_of_node(rows: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """X and y of the k-th labelled node."""
    first = int(sum(rows.m[:k]))
    return rows.X[first : first + rows.m[k]], rows.y[first : first + rows.m[k]]


# --- Hypothesis ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """A drawn graph: each edge (i, j), i < j, with its weight."""

    n_nodes: int
    edges: dict[tuple[int, int], float]

    def build(self) -> ct.EmpiricalGraph:
        return ct.EmpiricalGraph.from_edges(list(self.edges), list(self.edges.values()), n_nodes=self.n_nodes)


@st.composite
def graphs(draw: Any, largest: int = 8) -> Graph:
    """Any simple graph: one node, no edges, isolated nodes and several components included."""
    V = draw(st.integers(1, largest))
    pairs = [(i, j) for j in range(V) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
    weights = draw(st.lists(st.floats(1e-3, 1e3), min_size=len(edges), max_size=len(edges)))
    return Graph(V, dict(zip(edges, weights, strict=True)))


@st.composite
def problems(draw: Any, lam: st.SearchStrategy[float] | None = None) -> ct.Problem:
    """Any small problem: any graph, loss and penalty, any nodes labelled, λ over many orders of magnitude."""
    graph = draw(graphs(largest=6)).build()
    loss, penalty = draw(st.sampled_from(EVERY_LOSS)), draw(st.sampled_from(EVERY_PENALTY))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    sizes = np.array(draw(st.lists(st.integers(0, 4), min_size=graph.n_nodes, max_size=graph.n_nodes)))
    truth = draw(st.sampled_from([0.0, 1.0, 30.0])) * rng.standard_normal((graph.n_nodes, 3))
    X, y, nodes = rows_of(loss, truth, sizes, rng)
    unlabelled = draw(st.sets(st.integers(0, graph.n_nodes - 1)))
    y[np.isin(nodes, list(unlabelled))] = np.nan
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=graph.n_nodes)
    exponent = draw(st.integers(-8, 4)) if lam is None else 0
    return ct.Problem(graph, data, loss, penalty, 10.0**exponent if lam is None else draw(lam))


TABLES = ("plain", "constant", "zero", "duplicate", "tenth", "collinear", "scaled", "offset", "one-hot", "sparse")


def ugly_columns(rng: np.random.Generator, kind: str, rows: int, n: int) -> np.ndarray:
    """Columns as tables have them: constant, doubled, nearly dependent, far from zero, of other units."""
    X = rng.standard_normal((rows, n))
    if kind == "constant":
        X[:, rng.integers(n)] = rng.choice([1.0, 7.3])
    elif kind == "zero":
        X[:, rng.integers(n)] = 0.0
        X[rng.random(rows) < 0.2] = 0.0
    elif kind == "duplicate":
        X[:, -1] = X[:, 0]
    elif kind == "tenth":
        X[:, -1] = 0.1 * X[:, 0]
    elif kind == "collinear":
        X[:, -1] = X[:, 0] + 10.0 ** -rng.uniform(1, 16) * rng.standard_normal(rows)
    elif kind == "scaled":
        X *= 10.0 ** rng.uniform(-8, 8, n)
    elif kind == "offset":
        X[:, 0] += 10.0 ** rng.uniform(1, 10)
        X[:, -1] = 1.0 if n > 1 else X[:, -1]
    elif kind == "one-hot":
        X = np.eye(n)[rng.integers(0, n, rows)]
    elif kind == "sparse":
        X *= rng.random((rows, n)) < 0.4
    return X


@st.composite
def ugly_problems(draw: Any) -> ct.Problem:
    """Small problems with ugly columns, weights, labels and scales; classes that can be separated among them."""
    graph = draw(graphs(largest=4)).build()
    loss, penalty = draw(st.sampled_from(EVERY_LOSS)), draw(st.sampled_from(EVERY_PENALTY))
    kind, seed = draw(st.sampled_from(TABLES)), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    V, n = graph.n_nodes, 1 if kind == "plain" and seed % 2 else 2
    loss = loss if n > 1 else type(loss)(**{k: v for k, v in vars(loss).items() if k != "unpenalised"})
    nodes = np.repeat(np.arange(V), rng.integers(0, 5, V))
    X = ugly_columns(rng, kind, len(nodes), n)
    z = X @ (draw(st.sampled_from([0.0, 1.0, 1e6])) * rng.standard_normal(n))
    y = z + draw(st.sampled_from([0.0, 1e-6, 1.0])) * (np.std(z) + 1 if len(z) else 1.0) * rng.standard_normal(len(z))
    y = (y > np.median(z)).astype(float) if is_binary(loss) and len(z) else y * draw(st.sampled_from([1e-9, 1.0, 1e9]))
    y = np.round(y) if is_binary(loss) else y
    y = rng.poisson(np.exp(np.clip(y, -5, 5))).astype(float) if isinstance(loss, ct.Poisson) else y
    y[rng.random(len(y)) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    weights = 10.0 ** rng.uniform(-6, 2, len(y)) if draw(st.booleans()) else None
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V, weights=weights)
    return ct.Problem(graph, data, loss, penalty, draw(st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 1.0, 1e4])))
