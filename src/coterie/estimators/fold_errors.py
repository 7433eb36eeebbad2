"""Errors of folds as one number, and how sure it is."""

from __future__ import annotations

import numpy as np

from coterie.problem.arrays import Array


class ErrorsOnFolds:
    """Errors of several methods, or λ, on folds. Mixed into what knows what they are of.

    Attributes
    ----------
    errors : array of shape (methods, folds)
    weights : array of shape (folds,)
        How many rows each fold held out, by their weights.
    repeats : int
        How many times the folds were drawn; the folds of one draw stand together.
    degree : int
        Errors of many rows are a power mean of this degree: 2 where they are roots of mean squares.
    """

    errors: Array
    weights: Array
    repeats: int
    degree: int

    @property
    def mean(self) -> Array:
        """The error of each of them over all rows held out."""
        return mean_over_folds(self.errors, self.weights, self.degree)

    @property
    def standard_error(self) -> Array:
        """The standard error of that mean."""
        return standard_error(self.errors, self.weights, self.repeats, self.degree)

    @property
    def best(self) -> int:
        """Which of them has the smallest error."""
        return int(np.argmin(self.mean))


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
