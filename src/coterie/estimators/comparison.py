"""How a networked model fares beside what can be had without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.estimators.export import as_frame
from coterie.estimators.fold_errors import ErrorsOnFolds, linearised, standard_error
from coterie.problem.arrays import Array

NETWORK = "networked"
MEANING = {
    "local only": "each node alone is enough here; do without the network",
    "pooled": "one model for all nodes is enough here",
    "node intercepts": "nodes differ in their level, and one set of slopes is enough here",
    "mixed model": "nodes differ in their level, and one set of slopes is enough here",
    "squared variation": 'models vary gradually over the graph; penalty="squared" suits them better',
}


@dataclass(frozen=True, eq=False)
class Comparison(ErrorsOnFolds):
    """Errors on rows held out.

    Attributes
    ----------
    methods : tuple of str
        Their names.
    errors : array of shape (methods, folds)
        Error of the rows held out, in units of y.
    over : str
        What the folds held out: "nodes", "rows", or "given".
    weights : array of shape (folds,)
        How many rows each fold held out, by their weights.
    library : str, default=None
        The library of the frame that `frame` returns; None: pandas, or else polars.
    measure : str, default="mean error"
        What the errors are: the root mean squared error, the log-loss, or what else the loss of the model has.
    degree : int, default=1
        Errors of many rows are a power mean of this degree: 2 where they are roots of mean squares.
    repeats : int, default=1
        How many times the folds were drawn; the folds of one draw stand together.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> errors = np.array([[2.0, 3.0], [1.0, 1.5]])
    >>> found = ct.Comparison(("pooled", "networked"), errors, "rows", weights=np.array([10.0, 10.0]))
    >>> found.mean.tolist(), found.methods[found.best]
    ([2.5, 1.25], 'networked')
    """

    methods: tuple[str, ...]
    errors: Array
    over: str
    weights: Array
    library: str | None = None
    measure: str = "mean error"
    degree: int = 1
    repeats: int = 1

    @property
    def folds_won(self) -> Array:
        """In how many folds each method was the best."""
        return np.bincount(self.errors.argmin(axis=0), minlength=len(self.methods))

    @property
    def verdict(self) -> str:
        """Whether the network has the smallest error, in words, and by how much where another method has."""
        winner, error = self.methods[self.best], self.mean[self.best]
        if NETWORK not in self.methods:
            return f"The smallest {self.measure} is that of {winner}: {error:.3g}."
        if winner == NETWORK:
            rest = np.delete(np.arange(len(self.methods)), self.best)
            near = [self.methods[k] for k in rest.tolist() if np.subtract(*self._lead(self.best, k)) <= 0]
            so = f"within one standard error of it: {', '.join(near)}" if near else "clearly so"
            return f"The network has the smallest {self.measure}, {error:.3g}; {so}."
        mine = self.methods.index(NETWORK)
        lead, spread = self._lead(self.best, mine)
        much = f"less by {lead:.2g} ± {spread:.1g}" if lead > spread else "no more than chance would explain"
        meaning = f": {MEANING[winner]}" if winner in MEANING and lead > spread else ""
        return f"The network is beaten by {winner}, {error:.3g} against {self.mean[mine]:.3g} ({much}){meaning}."

    def frame(self) -> Any:
        """Return the comparison as a frame.

        Returns
        -------
        DataFrame
            One row per method: its error, the standard error of that, and in how many folds it was the best.
        """
        columns = {
            "method": list(self.methods),
            "mean_error": self.mean,
            "standard_error": self.standard_error,
            "folds_won": self.folds_won,
        }
        return as_frame(columns, self.library)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON can hold it: the note "baselines" of a report.

        Returns
        -------
        dict
            With the keys "methods", "errors", "over", "weights", "measure", "degree" and "repeats".
        """
        return {
            "methods": list(self.methods),
            "errors": self.errors.tolist(),
            "over": self.over,
            "weights": self.weights.tolist(),
            "measure": self.measure,
            "degree": self.degree,
            "repeats": self.repeats,
        }

    def _lead(self, a: int, b: int) -> tuple[float, float]:
        """By how much method a has the smaller error than b, and the standard error of that difference."""
        moves = linearised(self.errors, self.weights, self.degree)
        difference = (moves[b] - moves[a])[None]
        return float(self.mean[b] - self.mean[a]), float(standard_error(difference, self.weights, self.repeats)[0])

    def __repr__(self) -> str:
        means = zip(self.methods, self.mean, strict=True)
        listed = ", ".join(f"{method} {error:.4g}" for method, error in means)
        return f"Comparison({self.measure}: {listed}; held out: {self.over}): {self.verdict}"
