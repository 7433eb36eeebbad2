"""Local datasets: every node's rows, stacked, and the labelled part that losses are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.problem.arrays import LARGEST, as_floats, as_whole, rows_of, too_large


@dataclass(frozen=True, eq=False)
class LocalDatasets:
    """Rows (x, y) of all nodes, sorted by node. Build with :meth:`from_rows`, which checks its input.

    Attributes
    ----------
    X : array of shape (N, n)
        Features, one row per data point.
    y : array of shape (N,)
        Labels; nan where there is none.
    nodes : array of shape (N,)
        The node of each row, ascending.
    n_nodes : int
        |V|; a node may have no row at all.
    weights : array of shape (N,)
        How much each row counts in the loss of its node.
    offset : array of shape (N,), default=None
        What is added to ⟨x, w⟩ of each row.

    Examples
    --------
    >>> import coterie as ct
    >>> data = ct.LocalDatasets.from_rows([[1.0], [2.0], [3.0]], [2.0, float("nan"), 6.0], nodes=[1, 0, 1])
    >>> data.n_nodes, data.nodes.tolist()
    (2, [0, 1, 1])
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    nodes: NDArray[np.int64]
    n_nodes: int
    weights: NDArray[np.float64]
    offset: NDArray[np.float64] | None = None

    @classmethod
    def from_rows(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike,
        n_nodes: int | None = None,
        weights: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> LocalDatasets:
        """Check and sort rows.

        Parameters
        ----------
        X : array-like of shape (N, n)
            Features, all finite.
        y : array-like of shape (N,)
            nan means unlabelled. A node is labelled when at least one of its rows is, and its loss
            counts the labelled rows only.
        nodes : array-like of shape (N,)
            The node number of each row, in any order; nodes may have different numbers of rows.
        n_nodes : int, default=None
            None: the largest number in `nodes` + 1.
        weights : array-like of shape (N,), default=None
            A row of weight 2 counts like two rows, one of weight 0 like an unlabelled one. None: all 1.
        offset : array-like of shape (N,), default=None
            A known part of each row's prediction, which is added to ⟨x, w⟩: for counts, the logarithm of the exposure.

        Returns
        -------
        LocalDatasets
            With the rows sorted by node.

        Raises
        ------
        ValueError
            If a value cannot be used, or lengths do not agree; the message says where.
        """
        X, y, nodes = as_floats(X, "X"), as_floats(y, "y"), np.asarray(nodes)
        s = np.ones(len(y)) if weights is None else as_floats(weights, "weights")
        if X.ndim != 2 or X.shape[1] == 0:
            raise ValueError(f"X must have shape (rows, features) with at least one feature; got {X.shape}")
        known = None if offset is None else as_floats(offset, "offset")
        for name, column in (("y", y), ("nodes", nodes), ("weights", s), ("offset", y if known is None else known)):
            if column.shape != (len(X),):
                raise ValueError(f"X has {len(X)} rows but {name} has shape {column.shape}")
        nodes, V = _as_node_numbers(nodes, n_nodes)
        bad = np.argwhere(~np.isfinite(X))
        if bad.size:
            r, k = bad[0]
            raise ValueError(f"X[{r}, {k}] (row {r} of node {nodes[r]}, feature {k}) is {X[r, k]}; fill or drop it")
        if np.isinf(y).any():
            r = int(np.argmax(np.isinf(y)))
            raise ValueError(f"y[{r}] (node {nodes[r]}) is {y[r]}; labels are finite, or nan where unknown")
        if not (np.isfinite(s) & (s >= 0)).all():
            r = int(np.argmin(np.isfinite(s) & (s >= 0)))
            raise ValueError(f"weights[{r}] (node {nodes[r]}) is {s[r]}; row weights are finite numbers ≥ 0")
        if known is not None and not np.isfinite(known).all():
            r = int(np.argmin(np.isfinite(known)))
            raise ValueError(f"offset[{r}] (node {nodes[r]}) is {known[r]}; offsets are finite numbers")
        _refuse_large(X, y, s, nodes)
        order = np.argsort(nodes, kind="stable")
        X, y, nodes, s = X[order], y[order], nodes[order], s[order]
        known = None if known is None else known[order]
        for array in (X, y, nodes, s, known):
            if array is not None:
                array.flags.writeable = False
        return cls(X, y, nodes, V, s, known)

    @property
    def n_features(self) -> int:
        """The length n of feature and weight vectors."""
        return self.X.shape[1]

    @cached_property
    def labelled(self) -> LabelledRows:
        """The rows with a label that counts."""
        rows = ~np.isnan(self.y) & (self.weights > 0)
        M, m = np.unique(self.nodes[rows], return_counts=True)
        offset = None if self.offset is None else self.offset[rows]
        return LabelledRows(M, m, self.X[rows], self.y[rows], self.weights[rows], offset)

    def joined_with(self, other: LocalDatasets) -> LocalDatasets:
        """Return the rows of both, which are of the same nodes."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("X", "y", "nodes", "weights")]
        X, y, nodes, weights = (np.concatenate(pair) for pair in pairs)
        offset = None
        if self.offset is not None or other.offset is not None:
            known = (np.zeros(len(part.y)) if part.offset is None else part.offset for part in (self, other))
            offset = np.concatenate(list(known))
        return LocalDatasets.from_rows(X, y, nodes, max(self.n_nodes, other.n_nodes), weights, offset)

    def __repr__(self) -> str:
        return (
            f"LocalDatasets({len(self.X)} rows × {self.n_features} features, "
            f"{len(self.labelled.M)} of {self.n_nodes} nodes labelled)"
        )


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The labelled rows of the labelled nodes, in the order of M.

    Attributes
    ----------
    M : array of shape (|M|,)
        Labelled nodes, ascending.
    m : array of shape (|M|,)
        m_i ≥ 1, the number of labelled rows of each.
    X, y : arrays of shape (Σ m_i, n) and (Σ m_i,)
        Rows, sorted by node.
    weights : array of shape (Σ m_i,)
        How much each row counts, > 0.
    offset : array of shape (Σ m_i,), or None
        What is added to ⟨x, w⟩ of each row.
    """

    M: NDArray[np.int64]
    m: NDArray[np.int64]
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    offset: NDArray[np.float64] | None = None

    @property
    def shifted(self) -> LabelledRows:
        """The same rows with labels that ⟨x, w⟩ alone is to meet: y − offset."""
        return self if self.offset is None else replace(self, y=self.y - self.offset, offset=None)

    def of_nodes(self, which: NDArray[np.int64]) -> LabelledRows:
        """The rows of the nodes M[which] alone, in this order."""
        rows = rows_of(self.starts, which)
        offset = None if self.offset is None else self.offset[rows]
        return LabelledRows(self.M[which], self.m[which], self.X[rows], self.y[rows], self.weights[rows], offset)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the rows of each node begin, and at the end their number; shape (|M| + 1,)."""
        return np.concatenate([[0], np.cumsum(self.m)])

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """What each row counts in the mean over its node: 1/m_i when all weights are equal."""
        weights = self.weights.astype(np.longdouble)
        total = np.add.reduceat(weights, self.starts[:-1]) if len(self.m) else weights
        return (weights / np.repeat(total, self.m)).astype(np.float64)

    @cached_property
    def blocks(self) -> list[Block]:
        """Nodes gathered by size, so that each block is a rectangular array."""
        blocks = []
        for size in np.unique(self.m):
            of = np.flatnonzero(self.m == size)
            rows = self.starts[of][:, None] + np.arange(size)
            blocks.append(Block(of, rows, self.X[rows], self.y[rows]))
        return blocks


@dataclass(frozen=True, eq=False)
class Block:
    """k labelled nodes of m rows each: `of` (k) places in M, `rows` (k, m) among all rows, X (k, m, n), y (k, m)."""

    of: NDArray[np.int64]
    rows: NDArray[np.int64]
    X: NDArray[np.float64]
    y: NDArray[np.float64]


def _refuse_large(X: NDArray, y: NDArray, s: NDArray, nodes: NDArray[np.int64]) -> None:
    """Refuse numbers whose squares overflow: no gap could be computed."""
    if (large := too_large(X)).any():
        r, k = np.argwhere(large)[0]
        place, value = f"X[{r}, {k}] (row {r} of node {nodes[r]}, feature {k})", X[r, k]
    elif (large := too_large(y) | too_large(s)).any():
        r = int(np.argmax(large))
        name, column = ("y", y) if too_large(y[r]) else ("weights", s)
        place, value = f"{name}[{r}] (node {nodes[r]})", column[r]
    else:
        return
    raise ValueError(
        f"{place} is {value:g}; numbers above {LARGEST:g} cannot be squared: is it a mistake, or its unit?"
    )


def _as_node_numbers(nodes: NDArray, n_nodes: int | None) -> tuple[NDArray[np.int64], int]:
    if nodes.size and not np.issubdtype(nodes.dtype, np.integer):
        raise TypeError(f"nodes must hold whole node numbers, got {nodes.dtype}")
    V = int(nodes.max(initial=-1)) + 1 if n_nodes is None else as_whole(n_nodes, "n_nodes")
    if V < 1:
        raise ValueError("there are no rows; give n_nodes to say how many nodes there are")
    outside = np.flatnonzero((nodes < 0) | (nodes >= V))
    if outside.size:
        r = outside[0]
        raise ValueError(f"row {r} belongs to node {nodes[r]}, but the {V} nodes are numbered 0 to {V - 1}")
    return nodes.astype(np.int64), V
