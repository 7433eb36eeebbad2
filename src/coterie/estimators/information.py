"""How many parameters a fit has used, and what that costs: effective parameters, AICc and BIC.

The effective parameters are p = Σ_r ∂ŷ_r/∂y_r, how much predictions follow labels. Where the groups of equal weights
stay as they are (`fused.py`), that is tr(T⁺ BᵀHB). For squared error with ℓ1 variation it is the number of fused
groups, summed over coefficients, as far as rows determine them, which is an unbiased estimate of the degrees of
freedom (Tibshirani and Taylor, Annals of Statistics 40, 2012). For squared variation it is the trace of the hat
matrix; for other smooth losses that of the last step of Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, nan, pi
from typing import Any, NamedTuple

import numpy as np

from coterie.estimators.fused import EXACTLY, Factors, Fused, can_fuse
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.squared import row_scale

AT_ONCE = 1_000_000  # numbers in rows up to which nobody waits for it, where weights are no more than EXACTLY


class Information(NamedTuple):
    """Of one fit.

    Attributes
    ----------
    effective_parameters : float
        p; nan where it is not known.
    deviance : float
        −2 log likelihood, of normal labels that with the most likely variance; nan without likelihood.
    n_rows : float
        N, the labelled rows, by their weights.
    k : float
        p, and one more where a variance was estimated.
    """

    effective_parameters: float
    deviance: float
    n_rows: float
    k: float

    @property
    def aicc(self) -> float:
        """−2 log likelihood + 2kN/(N − k − 1) (Hurvich, Simonoff and Tsai, JRSS B 60, 1998); ∞ where k ≥ N − 1."""
        rest = self.n_rows - self.k - 1
        return inf if rest <= 0 else self.deviance + 2 * self.k * self.n_rows / rest

    @property
    def bic(self) -> float:
        """−2 log likelihood + k log N (Schwarz, Annals of Statistics 6, 1978); ∞ where k ≥ N − 1."""
        return inf if self.n_rows - self.k - 1 <= 0 else self.deviance + self.k * log(self.n_rows)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """What makes information of solutions of one problem.

    Attributes
    ----------
    problem : Problem
    row_weight : float
        What a row of sample weight 1 weighs in it.
    unit : float
        The unit of its labels.
    refit : bool
        Whether weights were refitted on their groups, without variation.
    """

    problem: Problem
    row_weight: float
    unit: float
    refit: bool = False

    @property
    def factors(self) -> Array:
        """How much more a row counts in the objective than in the likelihood."""
        rows = self.problem.data.labelled
        return row_scale(rows, self.problem.loss.reduction) * self.row_weight / rows.weights  # type: ignore[attr-defined]

    @property
    def n_rows(self) -> float:
        """N, by sample weights."""
        return float(self.problem.data.labelled.weights.sum() / self.row_weight)

    def losses(self, w: Array) -> float:
        """Σ ψ over all rows, by their sample weights."""
        design, rows = self.problem.f.design, self.problem.data.labelled
        if design is None:  # of several classes, with −log likelihoods for errors
            errors = self.problem.loss.error(rows.X, rows.y, np.repeat(w[rows.M], rows.m, axis=0))
            return float(rows.weights @ errors / self.row_weight)
        node = np.repeat(self.problem.M, np.diff(design.starts))
        margin = np.einsum("rk,rk->r", design.X, w[node])
        psi = design.psi.psi(design.psi.direction(design.y) * margin + design.psi.shift(design.y), design.y)
        return float((design.s / self.factors) @ psi)

    @property
    def known(self) -> bool:
        """Whether there is a likelihood, and a curvature that says how many parameters a fit has used."""
        design = self.problem.f.design
        return can_fuse(self.problem.bound) and (
            self.problem.loss.is_likelihood or (design is not None and design.is_squared)
        )

    @property
    def least(self) -> float:
        """−log likelihood of labels that are predicted perfectly, by sample weights."""
        rows = self.problem.data.labelled
        return float(rows.weights @ self.problem.loss.least(rows.y) / self.row_weight)

    def of(self, lam: float, w: Array, groups: Array | None = None) -> Information:
        """Information of the weights w at λ; of weights that were refitted, the groups are those of `groups`."""
        bound = self.problem.bound.at(lam)
        if not can_fuse(bound):
            return Information(nan, nan, self.n_rows, nan)
        fused = Fused.of(bound, w if groups is None else groups)
        loss = fused.loss(w)
        T = fused.ridged(loss) if self.refit else fused.ridged(loss) + fused.variation
        p, N, total = Factors(T.tocsc()).trace(loss), self.n_rows, self.losses(w)
        design = self.problem.f.design
        if design is not None and design.is_squared:
            variance = self.unit**2 * total / N
            return Information(p, N * (log(2 * pi * variance) + 1) if variance > 0 else -inf, N, p + 1)
        return Information(p, 2 * (total + self.least) if self.problem.loss.is_likelihood else nan, N, p)


def likelihood_of(model: Any, problem: Problem) -> Likelihood:
    """What makes information of a model's solutions of a problem."""
    return Likelihood(problem, model.row_weight_, model.scaling_.y_spread, model.refit is not None)


class InformationMixin:
    """Information of a fitted model, computed when first asked for. The attributes are the model's own."""

    _information: Information | None

    @property
    def effective_parameters_(self) -> float:
        """p: how many parameters the fit has used; nan where the loss is not smooth."""
        return self._inform().effective_parameters

    @property
    def aicc_(self) -> float:
        """Akaike's criterion, corrected for few rows; nan for a loss without a likelihood."""
        return self._inform().aicc

    @property
    def bic_(self) -> float:
        """Schwarz' criterion; nan for a loss without a likelihood."""
        return self._inform().bic

    def _inform(self) -> Information:
        model: Any = self
        if getattr(self, "_information", None) is None:
            if not hasattr(self, "problem_"):
                raise AttributeError("effective parameters need the training rows, which this model does not have")
            self._information = likelihood_of(self, model.problem_).of(model.lam_, *model._weights_and_groups())
        assert self._information is not None
        return self._information

    def _known_information(self) -> Information | None:
        """The same where it is known already, or told at once."""
        model: Any = self
        if hasattr(self, "problem_") and model.problem_.data.X.size <= AT_ONCE and model.solution_.w.size <= EXACTLY:
            return self._inform()
        return getattr(self, "_information", None)
