"""Tables and graphs as users have them: features, labels with gaps, node ids beside or inside the table."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array, as_floats
from coterie.problem.ids import as_ids

WEIGHTS = "weights are finite numbers ≥ 0"


def as_graph(graph: Any, groups: Any) -> EmpiricalGraph:
    """Return the graph to learn on; without any, the single node that all rows then belong to."""
    if graph is not None:
        return EmpiricalGraph.from_any(graph)
    if groups is not None:
        raise ValueError("groups says which node each row belongs to, but there is no graph; give graph= to the model")
    return EmpiricalGraph.from_edges([], n_nodes=1)


def node_ids(graph: EmpiricalGraph) -> Array:
    """The ids of the nodes as an array: of numbers, of strings, or of objects where they are mixed."""
    if graph.ids is None:
        return np.arange(graph.n_nodes)
    kinds = {type(name) for name in graph.ids}
    plain = len(kinds) == 1 and kinds <= {int, str, float}
    if plain:
        return np.array(graph.ids)
    ids = np.empty(graph.n_nodes, dtype=object)
    ids[:] = graph.ids
    return ids


def columns_of_groups(X: Any, groups: Any) -> str | list[str] | None:
    """Return the column of X that holds the nodes, or the columns whose pairs do; None: groups are ids themselves."""
    if isinstance(groups, str):
        return groups
    if not isinstance(groups, list | tuple) or not hasattr(X, "columns"):
        return None
    if len(groups) > 1 and has_column(X, list(groups)):
        return list(groups)
    if len(groups) == len(X) or not any(has_column(X, name) for name in groups):  # these are ids
        return None
    if missing := [name for name in groups if not has_column(X, name)]:
        raise ValueError(f"X has no column {missing[0]!r} with the nodes; its columns are {list(X.columns)}")
    return str(groups[0])


def take_groups(X: Any, groups: Any) -> tuple[Any, Any]:
    """Return the features alone and the node id of each row; `groups` may name columns of X that hold them."""
    columns = columns_of_groups(X, groups)
    if columns is None:
        return X, _as_pairs(groups)
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise ValueError(f"groups={groups!r} names a column, but X is a {type(X).__name__} without columns") from None
    if isinstance(columns, list):
        ids = [frame[name].to_list() for name in columns]
        return frame.drop(columns).to_native(), list(zip(*ids, strict=True))
    if columns not in frame.columns:
        raise ValueError(f"X has no column {groups!r} with the nodes; its columns are {frame.columns}")
    return frame.drop(columns).to_native(), frame[columns].to_list()


def _as_pairs(groups: Any) -> Any:
    """Groups in several columns, of an array or a frame, as tuples; others as they are."""
    import narwhals.stable.v1 as nw

    if isinstance(groups, np.ndarray) and groups.ndim == 2:
        return list(zip(*(as_ids(column) for column in groups.T), strict=True))
    frame = nw.from_native(groups, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return groups
    return frame.rows() if len(frame.columns) > 1 else frame[frame.columns[0]].to_list()


def take_column(X: Any, name: str, what: str) -> tuple[Any, Array]:
    """Return a frame without a column, and the numbers that it held, nan where there were none."""
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise ValueError(f"{what}={name!r} names a column, but X is a {type(X).__name__} without columns") from None
    if name not in frame.columns:
        raise ValueError(f"X has no column {name!r} with the {what}; its columns are {frame.columns}")
    if not frame[name].dtype.is_numeric():
        raise ValueError(f"column {name!r} of X, the {what}, holds {frame[name].dtype}, not numbers")
    return frame.drop(name).to_native(), frame[name].cast(nw.Float64).to_numpy()


NODES = "where it holds the nodes, name it as groups= (in pipelines and searches: node= of the model)"


def check_numbers(X: Any, hint: str = f"encode it, leave it out, or, {NODES}") -> None:
    """Refuse a frame with a column of text, times or categories, and name it."""
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame) and not frame.columns:
        raise ValueError("X has no column of features; give at least one beside those of the nodes")
    for name, kind in frame.schema.items() if isinstance(frame, nw.DataFrame) else ():
        if isinstance(kind, nw.String | nw.Categorical | nw.Enum | nw.Date | nw.Datetime | nw.Duration | nw.Time):
            raise ValueError(f"column {name!r} of X holds {kind}, not numbers: {hint}")
        as_floats(frame[name].to_numpy(), f"column {name!r} of X")


def refuse_gaps(features: Array, names: Any) -> None:
    """Refuse features that are missing or infinite, and name column and row; without names, columns have numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(features.sum()):
            return
    for k, column in enumerate(features.T):
        for what, wrong in (("NaN", np.isnan(column)), ("infinity", np.isinf(column))):
            if len(rows := np.flatnonzero(wrong)):
                more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
                name = k if names is None else repr(names[k])
                raise ValueError(f"column {name} of X is {what} in row {rows[0]:,}{more}: fill in or drop such rows")


