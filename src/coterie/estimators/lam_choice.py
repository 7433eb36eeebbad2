"""What cross-validation says of each λ, and which one it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.fold_errors import ErrorsOnFolds, mean_over_folds, standard_error
from coterie.problem.arrays import Array


@dataclass(frozen=True, eq=False)
class LamChoice(ErrorsOnFolds):
    """The errors of every λ in every fold, and what follows from them.

    Attributes
    ----------
    lams : array of shape (K,), descending
    errors : array of shape (K, folds)
        Error of the rows held out, in units of y, as the loss measures it: the root mean squared error, say.
    gaps : array of shape (K, folds)
        How far from optimal each fit can have been, relative.
    over : str
        What was held out: "nodes", "rows", "places", "times", "blocks", or "given" where cv said so.
    weights : array of shape (folds,)
        How many rows each fold held out, by their weights.
    repeats : int
        How many times the folds were drawn; the folds of one draw stand together.
    degree : int
        Errors of many rows are a power mean of this degree: 2 where they are roots of mean squares.
    time_strengths : array of shape (K,), or None
        The strength in time that each λ was tried with; None where that was not chosen.
    neighbours : array of shape (K,), or None
        The number of neighbours that each λ was tried with, likewise.
    thresholds : array of shape (K,), or None
        The threshold of distances that each λ was tried with, likewise.
    """

    lams: Array
    errors: Array
    gaps: Array
    over: str
    weights: Array
    repeats: int = 1
    degree: int = 1
    time_strengths: Array | None = None
    neighbours: Array | None = None
    thresholds: Array | None = None

    @classmethod
    def joined(cls, choices: Sequence[Self], values: Sequence[float], what: str) -> tuple[Self, NDArray[np.int64]]:
        """What is said of the λ of several values of `what` else is chosen; and the order in which λ then descend."""
        if len(choices) == 1:
            return choices[0], np.arange(len(choices[0].lams))
        tried = np.repeat(values, [len(choice.lams) for choice in choices])
        lams, errors, gaps = (
            np.concatenate([getattr(choice, name) for choice in choices]) for name in ("lams", "errors", "gaps")
        )
        order = np.argsort(-lams, kind="stable")
        by_lam: dict[str, Any] = {"lams": lams, "errors": errors, "gaps": gaps, what: tried}
        return replace(choices[0], **{name: values[order] for name, values in by_lam.items()}), order

    def beside(self, first: Self, rule: str) -> Self:
        """The same, with what `first` has chosen together with its λ; this one has been solved with that alone."""
        found, at = self, first.by_rule(rule)
        for what, values in first._others.items():
            found = found.beside_one(what, values[at])
        return found

    def beside_one(self, what: str, value: float) -> Self:
        """The same, with the only value of `what` else was tried."""
        tried: dict[str, Any] = {what: np.full(len(self.lams), value)}
        return replace(self, **tried)

    @property
    def _others(self) -> dict[str, Array]:
        """What was chosen together with λ, by its name; empty where nothing was."""
        tried = {name: getattr(self, name) for name in ("time_strengths", "neighbours", "thresholds")}
        return {name: values for name, values in tried.items() if values is not None}

    @property
    def varied(self) -> Array | None:
        """What was chosen together with λ, for each of them; None where nothing was."""
        return next(iter(self._others.values()), None)

    def curves(self) -> list[tuple[float | None, Self]]:
        """The same for each value of what was chosen together with λ; None where there is one only."""
        if self.varied is None:
            return [(None, self)]
        return [(float(value), self._only(self.varied == value)) for value in np.unique(self.varied)]

    def _only(self, kept: NDArray[np.bool_]) -> Self:
        alone = replace(self, time_strengths=None, neighbours=None, thresholds=None)
        return replace(alone, lams=self.lams[kept], errors=self.errors[kept], gaps=self.gaps[kept])

    @property
    def at_an_end(self) -> bool:
        """Whether the best is the largest or the smallest λ of several, so that better ones may lie beyond."""
        alike = True if self.varied is None else self.varied == self.varied[self.best]
        tried = self.lams[np.broadcast_to(alike, len(self.lams))]
        return len(tried) > 1 and float(self.lams[self.best]) in (float(tried[0]), float(tried[-1]))

    @property
    def one_se(self) -> int:
        """The largest λ whose error, before any root is taken, is within one standard error of the smallest."""
        powers, best = self.errors**self.degree, self.best
        mean = mean_over_folds(powers, self.weights)
        return int(np.argmax(mean <= mean[best] + standard_error(powers, self.weights, self.repeats)[best]))

    def by_rule(self, rule: str) -> int:
        """Which λ the rule "best" or "one_se" chooses."""
        return self.best if rule == "best" else self.one_se

    def chosen_elsewhere(self, rule: str = "best") -> NDArray[np.int64]:
        """For each fold, which λ the other folds of its draw choose; with one fold only, what it chooses itself.

        Errors at these λ are hardly flattered by the choice (docs/decisions/0026-held-out-errors.md).
        """
        draws = np.arange(len(self.weights)).reshape(self.repeats, -1)
        found = np.full(len(self.weights), self.by_rule(rule))
        for draw in draws if draws.shape[1] > 1 else ():
            for k in draw:
                rest = draw[draw != k]
                others = replace(self, errors=self.errors[:, rest], weights=self.weights[rest], repeats=1)
                found[k] = others.by_rule(rule)
        return found

    def beside_chosen(self, rule: str) -> Self:
        """The same for the λ that were tried with what the rule chooses together with one."""
        alike = True if self.varied is None else self.varied == self.varied[self.by_rule(rule)]
        return self._only(np.broadcast_to(alike, len(self.lams)))

    def lams_elsewhere(self, rule: str) -> Array:
        """For each fold, the λ that the other folds choose beside what else is chosen by all."""
        one = self.beside_chosen(rule)
        return one.lams[one.chosen_elsewhere(rule)]

    def elsewhere(self, rule: str = "best") -> Array:
        """The error of each fold at that λ."""
        return self.errors[self.chosen_elsewhere(rule), np.arange(len(self.weights))]

    def results(self) -> dict[str, Array]:
        """The same as a dictionary of columns, which makes a frame."""
        others = {"time_strength": self.time_strengths, "k": self.neighbours, "threshold": self.thresholds}
        tried = {name: values for name, values in others.items() if values is not None}
        columns = {"lam": self.lams, **tried, "mean_error": self.mean, "standard_error": self.standard_error}
        folds = {f"fold{k}_error": self.errors[:, k] for k in range(self.errors.shape[1])}
        return {**columns, **folds, "largest_gap": self.gaps.max(axis=1)}

    def __repr__(self) -> str:
        tried = f"{len(self.lams)} lams, {self.errors.shape[1]} folds over {self.over}"
        error = f"error {self.mean[self.best]:.4g} ± {self.standard_error[self.best]:.2g}"
        return f"LamChoice({tried}; best {self.lams[self.best]:.4g}, {error})"
