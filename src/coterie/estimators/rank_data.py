"""The rows of own nodes of a rank, of files that all ranks of an MPI job read together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.engines.mpi.crew import Crew
from coterie.estimators.base import NetworkedModel
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.file_checks import FileChecks
from coterie.estimators.offsets import EXPOSURE, Offset
from coterie.estimators.rank_holders import RankHolders
from coterie.io.formats import Table
from coterie.io.memory import memory_needed, moments_needed
from coterie.io.ranks.network import RankNetwork
from coterie.io.ranks.rows import OwnRows, count_labels, read_own_moments, read_own_rows
from coterie.io.rows import Columns
from coterie.problem import LocalDatasets
from coterie.problem.arrays import Array


@dataclass(frozen=True, eq=False)
class RankData:
    """What a model is to learn from at this rank.

    Attributes
    ----------
    model : NetworkedModel
        It learns which classes there are.
    network : RankNetwork
    checks : FileChecks
        Of the table of rows and its columns.
    offset : Offset or None
        Whether the columns have an offset or an exposure.
    """

    model: NetworkedModel
    network: RankNetwork
    checks: FileChecks
    offset: Offset | None

    @property
    def ranks(self) -> Crew:
        return self.network.directory.crew

    @property
    def table(self) -> Table:
        return Table.of(self.checks.path)

    @property
    def columns(self) -> Columns:
        return self.checks.columns

    def read(self) -> tuple[LocalDatasets, Array]:
        """Rows of own nodes, condensed where that is less, and how many labelled ones each node has."""
        model, checks, n = self.model, self.checks, len(self.columns.features)
        can_condense = hasattr(model, "fit_moments") and not isinstance(model, ChoosesLam)  # folds need rows
        condense = can_condense and self._moments_are_less()
        data, here, labelled = self._condensed() if condense else self._all_rows()
        with_rows, with_labels = (round(n) for n in self.ranks.sums(len(here), int((labelled > 0).sum())))
        checks.labels(with_labels > 0)
        checks.nodes(with_rows, self.network.n_nodes)
        if not model.standardize:
            squares, total = (
                RankHolders(self.ranks).added(data.weights @ data.X[:, :n] ** 2),
                self.ranks.sum(data.weights.sum()),
            )
            checks.sizes(np.sqrt(squares / total).tolist())
        return data, labelled

    def _moments_are_less(self) -> bool:
        n = len(self.columns.features)
        less = self.ranks.rank == 0 and moments_needed(self.network.n_nodes, n) < memory_needed(self.table, n)
        return bool(self.ranks.of_first(np.array([less]))[0])

    def _condensed(self) -> tuple[LocalDatasets, Array, Array]:
        """Condensed rows of own nodes, the nodes that have rows, and how many labelled ones each has."""
        V, moments = len(self.network.share.own), read_own_moments(self.table, self.columns, self.network)
        data, here = moments.datasets(max(V, 1), self.model.fit_intercept), np.array(moments.ids, dtype=np.int64)
        return data, here, np.bincount(here, moments.m, minlength=V).astype(np.int64)

    def _all_rows(self) -> tuple[LocalDatasets, Array, Array]:
        """The same with all rows of own nodes."""
        model, V = self.model, len(self.network.share.own)
        classes = self._classes() if hasattr(model, "predict_proba") else None
        rows = read_own_rows(self.table, self.columns, self.network, classes)
        known = self._added(rows) if model._takes_offset else None
        data = LocalDatasets.from_rows(model._design(rows.X), rows.y, rows.nodes, max(V, 1), offset=known)
        return data, np.unique(rows.nodes), np.bincount(rows.nodes[~np.isnan(rows.y)], minlength=V)

    def _added(self, rows: OwnRows) -> Array | None:
        """What is added to ⟨x, w⟩ of rows of counts."""
        known = rows.offset
        exposed = known is not None and self.offset is not None and self.offset.kind == EXPOSURE
        unexposed = exposed and bool((np.asarray(known) <= 0).any())
        self.checks.counts(self.ranks.any(bool((rows.y < 0).any())), self.ranks.any(unexposed))
        return None if known is None or self.offset is None else self.offset.added(known)

    def _classes(self) -> list[Any]:
        """The classes of the labels, which the model learns."""
        model: Any = self.model
        counts = count_labels(self.table, self.columns, self.ranks)
        self.checks.labels(bool(counts))
        found = self.checks.classes(counts)
        model.classes_, model.class_weight_ = np.array(found), np.ones(len(found))
        return found
