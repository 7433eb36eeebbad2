"""Errors of folds as one number, and how sure it is."""

from __future__ import annotations

import numpy as np

from coterie.problem.arrays import Array


def mean_over_folds(errors: Array, weights: Array, degree: int = 1) -> Array:
    """The error over all rows held out, of errors in folds, which are the columns: their power mean of this degree.

    That of degree 2 makes the root mean squared error of all rows from those of the folds.
    """
    return np.average(errors**degree, axis=1, weights=weights) ** (1 / degree)


def standard_error(errors: Array, weights: Array, repeats: int = 1, degree: int = 1) -> Array:
    """The standard error of that mean; 0 where there is one fold only.

    With shares s_k that add up to 1 it is √(Σ_k s_k² (e_k − ē)² K/(K − 1)): with equal ones, the usual std/√K. Repeated
    draws see the same rows, so that it does not shrink with their number: it is the root mean square of theirs.
    """
    folds = errors.shape[1] // repeats
    if folds < 2:
        return np.zeros(len(errors))
    e, s = linearised(errors, weights, degree).reshape(len(errors), repeats, folds), weights.reshape(repeats, folds)
    s = s / s.sum(axis=1, keepdims=True)
    off = s * (e - (s * e).sum(axis=2, keepdims=True))
    return np.sqrt((off**2).sum(axis=2).mean(axis=1) * folds / (folds - 1))


def linearised(errors: Array, weights: Array, degree: int) -> Array:
    """Numbers whose plain mean moves as the power mean of the errors does, near where it is (the delta method)."""
    mean = mean_over_folds(errors, weights, degree)[:, None]
    return errors**degree / np.maximum(degree * mean ** (degree - 1), np.finfo(float).tiny)
