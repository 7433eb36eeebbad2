"""How large a single weight of a labelled node can be at a minimiser, by penalties or by one row."""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.exact import FAINT
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design
from coterie.proofs.ellipsoids import WIDER


def penalty_caps(problem: BoundProblem, d: Design, level: float) -> Array:
    """|w_k| at labelled nodes at most, (n,), by ridge, alpha and bounds, where the objective is at most `level`."""
    f, caps = problem.f, np.full(problem.n_features, np.inf)
    if f.l1_box is not None:
        strength = np.minimum(f.l1_box[1], -f.l1_box[0])
        caps = np.minimum(caps, _divide(level, np.where(np.isfinite(strength), strength, 0.0)))
    if f.bounds is not None:
        caps = np.minimum(caps, np.abs(f.bounds).max(axis=0))
    return np.minimum(caps, np.sqrt(_divide(level + FAINT, d.ridge))) * WIDER  # squares may vanish


def row_cap(d: Design, level: float) -> float:
    """|w| at labelled nodes at most, by the first row of each; ∞ where weights are not single numbers."""
    if not d.is_squared or d.X.shape[1] != 1:
        return np.inf
    row = d.starts[:-1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a row of zero caps nothing
        caps = (np.abs(d.y[row]) + np.sqrt(level + FAINT) / np.sqrt(d.s[row])) / np.abs(d.X[row, 0])
    return float(np.where(d.X[row, 0] == 0, np.inf, caps).max(initial=0.0)) * WIDER


def _divide(level: float, strength: Array) -> Array:
    """level / strength, and infinite where there is no strength."""
    return np.divide(level, strength, out=np.full_like(strength, np.inf), where=strength > 0)
