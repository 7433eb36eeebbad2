"""What is known of a prediction beforehand: an offset that is added to ⟨x, w⟩, or an exposure, whose logarithm is."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from coterie.estimators.tables import as_numbers, has_column, take_column
from coterie.problem.arrays import Array
from coterie.problem.losses.poisson import FURTHEST

OFFSET, EXPOSURE = "offset", "exposure"


class Offset(NamedTuple):
    """What a caller gave: of which kind, and the numbers, one for all rows, or the column of X that holds them."""

    kind: str
    values: Any

    @classmethod
    def of(cls, offset: Any, exposure: Any) -> Self | None:
        """Return the one of the two that is given, or None."""
        if offset is not None and exposure is not None:
            raise ValueError("an exposure is an offset, its logarithm: give offset= or exposure=, not both")
        if offset is None and exposure is None:
            return None
        return cls(OFFSET, offset) if exposure is None else cls(EXPOSURE, exposure)

    @classmethod
    def for_model(cls, model: Any, offset: Any, exposure: Any) -> Self | None:
        """The same, of a model that may be of any kind."""
        given = cls.of(offset, exposure)
        if given is not None and not model._takes_offset:
            raise TypeError(f"{type(model).__name__} takes no {given.kind}; NetworkedPoissonRegression does")
        return given

    @property
    def column(self) -> str | None:
        """The column of X that holds the numbers; None where they came without one."""
        return self.values if isinstance(self.values, str) else None

    @property
    def named(self) -> Self:
        """The same without its numbers: what a model remembers."""
        return self._replace(values=self.column)

    def taken(self, X: Any) -> tuple[Any, Array]:
        """X without the column, and what is added to ⟨x, w⟩ of each row."""
        values: Any = self.values
        if self.column is not None:
            X, values = take_column(X, self.column, self.kind)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if np.ndim(values) == 0:
            values = np.full(n_rows, values)
        known = as_numbers(values, self.kind, f"{self.kind}s are numbers")
        if known.shape != (n_rows,):
            raise ValueError(f"X has {n_rows} rows, but {self.kind} has shape {known.shape}")
        return X, self.added(known)

    @property
    def missing(self) -> str:
        """What a model says that was fitted with one and is given none."""
        where = "" if self.column is None else f", as the column {self.column!r} or otherwise"
        return f"the model was fitted with an {self.kind}: give it{where}; exposure=1 gives rates"

    def found_again(self, X: Any) -> Self | None:
        """What a model remembers, in a frame X that has its column; None where there is none."""
        return self if self.column is not None and has_column(X, self.column) else None

    def added(self, known: Array) -> Array:
        """What these numbers add to ⟨x, w⟩ of their rows."""
        positive = self.kind == EXPOSURE
        where = "" if self.column is None else f" (column {self.column!r})"
        wrong = ~np.isfinite(known) | (known <= 0 if positive else False)
        if wrong.any():
            r, rule = int(np.argmax(wrong)), "finite numbers > 0" if positive else "finite numbers"
            raise ValueError(f"{self.kind}[{r}]{where} is {known[r]:g}; {self.kind}s are {rule}, known for every row")
        added = np.log(known) if positive else known
        if (far := np.abs(added) > FURTHEST).any():
            r = int(np.argmax(far))
            raise ValueError(
                f"{self.kind}[{r}]{where} is {known[r]:g}, an exposure of e^{added[r]:g}: an offset is a logarithm; "
                "give its logarithm, or change the unit of exposures"
            )
        return added
