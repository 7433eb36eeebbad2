"""Arrays out of arrays and frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import as_floats


def as_matrix(values: Any, what: str) -> tuple[NDArray[np.float64], list[str] | None]:
    """Return an array of shape (rows, columns), and the names of the columns if `values` is a frame."""
    import narwhals.stable.v1 as nw

    frame = nw.from_native(values, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        matrix = as_floats(values, what)
        if matrix.ndim != 2 or matrix.shape[1] == 0:
            raise ValueError(f"{what} must have shape (rows, columns); got {matrix.shape}")
        return matrix, None
    if not frame.columns:
        raise ValueError(f"{what} has no columns")
    names = [str(name) for name in frame.columns]
    columns = [as_floats(frame.get_column(c).to_numpy(), f"column {c!r} of {what}") for c in frame.columns]
    return np.column_stack(columns), names


def index_of(values: Any, n_rows: int) -> Any:
    """What a pandas frame calls its rows; the numbers of the rows for everything else."""
    import narwhals.stable.v1 as nw

    return values.index if nw.dependencies.is_pandas_dataframe(values) else range(n_rows)
