"""From files to a fitted model: in one pass where that is enough, with the rows in memory where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from coterie.estimators.base import NetworkedModel
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.file_checks import FileChecks, Say
from coterie.estimators.fold import Over
from coterie.estimators.folds import what_to_hold_out
from coterie.estimators.offsets import EXPOSURE, Offset
from coterie.estimators.progress import listener
from coterie.estimators.space_time import pairs_of
from coterie.io.errors import DataError
from coterie.io.formats import Table
from coterie.io.labels import as_numbers, label_counts
from coterie.io.memory import (
    in_words,
    memory_available,
    memory_needed,
    moments_needed,
    require_memory,
    require_memory_to_solve,
)
from coterie.io.nodes import KnownNodes
from coterie.io.preparation import prepare
from coterie.io.rows import Columns, read_rows
from coterie.io.sources import import_polars
from coterie.io.times import Times
from coterie.problem import EmpiricalGraph

if TYPE_CHECKING:
    import polars as pl

MUCH = 1e8  # bytes of moments from which on it is worth counting rows, and of rows that are worth a word


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
    files.checks.gaps(gaps)
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

    @property
    def checks(self) -> FileChecks:
        """What is asked of the files, and said of them."""
        return FileChecks(self.path, self.columns, self.say)

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
            self.checks.classes(label_counts(y))
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
        rows = read_rows(self.path, self.columns)
        numbers = as_numbers(rows[str(self.columns.target)]) if self.columns.text_labels else None
        return rows if numbers is None else rows.with_columns(numbers.fill_null(float("nan")))

    def _check(self, ids: Any, labelled: bool) -> None:
        graph, ids = self.graph, list(ids)
        KnownNodes(graph).check_all(dict.fromkeys(name for name, *_ in ids), self.path, self.columns)
        self.checks.labels(labelled)
        self.checks.nodes(len(ids), graph.n_nodes)

    def _check_sizes(self, sizes: Sequence[float]) -> None:
        if not self.model.standardize:
            self.checks.sizes(sizes)

    def _check_counts(self, rows: pl.DataFrame) -> None:
        """Counts are not negative, and exposures are positive."""
        pl, target, known = import_polars(), str(self.columns.target), self.columns.offset
        exposed = known is not None and self.offset is not None and self.offset.kind == EXPOSURE
        negative = bool(rows.select((pl.col(target) < 0).any()).item())
        self.checks.counts(negative, exposed and bool(rows.select((pl.col(known) <= 0).any()).item()))


@contextmanager
def naming_the_file(path: str | PathLike[str]) -> Iterator[None]:
    """Turn what an estimator finds wrong with data into an error that names the file."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
