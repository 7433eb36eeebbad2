"""Refits: the clusters that a penalised fit has found, with weights that λ no longer pulls together.

Every coefficient has clusters of its own, so the refit is one joint regression in the fused groups (`fused.py`):
min_θ Σ_i L_i((Bθ)_i) with the ridge of the loss, without variation and without l1 or alpha; zeros of a Lasso stay zero.
Directions that no row sees keep the weights of the penalised fit: of several classes, one vector for all of them.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie.estimators.fused import Factors, Fused, can_fuse
from coterie.estimators.information import Likelihood
from coterie.problem import BoundProblem, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.multinomial_losses import MultinomialLosses

STEPS = 100  # of Newton's method; squared error takes one, and one to refine it
SETTLED = 1e-14  # of the loss: a step that promises less is the last
STATIONARY = 0.1  # what the last step may change of scores: near a minimiser far less, on the way to infinity about one
SHORTEST = 1e-8  # of a step, before none is taken
UNSEEN = 1e-6  # the part of an effect that rows may not see where they determine it: rounding


class Refit(NamedTuple):
    """Weights (V, n) in the units that are solved in, and their standard errors (V, n) in those of the user."""

    w: Array
    errors: Array


def check_refit(model: Any, problem: Problem) -> None:
    """Refuse what cannot be refitted, before any work is done."""
    if model.refit is None:
        return
    if model.refit != "clusters":
        raise ValueError(f'refit must be None or "clusters", got {model.refit!r}')
    if not problem.penalty.is_norm:
        raise ValueError(f'refit="clusters" needs clusters, which {problem.penalty!r} does not make; use "l1" or "l2"')
    if problem.bound.f.bounds is not None:
        raise ValueError('refit="clusters" would not keep bounds on weights: leave lower, upper and positive out')
    f = problem.bound.f
    of_rows = f.design is not None or isinstance(f.smooth_part, MultinomialLosses)
    if not (of_rows and can_fuse(problem.bound)):
        name = type(problem.loss).__name__
        raise ValueError(f'refit="clusters" is for losses that are smooth functions of rows, which {name} is not')


def refitted(problem: BoundProblem, w: Array, quietly: bool = True) -> Array:
    """The weights that fit the rows best among those with the clusters of w.

    Where there are none, or they are not found, a warning says so; not where folds or criteria ask, who see it.
    """
    fused = Fused.of(problem, w)
    value, settled = fused.value(w), False
    first = value
    for _ in range(STEPS):
        slope = fused.slope(w)
        step = Factors(fused.ridged(fused.loss(w))).solve(-slope)
        promised, length = float(-slope @ step), 1.0
        if settled := not promised > SETTLED * max(value, SETTLED * first):
            break
        while length > SHORTEST:
            moved = fused.moved(w, length * step)
            then = fused.value(moved)
            if then <= value - 0.1 * length * promised:
                break
            length *= 0.5
        else:
            settled = True  # rounding hides what is left
            break
        w, value = moved, then
    assert problem.f.below is not None
    endless = problem.f.below.psi.no_minimiser
    diverges = bool(endless) and fused.largest_score_change(step) > STATIONARY
    if not quietly and (diverges or not settled):
        why = f"{endless} A larger lam makes larger clusters." if diverges else "Newton's method did not settle."
        warnings.warn(f"the refit of the clusters has not converged: {why}", ConvergenceWarning, stacklevel=2)
    return w


def standard_errors(likelihood: Likelihood, lam: float, w: Array, groups: Array, back: Array) -> Array:
    """Standard errors (V, n) of refitted weights, as if the clusters had been known beforehand.

    T⁻¹CT⁻¹ is the covariance of the groups, C that of the slope: rows count in the objective by weight_by, and are
    independent. ψ' of a row has the variance that a likelihood implies, ψ''; of a loss that is none (squared error, the
    Huber loss) one for all rows, Σψ'²/(N − p). `back` (n, n) has the effect of each weight on what errors are asked of.
    nan: rows do not determine that, or it is held at zero.
    """
    fused = Fused.of(likelihood.problem.bound.at(lam), groups)
    loss, more = fused.loss(w), likelihood.factors
    T = fused.ridged(loss)
    factors = Factors(T)
    if likelihood.problem.loss.is_likelihood:
        C = fused.loss(w, more)
    else:
        s, left = fused.design.s, likelihood.n_rows - factors.trace(loss)
        slope = fused.design.slopes(w[fused.problem.M])[0]  # s ψ' of each row
        variance = float((slope**2 / (s * more)).sum() / left) if left > 0.5 else np.nan
        C = (fused.X.T @ sparse.diags_array(variance * s * more) @ fused.X).tocsc()
    patterns, of = np.unique(fused.at, axis=0, return_inverse=True)
    found = np.empty(patterns.shape)
    for k, at in enumerate(patterns):
        found[k] = _errors(at, T, factors, C, back)
    return found[of.ravel()]


def _errors(at: Array, T: Any, factors: Factors, C: Any, back: Array) -> Array:
    """Of the weights of one node, whose groups are `at`."""
    free = np.flatnonzero(at >= 0)
    effect = np.zeros((len(factors.unit), back.shape[1]))
    np.add.at(effect, at[free], back[free])
    V = factors.solve(effect)
    unit = factors.unit[:, None]
    size, left = (np.linalg.norm(unit * part, axis=0) for part in (effect, effect - T @ V))
    known = (size > 0) & (left <= UNSEEN * size)  # size: zero where all that it depends on is held
    variance = (V * (C @ V)).sum(axis=0)
    return np.where(known, np.sqrt(np.maximum(variance, 0.0)), np.nan)
