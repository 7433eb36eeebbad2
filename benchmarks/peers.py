"""The solvers: how it is solved. One function a solver, from a model and a setting to an answer.

`prepare` turns a problem into what the solver is given (matrices, a CVXPY problem, an image) and is not timed;
`run` is. Coterie is given the arrays of the problem and nothing else: what it derives from them is timed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import xlogy

import coterie as ct
from benchmarks import quadratic_programs
from benchmarks.models import Stacked, alpha_of, is_quadratic, noisy_image

Array = np.ndarray
TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
PROXTV_ITERATIONS = (25, 35, 50, 70, 100, 140, 200, 280, 400, 560, 800, 1_120)
MOST_DENSE = 2e9  # bytes of a design matrix that cut pursuit wants dense


@dataclass(frozen=True, eq=False)
class Answer:
    """Weights (V, n), and what the solver says of them."""

    w: Array
    n_iter: int | None = None
    gap: float | None = None


@dataclass(frozen=True)
class Peer:
    """A solver.

    Attributes
    ----------
    needs : str
        The module that must be installed.
    refuses : callable
        Why a problem is not for this solver, or "".
    settings : tuple
        Values for `run`, each more accurate than the one before.
    """

    name: str
    needs: str
    refuses: Callable[[ct.Problem], str]
    prepare: Callable[[ct.Problem], Any]
    run: Callable[[Any, float], Answer]
    settings: tuple[float, ...] = TOLERANCES

    @property
    def installed(self) -> bool:
        return find_spec(self.needs) is not None

    def __call__(self, problem: ct.Problem, setting: float | None = None) -> Answer:
        """Prepare and run, by default with the first setting."""
        return self.run(self.prepare(problem), self.settings[0] if setting is None else setting)


# --- Coterie and the paper's method -------------------------------------------------------------------------


def ingredients(problem: ct.Problem) -> dict[str, Any]:
    """What a problem is made of, without anything that has been derived from it."""
    parts = {"graph": replace(problem.graph), "data": replace(problem.data)}
    return parts | {"loss": problem.loss, "penalty": problem.penalty, "lam": problem.lam}


def coterie(parts: dict[str, Any], tol: float, threads: int = 1, time_limit: float | None = None) -> Answer:
    """State the problem (which binds the loss), presolve, iterate, certify."""
    from coterie.engines.numba import NumbaEngine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)  # the gap is in the answer
        s = ct.solve(ct.Problem(**parts), tol, engine=NumbaEngine(threads=threads), time_limit=time_limit)
    return Answer(s.w, s.n_iter, s.gap)


def algorithm1(parts: dict[str, Any], n_iter: float, callback: Any = None) -> Answer:
    """The paper's iteration as printed."""
    s = ct.algorithm1(ct.Problem(**parts), int(n_iter), callback=callback)
    return Answer(s.w, s.n_iter, s.gap)


# --- general solvers ----------------------------------------------------------------------------------------


def cvxpy_problem(problem: ct.Problem) -> tuple[Any, tuple[int, int]]:
    """The whole problem in CVXPY's words, on one vector."""
    import cvxpy as cp

    model, loss = Stacked.of(problem), problem.loss
    x = cp.Variable(model.B.shape[1])
    charged = x[model.charged]
    if isinstance(loss, ct.RowLoss | ct.Multinomial):
        objective = model.share @ row_costs(loss, [Z @ x for Z in model.by_class], model.y)
    else:
        A, b = model.least_squares
        objective = cp.sum_squares(A @ x - b)
    objective += loss.ridge * cp.sum_squares(charged) + alpha_of(problem) * cp.norm1(charged)
    objective += model.c @ cp.abs(model.B @ x)
    inside = [charged >= 0] if loss.positive else []
    return cp.Problem(cp.Minimize(objective), inside), (problem.graph.n_nodes, problem.n_features)


def row_costs(loss: Any, margins: list[Any], y: Array) -> Any:
    """What each row costs, in CVXPY's words, given its margin, or that of every class."""
    import cvxpy as cp

    z = margins[0]
    if isinstance(loss, ct.Multinomial):
        own = sum(cp.multiply(y == k, margin) for k, margin in enumerate(margins))
        return cp.log_sum_exp(cp.vstack(margins), axis=0) - own
    if isinstance(loss, ct.Logistic):
        return cp.logistic(z) - cp.multiply(y, z)
    if isinstance(loss, ct.Poisson):
        return cp.exp(z) - cp.multiply(y, z) + (xlogy(y, y) - y)
    if isinstance(loss, ct.Huber):
        return cp.huber(z - y, loss.delta)
    if isinstance(loss, ct.SquaredHinge):
        return cp.square(cp.pos(1 - cp.multiply(2 * y - 1, z)))
    assert isinstance(loss, ct.Quantile)
    return cp.maximum(loss.q * (y - z), (loss.q - 1) * (y - z))


def clarabel(model: tuple[Any, tuple[int, int]], tol: float) -> Answer:
    """CVXPY + Clarabel."""
    return _solve_cvxpy(*model, solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol, max_threads=1)