def has_column(X: Any, name: Any) -> bool:
    """Whether X is a frame with this column, or with all of these."""
    wanted, there = [name] if isinstance(name, str) else name or [None], list(getattr(X, "columns", ()))
    return all(isinstance(one, str) and one in there for one in wanted)


def library_of(X: Any) -> str | None:
    """The library that a frame came from; None for an array."""
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return str(frame.implementation.value) if isinstance(frame, nw.DataFrame) else None


def name_of(y: Any) -> str | None:
    """The name of labels that are a series; None where they have none."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def as_labels(y: Any, n_rows: int) -> Array:
    """Return numbers, nan where a row has no label."""
    y = column_or_1d(_without_nulls(y), warn=True)
    labels = as_numbers(y, "y", "labels are numbers; NetworkedLogisticRegression takes names of classes")
    if (far := np.isinf(labels)).any():
        r = int(np.argmax(far))
        raise ValueError(f"Input y contains infinity or a value too large for dtype('float64'): y[{r}] is {labels[r]}")
    return _as_long_as(labels, n_rows, "y")


def as_numbers(values: Any, name: str, rule: str) -> Array:
    """Return values as numbers; name the first that is text, and say what the rule is."""
    try:
        return check_array(values, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name=name)
    except ValueError:
        for r, value in enumerate(values):
            if isinstance(value, str) and not _is_number(value):
                raise ValueError(f"could not convert string to float: {name}[{r}] is {value!r}; {rule}") from None
        raise


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_classes(y: Any, n_rows: int) -> tuple[Array, Array]:
    """Return the classes in order, and the number of the class of each row, nan where a row has no label."""
    labels = _as_long_as(column_or_1d(_without_nulls(y), warn=True), n_rows, "y").tolist()
    known = np.array([v is not None and v == v for v in labels], dtype=bool)
    named = [v for v, there in zip(labels, known, strict=True) if there]
    if any(isinstance(v, str) for v in named) and not all(isinstance(v, str) for v in named):
        r = next(r for r, v in enumerate(labels) if known[r] and isinstance(v, str) != isinstance(named[0], str))
        raise ValueError(
            f"y mixes strings with other values: y[{np.argmax(known)}] is {named[0]!r}, y[{r}] is {labels[r]!r}; "
            "classes are all of one type"
        )
    classes, code = np.unique(np.array(named), return_inverse=True)
    if classes.dtype.kind == "f" and np.isinf(classes).any():
        raise ValueError("Input y contains infinity; classes are names or whole numbers, or nan where unknown")
    numbers = np.full(n_rows, np.nan)
    numbers[known] = code
    return classes, numbers


def as_row_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return one weight per row; None where all count alike."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    s = as_numbers(sample_weight, "sample_weight", WEIGHTS)
    if s.ndim > 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if (wrong := ~((s >= 0) & (s < np.inf))).any():
        r = int(np.argmax(wrong))
        raise ValueError(f"sample_weight[{r}] is {s[r]:g}; {WEIGHTS}")
    return _as_long_as(s, n_rows, "sample_weight")


def where_labelled(y: Any, predicted: Array, sample_weight: Any) -> tuple[Array, Array, Array | None]:
    """Return the labels that there are, what is predicted of them, and their weights; None where all count alike."""
    labels = as_labels(y, len(predicted))
    known, s = ~np.isnan(labels), as_row_weights(sample_weight, len(labels))
    return labels[known], predicted[known], s if s is None else s[known]


def _without_nulls(y: Any) -> Any:
    """Turn a list or a column of a frame, whose gaps may be null, into an array whose gaps are None or nan."""
    import narwhals.stable.v1 as nw

    if isinstance(y, list | tuple):
        return np.array(y, dtype=object)  # else NumPy would make the string "nan" of a gap among strings
    series = nw.from_native(y, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return y
    if series.dtype.is_numeric():
        return series.cast(nw.Float64).to_numpy()
    values = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return np.array([None if gap else value for value, gap in values], dtype=object)


def _as_long_as(values: Array, n_rows: int, name: str) -> Array:
    if len(values) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, {name} {len(values)}"
        )
    return values
