"""OR-tools' PDLP and MPAX, which are given quadratic programs with a diagonal objective.

Two ways to write   min ‖Ax − b‖² + Σ c|Bx| + alpha Σ |x_charged|:

    primal   min ‖r‖² + cᵀ(p + q) + …   subject to   Ax − r = b,  Bx − p + q = 0,  p, q ≥ 0
    dual     min ¼‖v‖² + bᵀv            subject to   Aᵀv + Bᵀu + s = 0,  |u| ≤ c,  |s| ≤ alpha;  x: its multipliers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import block_array, eye_array, hstack

import coterie as ct
from benchmarks.models import Stacked, alpha_of

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Program:
    """min ½ Σ quadratic z² + linearᵀz  subject to  K z = right, low ≤ z ≤ high; where the weights are found."""

    quadratic: Array
    linear: Array
    K: Any
    right: Array
    low: Array
    high: Array
    shape: tuple[int, int]
    from_multipliers: bool


def dual(problem: ct.Problem) -> Program:
    """The dual: as many constraints as weights."""
    model, alpha = Stacked.of(problem), alpha_of(problem)
    A, b = model.least_squares
    blocks, box = [A.T, model.B.T], [np.full(len(b), np.inf), model.c]
    if alpha > 0:
        blocks.append(eye_array(A.shape[1], format="csc")[:, model.charged])
        box.append(np.full(len(model.charged), alpha))
    high = np.concatenate(box)
    K = hstack(blocks, format="csc")
    flat = np.zeros(len(high) - len(b))
    linear, quadratic = np.concatenate([b, flat]), np.concatenate([np.full(len(b), 0.5), flat])
    shape = problem.graph.n_nodes, problem.n_features
    return Program(quadratic, linear, K, np.zeros(K.shape[0]), -high, high, shape, True)


def primal(problem: ct.Problem) -> Program:
    """The primal, with residuals and both parts of every absolute value as variables."""
    model, alpha = Stacked.of(problem), alpha_of(problem)
    A, b = model.least_squares
    L, strength = model.B, model.c
    if alpha > 0:
        L = block_array([[L], [eye_array(A.shape[1], format="csr")[model.charged]]])
        strength = np.concatenate([strength, np.full(len(model.charged), alpha)])
    (R, N), T = A.shape, len(strength)
    one = eye_array(T)
    K = block_array([[A, -eye_array(R), None, None], [L, None, -one, one]], format="csc")
    quadratic = np.concatenate([np.zeros(N), np.full(R, 2.0), np.zeros(2 * T)])
    linear = np.concatenate([np.zeros(N + R), strength, strength])
    low = np.concatenate([np.full(N + R, -np.inf), np.zeros(2 * T)])
    right = np.concatenate([b, np.zeros(T)])
    shape = problem.graph.n_nodes, problem.n_features
    return Program(quadratic, linear, K, right, low, np.full(len(low), np.inf), shape, False)


def pdlp(program: Program, tol: float) -> Any:
    """OR-tools PDLP."""
    from ortools.pdlp import solvers_pb2
    from ortools.pdlp.python import pdlp as ortools

    from benchmarks.peers import Answer

    qp = ortools.QuadraticProgram()
    qp.resize_and_initialize(program.K.shape[1], program.K.shape[0])
    qp.constraint_matrix = program.K
    qp.objective_vector = program.linear
    qp.set_objective_matrix_diagonal(program.quadratic)
    qp.constraint_lower_bounds = qp.constraint_upper_bounds = program.right
    qp.variable_lower_bounds, qp.variable_upper_bounds = program.low, program.high
    params = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = params.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_relative = criteria.eps_optimal_absolute = tol
    params.num_threads = 1
    result = ortools.primal_dual_hybrid_gradient(qp, params)
    return Answer(_weights(program, result), result.solve_log.iteration_count)


def mpax(program: Program, tol: float, max_iter: int = 10**6) -> Any:
    """MPAX on whatever JAX runs on, in double precision."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax.experimental.sparse import BCOO
    from mpax import create_qp, raPDHG
    from scipy.sparse import csr_array, diags_array

    from benchmarks.peers import Answer

    def held(matrix: Any) -> Any:
        return BCOO.from_scipy_sparse(matrix.tocoo())

    none = csr_array((0, len(program.linear)))
    vectors = (jax.numpy.asarray(v) for v in (program.linear, program.right, np.zeros(0), program.low, program.high))
    linear, right, nothing, low, high = vectors
    Q = held(diags_array(program.quadratic))
    qp = create_qp(Q, linear, held(program.K), right, held(none), nothing, low, high)
    result = raPDHG(eps_abs=tol, eps_rel=tol, iteration_limit=max_iter).optimize(qp)
    return Answer(_weights(program, result), int(result.iteration_count))


def _weights(program: Program, result: Any) -> Array:
    if program.from_multipliers:
        return np.asarray(result.dual_solution).reshape(program.shape)
    V, n = program.shape
    return np.asarray(result.primal_solution)[: V * n].reshape(program.shape)
