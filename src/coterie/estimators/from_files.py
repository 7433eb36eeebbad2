"""From files to a fitted model: in one pass where that is enough, with the rows in memory where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from coterie.estimators.base import NetworkedModel
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.folds import Over, what_to_hold_out
from coterie.estimators.offsets import EXPOSURE, Offset
from coterie.estimators.progress import listener
from coterie.estimators.space_time import pairs_of
from coterie.io.errors import BadLabelError, BadValueError, DataError
from coterie.io.formats import Table
from coterie.io.memory import (
    in_words,
    memory_available,
    memory_needed,
    moments_needed,
    require_memory,
    require_memory_to_solve,
)
from coterie.io.nodes import KnownNodes
from coterie.io.preparation import Gaps, prepare
from coterie.io.rows import Columns, find_row, read_rows
from coterie.io.sources import import_polars
from coterie.io.times import Times
from coterie.problem import EmpiricalGraph

if TYPE_CHECKING:
    import polars as pl

UNEVEN = 100  # columns whose sizes differ by more are worth a warning; an intercept is a column of ones
MUCH = 1e8  # bytes of moments from which on it is worth counting rows, and of rows that are worth a word
MOST_NAMED = 5  # classes that a message lists
MOST_CLASSES = 100  # each has a weight vector of its own at every node
Say = Callable[[str], None]


def fit_files(
    model: NetworkedModel,
    path: str | PathLike[str],
    node: str | Sequence[str],
    target: str,
    features: Sequence[str] | None = None,
    one_hot: Sequence[str] = (),
    missing: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> NetworkedModel:
    """Fit a model to tables in files, which may be larger than memory.

    Squared error and Lasso read the files once and keep no rows, but the moments of every node. Rows are read into
    memory where a fit needs them: for the other losses, for folds that hold out rows, and for tables so wide that
    moments would take more memory than the rows. What does not fit in memory is refused before it is read.

    Parameters
    ----------
    model : NetworkedModel
        A model with its graph. It is fitted in place.
    path : str, Path or Table
        CSV, Parquet or Arrow: a file, a folder, or a pattern such as ``days/*.parquet``. A
        :class:`coterie.io.formats.Table` says besides how text is written: separator, decimal sign, encoding.
    node : str or two of them
        The column that says which node a row belongs to; or the columns of the place and of the time.
    target : str
        The column to predict; empty or nan where it is not known. For a classifier, names or whole numbers.
    features : sequence of str, default=None
        The columns to predict from. None: all other columns. true and yes are 1, false and no are 0.
    one_hot : sequence of str, default=()
        Features whose values are levels, such as colours. Each level but the first becomes a feature, ``colour=red``,
        that is 1 in its rows and 0 in others.
    missing : "mean" or "drop", default=None
        What becomes of a row that lacks a feature: it gets the mean of the column, or is left out. None: an error.
    offset, exposure : str, default=None
        Of counts: the column of one of them, as for :meth:`NetworkedPoissonRegression.fit`.

    Returns
    -------
    NetworkedModel
        The model that was given.

    Raises
    ------
    coterie.io.errors.DataError
        If the files cannot be used; the message names file, column and row, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import coterie as ct
    >>> table = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = table.write_text("shop,price,sales\\nA,1,2\\nA,2,4\\nB,1,2\\nB,3,6\\n")
    >>> edges = ct.EmpiricalGraph.from_edges([(0, 1)], ids=["A", "B"])
    >>> model = ct.fit_files(ct.NetworkedLinearRegression(edges, lam=0.1), table, node="shop", target="sales")
    >>> model.n_labelled_.tolist()
    [2, 2]
    """
    tell, table = listener(model.verbose), Table.of(path)
    classes = hasattr(model, "predict_proba")
    given = Offset.for_model(model, offset, exposure)
    graph, (place, *rest) = model._as_graph(node), [node] if isinstance(node, str) else node
    pairs = pairs_of(graph)
    if len(rest) != (pairs is not None):
        raise ValueError(f"node={node!r}: name one column, or those of places and times where the graph has both")
    times = None if pairs is None else Times.like(rest[0], pairs.second)
    options: dict[str, Any] = {"classes": classes, "times": times, "offset": None if given is None else given.column}
    columns = Columns.of(table, place, target, features, **options).like(graph)
    columns, gaps = prepare(table, columns, one_hot, missing)
    say = (lambda line: None) if tell is None else (lambda line: tell(line, 0.0))
    files = FileFit(model, table, columns, say, offset=given)
    files.say_gaps(gaps)
    files.fit()
    return model


@dataclass(frozen=True, eq=False)
class FileFit:
    """A fit of a model to files.

    Attributes
    ----------
    model : NetworkedModel
        Not fitted yet, with its graph.
    path : str or Path
    columns : Columns
    say : callable
        Called with each sentence that a user should read.
    over : {"auto", "nodes", "rows"}, default=None
        What is to be held out of data with a given λ. None: nothing is.
    offset : Offset, default=None
        Whether `columns.offset` is an offset or an exposure. None: there is no such column.
    """

    model: NetworkedModel
    path: str | PathLike[str]
    columns: Columns
    say: Say
    over: Over | None = None
    offset: Offset | None = None

    @cached_property
    def graph(self) -> EmpiricalGraph:
        """The graph of the model."""
        return self.model._as_graph(self.columns.node)

    def fit(self, needs_rows: bool = False) -> pl.DataFrame | None:
        """Fit the model; return the rows if they were read into memory, as they are where `needs_rows`."""
        require_memory_to_solve(self.graph.n_nodes, self.graph.n_edges, len(self.columns.features))
        times = self.columns.times is not None
        needs_rows = needs_rows or times or not hasattr(self.model, "fit_moments") or self._is_wide()
        streams = not needs_rows and self._over() != "rows" and self._from_moments()
        rows = None if streams else self._from_rows()
        self.model.preparation_ = self.columns.made
        return rows

    def say_gaps(self, gaps: Gaps | None) -> None:
        """Say what was missing, and what becomes of it."""
        made = self.columns.made
        if gaps is not None and made is not None and made.missing is not None and gaps.rows:
            self.say(gaps.in_words(made.missing))

    def X_and_y(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
        """Split rows into nodes with features and offsets, and labels."""
        assert self.columns.target is not None
        known = [] if self.columns.offset is None else [self.columns.offset]
        return rows.select(*self.columns.keys, *self.columns.features, *known), rows[self.columns.target]

    def _is_wide(self) -> bool:
        """Whether moments, n² numbers per node, would take much memory, and more than the rows themselves."""
        moments = moments_needed(self.graph.n_nodes, len(self.columns.features))
        return moments > MUCH and self._rows_needed() < moments

    def _from_moments(self) -> bool:
        """Fit from one pass over the files; False where folds have to be made of rows."""
        from coterie.io.stream import stream_moments

        moments = stream_moments(self.path, self.columns)
        self._check([(name,) for name in moments.ids], bool(moments.m.any()))
        m = moments.m[moments.m > 0]
        model: Any = self.model
        if (over := self._over()) is not None and what_to_hold_out(over, m, self.graph.n_nodes) == "rows":
            return False
        self._check_sizes(moments.sizes[:-1].tolist())
        with naming_the_file(self.path):
            model.fit_moments(moments, self.columns)
        return True

    def _over(self) -> Over | None:
        """What is held out: by the choice of λ; or, where λ is given and that takes little memory, after the fit."""
        if isinstance(self.model, ChoosesLam) and self.model.criterion == "cv":
            return self.model.over
        return self.over if self._rows_needed() <= MUCH else None

    def _rows_needed(self) -> int:
        return memory_needed(self.path, len(self.columns.features))

    def _from_rows(self) -> pl.DataFrame:
        needed = self._rows_needed()
        if needed > MUCH or isinstance(self.model, ChoosesLam) or not hasattr(self.model, "fit_moments"):
            there = in_words(memory_available())
            self.say(f"this keeps all rows in memory, about {in_words(needed)} (available: {there})")
        require_memory(needed, self.path)
        pl, rows = import_polars(), self._read()
        X, y = self.X_and_y(rows)
        self._check_sizes(X.select(self.columns.features).select(pl.all().pow(2).mean().sqrt()).row(0))
        named = y.dtype == pl.String
        labelled = y.is_not_null() if named else y.is_not_nan()
        self._check(rows.select(self.columns.keys).unique(maintain_order=True).rows(), labelled.any())
        if hasattr(self.model, "predict_proba"):
            self._check_classes(y)
        if self.model._takes_offset:
            self._check_counts(rows)
        given = {} if self.offset is None else {self.offset.kind: self.columns.offset}
        with naming_the_file(self.path):
            keys = self.columns.keys
            self.model.fit(X, y, groups=keys[0] if len(keys) == 1 else keys, **given)
        if hasattr(self.model, "classes_") and not named:
            self.model.classes_ = self.model.classes_.astype(int)
        return rows

    def _read(self) -> pl.DataFrame:
        """The rows; labels that came as text, and are numbers after all, are numbers."""
        pl, rows = import_polars(), read_rows(self.path, self.columns)
        if self.columns.text_labels:
            label = pl.col(str(self.columns.target))
            numbers = rows.select(label.cast(pl.Float64, strict=False)).to_series()
            if numbers.null_count() == rows[numbers.name].null_count():
                rows = rows.with_columns(numbers.fill_null(float("nan")))
        return rows

    def _check(self, ids: Any, labelled: bool) -> None:
        graph, ids = self.graph, list(ids)
        KnownNodes(graph).check_all(dict.fromkeys(name for name, *_ in ids), self.path, self.columns)
        if not labelled:
            raise BadLabelError(
                f"{self.path}: column {self.columns.target!r} is empty in every row; nothing to learn from"
            )
        if (without := graph.n_nodes - len(ids)) > 0:
            self.say(
                f"{without} of the {graph.n_nodes} nodes of the graph have no rows; their models come from neighbours"
            )

    def _check_sizes(self, sizes: Sequence[float]) -> None:
        """Warn of columns of very different sizes, with which solves take long."""
        by_size = sorted((size, name) for size, name in zip(sizes, self.columns.features, strict=True) if size > 0)
        if not self.model.standardize and by_size and max(by_size[-1][0], 1.0) > UNEVEN * min(by_size[0][0], 1.0):
            listed = ", ".join(f"{name} {size:.1g}" for size, name in (by_size[0], by_size[-1]))
            self.say(f"features of very different sizes ({listed}) take long to solve unless they are standardised")

    def _check_classes(self, y: pl.Series) -> None:
        """Labels are names, or whole numbers, of two or more classes, or empty."""
        name, pl = y.name, import_polars()
        named = y.dtype == pl.String
        wrong = (pl.col(name) != pl.col(name).round()) & ~pl.col(name).is_nan()
        if not named and y.to_frame().select(wrong.any()).item():
            where = find_row(self.path, replace(self.columns, text_labels=False), wrong, name)
            raise BadLabelError(
                f"{where} is not a class; labels of a logistic regression are whole numbers, or names, empty where "
                "unknown"
            )
        classes = sorted(y.drop_nulls().unique() if named else y.drop_nans().cast(pl.Int64).unique())
        listed = ", ".join(map(repr, classes[:MOST_NAMED])) + (", …" if len(classes) > MOST_NAMED else "")
        found = f"column {name!r} has {len(classes)} classes ({listed})"
        if len(classes) < 2:
            raise BadLabelError(f"{self.path}: column {name!r} has labels of one class only; two are needed")
        if len(classes) > MOST_CLASSES:
            raise BadLabelError(f"{self.path}: {found}, more than {MOST_CLASSES}; are these numbers to be predicted?")
        if len(classes) > 2:
            self._check_single(y)
            self.say(f"{found}; each has coefficients of its own")
        elif named:
            self.say(f"probabilities are those of {classes[1]!r}, and not of {classes[0]!r}, in column {name!r}")

    def _check_single(self, y: pl.Series) -> None:
        """A class that one row alone has is more likely a slip than a class."""
        pl = import_polars()
        known = y.drop_nulls() if y.dtype == pl.String else y.drop_nans()
        counts = known.value_counts().filter(pl.col("count") == 1)
        if len(counts):
            where = find_row(self.path, self.columns, pl.col(y.name).is_in(counts[y.name].to_list()), y.name)
            raise BadLabelError(f"{where} is the only row of its class; correct it, or give its class more rows")

    def _check_counts(self, rows: pl.DataFrame) -> None:
        """Counts are not negative, and exposures are positive."""
        pl, target, known = import_polars(), str(self.columns.target), self.columns.offset
        if rows.select((pl.col(target) < 0).any()).item():
            where = find_row(self.path, self.columns, pl.col(target) < 0, target)
            raise BadLabelError(f"{where} is not a count; counts are numbers ≥ 0, empty where unknown")
        exposed = known is not None and self.offset is not None and self.offset.kind == EXPOSURE
        if exposed and rows.select((pl.col(known) <= 0).any()).item():
            where = find_row(self.path, self.columns, pl.col(known) <= 0, str(known))
            raise BadValueError(f"{where} is not an exposure; exposures are numbers > 0")


@contextmanager
def naming_the_file(path: str | PathLike[str]) -> Iterator[None]:
    """Turn what an estimator finds wrong with data into an error that names the file."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
