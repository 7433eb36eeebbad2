"""Prediction intervals that cover a given share of new labels: conformal, from residuals of labels not learnt from.

Residuals come from rows that were kept for it (split-conformal), or from folds of the training rows (cross-conformal).
The quantile and the intervals are those of crepes.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.fold import Over
from coterie.estimators.interval_kinds import check_by, kinds_of, units_of, warn_of_others
from coterie.estimators.interval_residuals import nodes_and_predicted, of_folds, of_rows, one_of_each
from coterie.io.files import MissingExtraError
from coterie.problem.arrays import Array

ROUNDING = 1e-12  # so that (1 − coverage)(n + 1), where it is a whole number, is not cut down to the one below


class Calibration(NamedTuple):
    """What intervals are made of.

    Attributes
    ----------
    by : str
        "rows": residuals of rows of nodes that have other labels. "nodes": one residual for each node without labels;
        "places": for each place. "times": residuals of rows of times after those learnt from.
    how : str
        "split" or "cross".
    residuals : array
        Label less prediction.
    """

    by: str
    how: str
    residuals: Array


class IntervalsMixin:
    """Prediction intervals of a fitted regression. The attributes are the model's own."""

    calibration_: Calibration

    def calibrate(
        self,
        X: Any = None,
        y: Any = None,
        groups: Any = None,
        *,
        by: Over = "auto",
        cv: int = 5,
        random_state: Any = 0,
    ) -> Self:
        """Learn from labels that the model has not learnt from how wide intervals have to be.

        Parameters
        ----------
        X : array or frame of shape (rows, features), default=None
            Rows that were not in the fit (split-conformal). None: folds of the training rows, each predicted by a fit
            to the others at the same λ (cross-conformal); a model that was loaded, or fitted in one pass, has none.
        y : sequence of shape (rows,), default=None
            Their labels.
        groups : sequence of shape (rows,) or str, default=None
            The node of each of these rows, as for `fit`.
        by : {"auto", "rows", "nodes", "places", "times"}, default="auto"
            For new rows of nodes that have labels, or for nodes without labels: whole nodes are then held out, and one
            row of each, drawn at random, counts, since rows of one node are alike. "auto": as for the choice of λ. Of
            places at times, also for places without labels at any time (whole places are held out, one row of each
            counts), or for times to come: stretches of whole times are held out, each predicted by the last model of a
            fit to the times before it, and every row counts.
        cv : int, default=5
            The number of folds, without X; fewer where fewer rows (nodes, places, times) have labels. Of T times with
            labels, a stretch has T/(cv + 1), rounded down, which is how far ahead residuals tell of; with cv = T − 1
            it is the next time alone.
        random_state : int or RandomState, default=0
            Draws the folds, and the rows of nodes.

        Returns
        -------
        NetworkedRegressor
            The model itself, with `calibration_`.

        Raises
        ------
        ValueError
            If there are no rows to hold out, a node (or place) to calibrate by had labels in the fit, or a time to
            calibrate by does not come after those that had.
        """
        check_is_fitted(self)
        model: Any = self
        check_by(model, by)
        rng = check_random_state(random_state)
        if X is None:
            held, residuals, nodes = of_folds(model, by, cv, rng)
        else:
            held, residuals, nodes = of_rows(model, X, y, groups, by)
        if (units := units_of(model, held, nodes)) is not None:
            residuals = one_of_each(residuals, units, rng)
        self.calibration_ = Calibration(held, "cross" if X is None else "split", residuals)
        return self

    def predict_interval(self, X: Any, groups: Any = None, coverage: float = 0.9) -> Array:
        """Predict an interval for the label of each row, wide enough for this share of new labels.

        The first call makes the residuals that it needs, by `calibrate()`, unless that was done. Calibrated on rows (or
        nodes) that were kept for it, an interval covers the label of a new row (of a row of a new node) with at least
        this probability, if the new one and those kept are exchangeable: drawn in the same way, in any order. This is
        an average over all rows (nodes, places), not a promise for each. From folds, the same is approximate.

        Times come in one order and are not exchangeable: after `calibrate(by="times")` nothing is promised. Intervals
        are as wide as errors of forecasts were, and cover as many labels as long as errors stay as they were, for times
        no further ahead than those that were held out; docs/space-time.md has what was measured.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is. Times to come are predicted with the models of the last time; intervals for
            them need `calibrate(by="times")`.
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        array of shape (rows, 2)
            Lower and upper ends; infinite where too few residuals are known for this coverage, and at nodes that no
            label reaches.

        Raises
        ------
        ImportError
            If crepes is not installed: it comes with the extra coterie[intervals].
        """
        asked: Any = coverage
        if not isinstance(asked, Real) or not 0 < float(asked) < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}")
        regressor = _crepes()
        check_is_fitted(self)
        model: Any = self
        if not hasattr(self, "calibration_"):
            self.calibrate()
        nodes, predicted = nodes_and_predicted(model, X, groups, later=True)
        by, known = self.calibration_.by, len(self.calibration_.residuals)
        warn_of_others(model, by, nodes, kinds_of(model, X, groups, nodes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said below, with what to do
            fitted = regressor().fit(residuals=self.calibration_.residuals)
            found = fitted.predict_int(predicted, confidence=coverage - ROUNDING)
        if known and np.isinf(found).any():
            needed = int(np.ceil(coverage / (1 - coverage) - 1e-9))
            warnings.warn(
                f"a coverage of {coverage:g} needs {needed} calibrated {'rows' if by == 'times' else by}; there are "
                f"{known}, so that intervals are infinite: ask for less, or calibrate with more",
                stacklevel=2,
            )
        found[np.isin(nodes, model.solution_.undetermined)] = -np.inf, np.inf
        return found


def _crepes() -> Any:
    try:
        with warnings.catch_warnings():  # it would turn on warnings for the whole process
            from crepes import ConformalRegressor
    except ImportError:
        raise MissingExtraError("intervals need crepes, which comes with the extra coterie[intervals]") from None
    return ConformalRegressor
