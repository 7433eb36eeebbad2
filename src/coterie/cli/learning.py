"""From files to a fitted model: in one pass where that is enough, with the rows in memory where it is not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.io.errors import BadLabelError, DataError

if TYPE_CHECKING:
    import polars as pl

    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.folds import Over
    from coterie.io.rows import Columns

UNEVEN = 100  # columns whose sizes differ by more are worth a warning; an intercept is a column of ones
MUCH = 1e8  # bytes of moments from which on it is worth counting rows
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Task:
    """What to fit to which files.

    Attributes
    ----------
    model : NetworkedModel
        Not fitted yet, with its graph.
    over : "auto", "nodes" or "rows"
        What folds hold out.
    chooses_lam, compares : bool
        Whether λ is chosen by cross-validation, and whether baselines are asked for.
    """

    data: Path
    columns: Columns
    model: NetworkedModel
    over: Over
    chooses_lam: bool
    compares: bool

    def learn(self, say: Say) -> pl.DataFrame | None:
        """Fit the model; return the rows if they had to be read."""
        from coterie.io.memory import require_memory_to_solve

        require_memory_to_solve(self.model.graph.n_nodes, self.model.graph.n_edges, len(self.columns.features))
        over_rows = self.chooses_lam and self.over == "rows"
        needs_rows = self.compares or over_rows or not hasattr(self.model, "fit_moments") or self._is_wide()
        return self._from_rows(say) if needs_rows or not self._from_moments(say) else None

    def _is_wide(self) -> bool:
        """Whether moments, n² numbers per node, would take much memory, and more than the rows themselves."""
        from coterie.io.memory import memory_needed, moments_needed

        moments = moments_needed(self.model.graph.n_nodes, len(self.columns.features))
        return moments > MUCH and memory_needed(self.data, len(self.columns.features)) < moments

    def compare(self, rows: pl.DataFrame, cv: int, seed: int) -> dict[str, Any]:
        """Compare with baselines: a note for the report."""
        from coterie.estimators import compare_baselines

        X, y = self._X_and_y(rows)
        with _one_reason(self.data):
            found = compare_baselines(self.model, X, y, self.columns.node, cv=cv, over=self.over, random_state=seed)
        return {
            "methods": list(found.methods),
            "errors": found.errors.tolist(),
            "over": found.over,
            "weights": found.weights.tolist(),
        }

    def _from_moments(self, say: Say) -> bool:
        """Fit from one pass over the files; False where folds have to be made of rows."""
        from coterie.estimators.folds import what_to_hold_out
        from coterie.io.stream import stream_moments

        moments = stream_moments(self.data, self.columns)
        self._check(moments.ids, bool(moments.m.any()), say)
        m = moments.m[moments.m > 0]
        if self.chooses_lam and what_to_hold_out(self.over, m, self.model.graph.n_nodes) == "rows":
            return False
        self._check_sizes(moments.sizes[:-1].tolist(), say)
        with _one_reason(self.data):
            self.model.fit_moments(moments, self.columns)
        return True

    def _from_rows(self, say: Say) -> pl.DataFrame:
        from coterie.io.memory import in_words, memory_available, memory_needed, require_memory
        from coterie.io.rows import read_rows
        from coterie.io.sources import import_polars

        needed = memory_needed(self.data, len(self.columns.features))
        say(f"this keeps all rows in memory, about {in_words(needed)} (available: {in_words(memory_available())})")
        require_memory(needed, self.data)
        pl, rows = import_polars(), read_rows(self.data, self.columns)
        X, y = self._X_and_y(rows)
        self._check_sizes(X.select(self.columns.features).select(pl.all().pow(2).mean().sqrt()).row(0), say)
        self._check(rows[self.columns.node].unique(maintain_order=True), y.is_not_nan().any(), say)
        if hasattr(self.model, "predict_proba"):
            self._check_classes(y)
        with _one_reason(self.data):
            self.model.fit(X, y, groups=self.columns.node)
        if hasattr(self.model, "classes_"):
            self.model.classes_ = self.model.classes_.astype(int)
        return rows

    def _X_and_y(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
        assert self.columns.target is not None
        return rows.select(self.columns.node, *self.columns.features), rows[self.columns.target]

    def _check(self, ids: Any, labelled: bool, say: Say) -> None:
        from coterie.io.nodes import KnownNodes

        graph, ids = self.model.graph, list(ids)
        KnownNodes(graph).check_all(ids, self.data, self.columns)
        if not labelled:
            raise BadLabelError(
                f"{self.data}: column {self.columns.target!r} is empty in every row; nothing to learn from"
            )
        if (without := graph.n_nodes - len(ids)) > 0:
            say(f"{without} of the {graph.n_nodes} nodes of the graph have no rows; their models come from neighbours")

    def _check_sizes(self, sizes: Sequence[float], say: Say) -> None:
        """Warn of columns of very different sizes, with which solves take long."""
        by_size = sorted((size, name) for size, name in zip(sizes, self.columns.features, strict=True) if size > 0)
        if not self.model.standardize and by_size and max(by_size[-1][0], 1.0) > UNEVEN * min(by_size[0][0], 1.0):
            listed = ", ".join(f"{name} {size:.1g}" for size, name in (by_size[0], by_size[-1]))
            say(f"features of very different sizes ({listed}) take long to solve without --scale")

    def _check_classes(self, y: pl.Series) -> None:
        """Labels are 0 and 1, both of them, or empty."""
        from coterie.io.rows import find_row
        from coterie.io.sources import import_polars

        name, pl = y.name, import_polars()
        wrong = ~(pl.col(name).is_in([0.0, 1.0]) | pl.col(name).is_nan())
        if y.to_frame().select(wrong.any()).item():
            where = find_row(self.data, self.columns, wrong, name)
            raise BadLabelError(
                f"{where} is not a class; labels of a logistic regression are 0 or 1, empty where unknown"
            )
        if y.drop_nans().n_unique() < 2:
            raise BadLabelError(f"{self.data}: column {name!r} has labels of one class only; two are needed")


@contextmanager
def _one_reason(data: Path) -> Iterator[None]:
    """Turn what an estimator finds wrong with data into one line; how a fit ended is said elsewhere."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            yield
        except DataError:
            raise
        except ValueError as error:
            raise DataError(f"{data}: {error}") from error
