"""What squared error needs to know of a node: its count, its means and its centred second moments.

(1/m) Σ_r (y_r − ⟨x_r, w⟩)² depends on the rows through these alone. `Moments` holds them for many nodes, however many
rows there were, and turns them into a few *condensed rows* with the same loss for every w, so that all that works
with rows, the solver and its certificate among it, works with them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.problem.arrays import Array
from coterie.problem.datasets import LocalDatasets
from coterie.problem.graph import EmpiricalGraph


@dataclass(frozen=True, eq=False)
class Moments:
    """Statistics of the labelled rows z = (x, y) of each node.

    Attributes
    ----------
    ids : tuple of length k
        What the nodes are called, each once.
    m : array of shape (k,)
        The number of labelled rows; 0 where a node has only rows without a label.
    mean : array of shape (k, n + 1)
        Means of the features and, last, of the label.
    comoments : array of shape (k, n + 1, n + 1)
        Σ_r (z_r − mean)(z_r − mean)ᵀ.
    """

    ids: tuple[Hashable, ...]
    m: NDArray[np.int64]
    mean: Array
    comoments: Array

    @classmethod
    def of(cls, X: ArrayLike, y: ArrayLike, nodes: ArrayLike) -> Moments:
        """Compute them from rows in memory, two passes per node: the readable reference.

        Parameters
        ----------
        X : array-like of shape (N, n)
        y : array-like of shape (N,)
            nan means unlabelled: such a row does not count.
        nodes : array-like of shape (N,)
            The id of each row's node.
        """
        Z = np.column_stack([X, y]).astype(float)
        ids, of = np.unique(np.asarray(nodes), return_inverse=True)
        k, q = len(ids), Z.shape[1]
        m, mean, comoments = np.zeros(k, dtype=np.int64), np.zeros((k, q)), np.zeros((k, q, q))
        labelled = ~np.isnan(Z[:, -1])
        for i in range(k):
            rows = Z[labelled & (of == i)]
            if len(rows):
                centred = rows - rows[0]  # first of all the offset goes, without rounding
                m[i], mean[i] = len(rows), rows[0] + centred.mean(axis=0)
                centred -= centred.mean(axis=0)
                comoments[i] = centred.T @ centred
        return cls(tuple(ids.tolist()), m, mean, comoments)

    @property
    def n_features(self) -> int:
        """The number n of features."""
        return self.mean.shape[1] - 1

    @property
    def sizes(self) -> Array:
        """Root mean squares of the features and, last, of the label, over the rows of all nodes."""
        squares = self.m @ self.mean**2 + np.einsum("ijj->j", self.comoments)
        return np.sqrt(squares / max(self.m.sum(), 1))

    def merge(self, other: Moments) -> Moments:
        """Return the statistics of the rows of both (Chan, Golub and LeVeque's update)."""
        if self.n_features != other.n_features:
            raise ValueError(f"moments of {self.n_features} and of {other.n_features} features cannot be merged")
        ids = tuple(dict.fromkeys((*self.ids, *other.ids)))
        a, b = self._spread(ids), other._spread(ids)
        m = a.m + b.m
        share = b.m / np.maximum(m, 1)
        d = b.mean - a.mean
        between = (a.m * share)[:, None, None] * d[:, :, None] * d[:, None, :]
        return Moments(ids, m, a.mean + share[:, None] * d, a.comoments + b.comoments + between)

    def _spread(self, ids: tuple[Hashable, ...]) -> Moments:
        number = {name: k for k, name in enumerate(ids)}
        place = [number[name] for name in self.ids]
        arrays = [np.zeros((len(ids), *old.shape[1:]), old.dtype) for old in (self.m, self.mean, self.comoments)]
        for new, old in zip(arrays, (self.m, self.mean, self.comoments), strict=True):
            new[place] = old
        return Moments(ids, *arrays)

    def datasets(self, graph: EmpiricalGraph | int, fit_intercept: bool = False) -> LocalDatasets:
        """Condense: at most n + 2 rows per node, with the loss of all its rows for every w.

        The rows √m̃ (x̄, ȳ) and √(m̃/m) R with RᵀR = comoments, m̃ of them, have the mean squared error of the m rows;
        each weighs m/m̃, so that the sum of squared errors is the same too.

        Parameters
        ----------
        graph : EmpiricalGraph, or int
            Where the nodes belong; a number when the ids are node numbers.
        fit_intercept : bool
            Put a column of ones after the features, as the last. (In condensed rows it is √m̃ and 0, not 1.)
        """
        V = graph.n_nodes if isinstance(graph, EmpiricalGraph) else graph
        known = graph if isinstance(graph, EmpiricalGraph) else EmpiricalGraph.from_edges([], n_nodes=V)
        labelled = self.m > 0
        nodes, m = known.numbers(list(self.ids))[labelled], self.m[labelled]
        R, kept = factor(self.comoments[labelled], m)
        kept = np.concatenate([np.ones((len(m), 1), dtype=bool), kept], axis=1)
        rows = np.concatenate([np.sqrt(m)[:, None, None] * self.mean[labelled][:, None, :], R], axis=1)
        count = kept.sum(axis=1)
        if fit_intercept:
            ones = np.zeros((*kept.shape, 1))
            ones[:, 0, 0] = np.sqrt(m)
            rows = np.concatenate([rows[:, :, :-1], ones, rows[:, :, -1:]], axis=2)
        rows = (rows * np.sqrt(count / m)[:, None, None])[kept]
        return LocalDatasets.from_rows(
            rows[:, :-1], rows[:, -1], np.repeat(nodes, count), n_nodes=V, weights=np.repeat(m / count, count)
        )


def factor(C: Array, m: NDArray[np.int64]) -> tuple[Array, NDArray[np.bool_]]:
    """Return R with RᵀR = C for each node's comoments C (k, q, q) of m rows, and which rows of R are not mere rounding.

    The factor is that of the correlations, scaled back: columns of very different sizes keep their digits. m rows span
    m − 1 centred directions at most, and adding m products leaves errors of about √m units in the last place.
    """
    size = np.sqrt(np.einsum("ijj->ij", C))
    unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, vectors = np.linalg.eigh(C * unit[:, :, None] * unit[:, None, :])
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]  # largest first
    q = C.shape[1]
    rounding = q * np.finfo(float).eps * np.sqrt(m)[:, None] * np.maximum(values[:, :1], 0.0)
    kept = (values > rounding) & (np.arange(q) < m[:, None] - 1)
    R = np.sqrt(np.where(kept, values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1) * size[:, None, :]
    return R, kept
