"""A fit by the ranks of an MPI job, of which each reads a share of the files and keeps its own nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie.engines.mpi.agreement import digest, refuse_differences
from coterie.engines.mpi.crew import Crew, crew
from coterie.estimators.base import NetworkedModel
from coterie.estimators.from_files import MOST_CLASSES, Say
from coterie.estimators.progress import follow, listener
from coterie.estimators.scaling import Holders
from coterie.io.errors import BadLabelError
from coterie.io.formats import Table
from coterie.io.memory import memory_needed, moments_needed, require_memory_to_solve
from coterie.io.model_parts import OF_NODES, name_arrays
from coterie.io.ranks.directory import sent_text
from coterie.io.ranks.model import write_together
from coterie.io.ranks.network import RankNetwork, read_edges
from coterie.io.ranks.partition import assign, read_partition
from coterie.io.ranks.rows import read_classes, read_own_moments, read_own_rows
from coterie.io.rows import Columns
from coterie.io.sources import data_files
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.problem import LocalDatasets
from coterie.problem.arrays import Array
from coterie.problem.convert import Measure
from coterie.problem.datasets import LabelledRows
from coterie.problem.penalties import as_penalty
from coterie.solver.parts import PartProblem, PartSolution, solve_parts

OWN = (*OF_NODES, "u", "edges", "weights", "undetermined")  # arrays of which every rank writes its own


class RankHolders(Holders):
    """Every rank holds the rows of its own nodes."""

    def __init__(self, ranks: Crew) -> None:
        self.ranks = ranks

    def added(self, values: Any) -> Any:
        total = self.ranks.added(np.atleast_1d(np.asarray(values, dtype=np.float64)))
        return total if np.ndim(values) else float(total[0])

    def first(self, value: Array, there: bool) -> Array:
        some, values = self.ranks.every(np.array([there])).ravel(), self.ranks.every(value)
        return values[int(some.argmax())]


@dataclass(frozen=True, eq=False)
class Facts:
    """What is said of a model that no process holds as a whole."""

    labelled_nodes: int
    labelled_rows: int
    clusters: int
    undetermined_nodes: list[Any]

    @property
    def labels(self) -> str:
        """How many rows have labels, and at how many nodes."""
        rows, nodes = self.labelled_rows, self.labelled_nodes
        return f"{rows:,} labelled row{'s' * (rows != 1)} at {nodes:,} node{'s' * (nodes != 1)}"


@dataclass(frozen=True, eq=False)
class RankFit:
    """A fit of a model, with λ given and without a graph, to tables of rows and of edges.

    Attributes
    ----------
    model : NetworkedModel
        Squared error, Lasso, or logistic regression.
    rows, edges : Table
    columns : Columns
    measure : Measure
        Which column of the edges holds weights.
    partition : Table, or None
        Which rank each node belongs to; None: that is decided here.
    say : callable
        Called with each sentence that a user should read.
    """

    model: NetworkedModel
    rows: Table
    edges: Table
    columns: Columns
    measure: Measure
    partition: Table | None
    say: Say

    @cached_property
    def ranks(self) -> Crew:
        return crew()

    def fit(self) -> Facts:
        """Fit together with all other ranks; at each, the model has what its `save` writes of the own nodes."""
        with self.ranks.ending_together():
            return self._fitted()

    def _fitted(self) -> Facts:
        model, columns = self.model, self.columns
        tables = [table for table in (self.rows, self.edges, self.partition) if table is not None]
        about = (*self.ranks.do(lambda: _files(tables), "find the files"), repr(columns), _said(model))
        refuse_differences(self.ranks, {"command or files": about})
        model._check_parameters()
        model.n_features_in_, model.feature_names_in_ = len(columns.features), np.array(columns.features, dtype=object)
        model.groups_column_, model.frame_library_, model.target_name_ = columns.node, "polars", columns.target
        model.lam_, model.strengths_ = float(model.lam), None
        with using(Form.NUMPY):  # a small fit compiles nothing
            network = self._network()
            data, labelled = self._data(network)
        holders = RankHolders(self.ranks)
        model._find_units(data.labelled, data.labelled, holders)
        rows = model._in_units(data).labelled
        del data
        loss, penalty = model._loss(model._unpenalised), as_penalty(model.penalty)
        loss.validate(rows)
        sizes, name = (network.n_nodes, network.n_edges), digest(about).hex()
        tell = listener(model.verbose)
        found = solve_parts(
            PartProblem(network.share, *sizes, rows, loss, penalty, model.lam_, name),
            model.tol,
            max_iter=model.max_iter,
            time_limit=model.time_limit,
            callback=None if tell is None else follow(tell, model.tol),
        )
        return self._take(found, network, rows, labelled)

    def _network(self) -> RankNetwork:
        """The own nodes of this rank, and their edges."""
        directory, edges = read_edges(self.edges, self.measure, self.columns.text_ids, self.ranks)
        if self.partition is not None:
            read_partition(self.partition, directory)
        else:
            assign(directory, edges, len(self.columns.features) + int(self.model.fit_intercept))
        network, n = RankNetwork.joined(directory, edges), len(self.columns.features)
        sizes = len(network.share.own), len(network.share.pairs)
        self.ranks.do(lambda: require_memory_to_solve(*sizes, n), "hold its part")
        return network

    def _data(self, network: RankNetwork) -> tuple[LocalDatasets, Array]:
        """Rows of own nodes, condensed where that is less, and how many labelled ones each node has."""
        model, columns, V = self.model, self.columns, len(network.share.own)
        condense = hasattr(model, "fit_moments") and self._moments_are_less(network)
        if condense:
            moments = read_own_moments(self.rows, columns, network)
            data, here = moments.datasets(max(V, 1), model.fit_intercept), np.array(moments.ids, dtype=np.int64)
            labelled = np.bincount(here, moments.m, minlength=V).astype(np.int64)
        else:
            classes = self._classes() if hasattr(model, "predict_proba") else None
            rows = read_own_rows(self.rows, columns, network, classes)
            data = LocalDatasets.from_rows(model._design(rows.X), rows.y, rows.nodes, max(V, 1))
            here, labelled = np.unique(rows.nodes), np.bincount(rows.nodes[~np.isnan(rows.y)], minlength=V)
        with_rows, with_labels = (round(n) for n in self.ranks.sums(len(here), int((labelled > 0).sum())))
        if not with_labels:
            raise BadLabelError(f"{self.rows}: column {columns.target!r} is empty in every row; nothing to learn from")
        if (without := network.n_nodes - with_rows) > 0:
            of = f"{without} of the {network.n_nodes} nodes of the graph"
            self.say(f"{of} have no rows; their models come from neighbours")
        return data, labelled

    def _moments_are_less(self, network: RankNetwork) -> bool:
        n = len(self.columns.features)
        less = self.ranks.rank == 0 and moments_needed(network.n_nodes, n) < memory_needed(self.rows, n)
        return bool(self.ranks.of_first(np.array([less]))[0])

    def _classes(self) -> list[Any]:
        """The two classes of the labels, which the model learns."""
        model: Any = self.model
        found, name = read_classes(self.rows, self.columns, self.ranks), self.columns.target
        if wrong := [c for c in found if isinstance(c, float) and c != round(c)]:
            raise BadLabelError(f"{self.rows}: column {name!r} holds {wrong[0]}, which is not a class")
        if not 2 <= len(found) <= MOST_CLASSES:
            raise BadLabelError(f"{self.rows}: column {name!r} has {len(found)} classes, and not 2 to {MOST_CLASSES}")
        model.classes_ = np.array(found if self.columns.text_labels else [int(c) for c in found])
        model.class_weight_ = np.ones(len(found))
        if self.columns.text_labels and len(found) == 2:
            self.say(f"probabilities are those of {found[1]!r}, and not of {found[0]!r}, in column {name!r}")
        return found

    def _take(self, found: PartSolution, network: RankNetwork, rows: LabelledRows, labelled: Array) -> Facts:
        """Let the model have what is known of own nodes, and a way to write it."""
        model, share = self.model, network.share
        order = np.searchsorted(share.own, found.nodes)  # nodes in the order of the solution
        w = np.empty_like(found.solution.w)
        w[order] = found.solution.w
        of, loss = np.repeat(rows.M, rows.m), model._loss(model._unpenalised)
        total = np.bincount(of, rows.shares * loss.error(rows.X, rows.y, w[of]), minlength=len(share.own))
        unit = model.scaling_.y_spread**loss.measure.degree
        model.n_labelled_ = labelled[order]
        model.node_errors_ = np.where(labelled > 0, unit * total, np.nan)[order]
        model.solution_ = model.scaling_.values_back(found.solution, model._degree)
        model.graph_ = model.solution_.graph
        model._refit = model._information = None
        model.gap_ = model.solution_.gap
        names = network.names.gather(order)
        own = {
            "numbers": found.nodes,
            **name_arrays(names.to_list()),
            "edges": found.pairs,
            "weights": found.part.problem.graph.weights[: found.part.counted],
            "undetermined": found.nodes[found.solution.undetermined],
        }
        model._write = partial(_write, self.ranks, own, self.columns.text_ids)
        counts = self.ranks.sums(int(labelled.sum()), int((labelled > 0).sum()))
        lost = names.gather(found.solution.undetermined)
        everything = np.zeros(self.ranks.size, dtype=np.int64)
        everything[0] = len(lost)
        undetermined, _ = sent_text(self.ranks, lost, everything)
        lost_names = [name if self.columns.text_ids else int(name) for name in undetermined.to_list()]
        return Facts(round(counts[1]), round(counts[0]), found.clusters, sorted(lost_names))


def _write(
    ranks: Crew, own: dict[str, Array], text_ids: bool, path: Path, record: dict[str, Any], arrays: dict[str, Array]
) -> None:
    """What `save` of a model writes, with arrays of nodes and edges by their owners."""
    here = {name: arrays[name] for name in (*OF_NODES, "u")} | own
    shared = {name: array for name, array in arrays.items() if name not in OWN}
    write_together(ranks, path, {**record, "text_ids": text_ids}, shared, here)


def _said(model: NetworkedModel) -> str:
    """The parameters that say what is fitted."""
    return repr(
        {name: value for name, value in model.get_params(deep=False).items() if name not in ("graph", "verbose")}
    )


def _files(tables: list[Table]) -> list[tuple[str, int]]:
    """The files of tables, and how long they are."""
    return [(str(file), file.stat().st_size) for table in tables for file in data_files(table)]
