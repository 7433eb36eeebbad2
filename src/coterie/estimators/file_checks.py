"""What a fit asks of the labels and columns of files, whoever has read them: one process, or ranks their shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from coterie.io.errors import BadLabelError, BadValueError
from coterie.io.preparation import Gaps
from coterie.io.rows import Columns, find_row
from coterie.io.sources import import_polars

if TYPE_CHECKING:
    import polars as pl

UNEVEN = 100  # columns whose sizes differ by more are worth a warning; an intercept is a column of ones
MOST_NAMED = 5  # classes that a message lists
MOST_CLASSES = 100  # each has a weight vector of its own at every node
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class FileChecks:
    """Checks that refuse with file, column and row, or say what a user should know.

    Attributes
    ----------
    path : str or Path
    columns : Columns
    say : callable
        Called with each sentence that a user should read.
    """

    path: str | PathLike[str]
    columns: Columns
    say: Say

    def labels(self, some: bool) -> None:
        """Refuse files in which no row has a label."""
        if not some:
            raise BadLabelError(
                f"{self.path}: column {self.columns.target!r} is empty in every row; nothing to learn from"
            )

    def nodes(self, with_rows: int, of: int) -> None:
        """Say how many nodes have no rows."""
        if with_rows < of:
            self.say(f"{of - with_rows} of the {of} nodes of the graph have no rows; their models come from neighbours")

    def gaps(self, gaps: Gaps | None) -> None:
        """Say what was missing, and what becomes of it."""
        made = self.columns.made
        if gaps is not None and made is not None and made.missing is not None and gaps.rows:
            self.say(gaps.in_words(made.missing))

    def sizes(self, sizes: Sequence[float]) -> None:
        """Warn of columns of very different sizes, with which solves take long."""
        by_size = sorted((size, name) for size, name in zip(sizes, self.columns.features, strict=True) if size > 0)
        if by_size and max(by_size[-1][0], 1.0) > UNEVEN * min(by_size[0][0], 1.0):
            listed = ", ".join(f"{name} {size:.1g}" for size, name in (by_size[0], by_size[-1]))
            self.say(f"features of very different sizes ({listed}) take long to solve unless they are standardised")

    def classes(self, counts: Mapping[Any, int]) -> list[Any]:
        """The classes of labels, sorted, where these are names, or whole numbers, of two or more.

        counts : how many rows have each label.
        """
        name, label = str(self.columns.target), import_polars().col(str(self.columns.target))
        named = any(isinstance(one, str) for one in counts)
        if not named and any(one != round(one) for one in counts):
            where = self._first((label != label.round()) & ~label.is_nan(), named)
            raise BadLabelError(
                f"{where} is not a class; labels of a logistic regression are whole numbers, or names, empty where "
                "unknown"
            )
        classes = sorted(counts) if named else sorted(map(int, counts))
        listed = ", ".join(map(repr, classes[:MOST_NAMED])) + (", …" if len(classes) > MOST_NAMED else "")
        found = f"column {name!r} has {len(classes)} classes ({listed})"
        if len(classes) < 2:
            raise BadLabelError(f"{self.path}: column {name!r} has labels of one class only; two are needed")
        if len(classes) > MOST_CLASSES:
            raise BadLabelError(f"{self.path}: {found}, more than {MOST_CLASSES}; are these numbers to be predicted?")
        if len(classes) > 2:
            if single := [one for one, count in counts.items() if count == 1]:  # more likely a slip than a class
                where = self._first(label.is_in(single), named)
                raise BadLabelError(f"{where} is the only row of its class; correct it, or give its class more rows")
            self.say(f"{found}; each has coefficients of its own")
        elif named:
            self.say(f"probabilities are those of {classes[1]!r}, and not of {classes[0]!r}, in column {name!r}")
        return classes

    def counts(self, negative: bool, unexposed: bool) -> None:
        """Refuse counts of which some are negative, and exposures of which some are not positive."""
        pl, target, known = import_polars(), str(self.columns.target), str(self.columns.offset)
        if negative:
            where = find_row(self.path, self.columns, pl.col(target) < 0, target)
            raise BadLabelError(f"{where} is not a count; counts are numbers ≥ 0, empty where unknown")
        if unexposed:
            where = find_row(self.path, self.columns, pl.col(known) <= 0, known)
            raise BadValueError(f"{where} is not an exposure; exposures are numbers > 0")

    def _first(self, wrong: pl.Expr, named: bool) -> str:
        """Where the first label is for which that holds, of labels that are names or numbers."""
        return find_row(self.path, replace(self.columns, text_labels=named), wrong, str(self.columns.target))