def piqp(model: tuple[Any, tuple[int, int]], tol: float) -> Answer:
    """CVXPY + PIQP."""
    eps = {f"eps_{kind}{against}": tol for kind in ("", "duality_gap_") for against in ("abs", "rel")}
    return _solve_cvxpy(*model, solver="PIQP", **eps)


def _solve_cvxpy(asked: Any, shape: tuple[int, int], **options: Any) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": what counts is its objective
        asked.solve(**options)
    (x,) = asked.variables()
    if x.value is None:
        raise RuntimeError(f"no solution: {asked.status}")
    return Answer(np.asarray(x.value).reshape(shape), asked.solver_stats.num_iters)


# --- total variation solvers --------------------------------------------------------------------------------


def proxtv(model: tuple[Array, float], n_iter: float) -> Answer:
    """proxTV's Douglas–Rachford splitting into rows and columns."""
    import prox_tv

    picture, strength = model
    return Answer(prox_tv.tv1_2d(picture, strength, max_iters=int(n_iter), method="dr").reshape(-1, 1), int(n_iter))


def image_model(problem: ct.Problem) -> tuple[Array, float]:
    """The image, and the strength on ½‖y − w‖² + strength · TV(w)."""
    picture = noisy_image(problem)
    assert picture is not None
    return picture, float(problem.c[0]) / 2


def cut_pursuit(model: dict[str, Any], tol: float) -> Answer:
    """pycut_pursuit on n copies of the graph, one for each coordinate."""
    from pycut_pursuit.cp_d1_ql1b import cp_d1_ql1b

    model = dict(model)
    shape = model.pop("shape")
    part, values = cp_d1_ql1b(
        **model, cp_dif_tol=tol, cp_it_max=1000, pfdr_it_max=100_000, verbose=0, max_num_threads=1,
        balance_parallel_split=False,
    )  # fmt: skip
    return Answer(np.ascontiguousarray(values[part].reshape(shape[::-1]).T))


def cut_pursuit_model(problem: ct.Problem) -> dict[str, Any]:
    """½‖Y − Ax‖² + Σ c|difference| + alpha‖x‖₁, weight k of node i at x[k V + i]; A is dense unless diagonal."""
    V, n = problem.graph.n_nodes, problem.n_features
    i, j = problem.graph.edges.T
    copies = np.arange(n)[:, None] * V
    degree = np.bincount((copies + i).ravel(), minlength=V * n)
    A, b = Stacked.of(problem).least_squares
    A = A.tocsc()[:, (np.arange(V) * n + np.arange(n)[:, None]).ravel()]
    l1 = np.zeros(V)
    l1[problem.M] = alpha_of(problem)
    if n == 1 and len(problem.M) == V:
        quadratic = {"Y": 2 * (A.T @ b), "A": np.asfortranarray(2 * A.power(2).sum(axis=0).reshape(V, 1))}
    else:
        quadratic = {"Y": np.sqrt(2) * b, "A": np.asfortranarray(np.sqrt(2) * A.toarray()), "Gram_if_square": False}
    return quadratic | {
        "shape": (V, n),
        "first_edge": np.concatenate([[0], np.cumsum(degree)]).astype(np.uint32),
        "adj_vertices": (copies + j).ravel().astype(np.uint32),
        "edge_weights": np.tile(problem.c, n),
        "l1_weights": np.tile(l1, n),
    }


# --- who solves what ----------------------------------------------------------------------------------------


def nothing(problem: ct.Problem) -> str:
    return ""


def all_but_quadratic(problem: ct.Problem) -> str:
    return "" if is_quadratic(problem) else "quadratic programs only"


def all_but_images(problem: ct.Problem) -> str:
    return "" if noisy_image(problem) is not None else "images only"


def too_dense(problem: ct.Problem) -> str:
    if not is_quadratic(problem):
        return "quadratic loss only"
    rows, n = len(problem.data.labelled.y), problem.n_features
    dense = 0 if n == 1 else 8 * rows * problem.graph.n_nodes * n
    return f"wants a dense design of {dense / 1e9:.0f} GB" if dense > MOST_DENSE else ""


PEERS = {
    peer.name: peer
    for peer in (
        Peer("Coterie", "coterie", nothing, ingredients, coterie),
        Peer("Algorithm 1", "coterie", nothing, ingredients, algorithm1, (100, 1_000, 10_000)),
        Peer("CVXPY + Clarabel", "clarabel", nothing, cvxpy_problem, clarabel),
        Peer("CVXPY + PIQP", "piqp", all_but_quadratic, cvxpy_problem, piqp),
        Peer("PDLP (primal)", "ortools", all_but_quadratic, quadratic_programs.primal, quadratic_programs.pdlp),
        Peer("PDLP (dual)", "ortools", all_but_quadratic, quadratic_programs.dual, quadratic_programs.pdlp),
        Peer("pycut_pursuit", "pycut_pursuit", too_dense, cut_pursuit_model, cut_pursuit),
        Peer("proxTV", "prox_tv", all_but_images, image_model, proxtv, PROXTV_ITERATIONS),
    )
}
