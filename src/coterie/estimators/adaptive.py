"""Adaptive fusion: a second fit on edges that count less where the first fit found a difference."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.problem import EmpiricalGraph, Problem
from coterie.problem.arrays import Array
from coterie.solver import NotConverged, solve

EPSILON = 0.1
"""ε of the weights, relative to the root mean square of the differences: see docs/decisions/0034-space-time.md."""


def adapted(problem: Problem, lam: float, options: dict[str, Any]) -> Problem:
    """The problem on the same edges with weights A_e/(ε + ‖ŵ_i − ŵ_j‖), ŵ being the solution at λ.

    The weights keep their sum, so that λ keeps its size. `options` are those of `solve`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        w = solve(problem.bound.at(lam), **options).w
    return replace(problem, graph=reweighted(problem.graph, w))


def reweighted(graph: EmpiricalGraph, w: Array) -> EmpiricalGraph:
    """The same edges, lighter where weights w differ; the same graph where none do."""
    apart = differences(graph, w)
    size = float(np.sqrt((apart**2).mean())) if len(apart) else 0.0
    if size == 0:
        return graph
    A = graph.weights / (EPSILON * size + apart)
    A *= graph.weights.sum() / A.sum()
    A.flags.writeable = False
    return replace(graph, weights=A)


def differences(graph: EmpiricalGraph, w: Array) -> Array:
    """‖w_i − w_j‖ of every edge."""
    i, j = graph.edges.T
    return np.linalg.norm(w[i] - w[j], axis=1)
