"""A fit by the ranks of an MPI job, of which each reads a share of the files and keeps its own nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie.engines.mpi.agreement import digest, refuse_differences
from coterie.engines.mpi.crew import Crew, crew
from coterie.estimators.base import NetworkedModel
from coterie.estimators.column_strength import of_features
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.file_checks import FileChecks, Say
from coterie.estimators.from_files import naming_the_file
from coterie.estimators.offsets import Offset
from coterie.estimators.progress import follow, listener
from coterie.estimators.rank_data import RankData
from coterie.estimators.rank_folds import RankFolds
from coterie.estimators.rank_holders import RankHolders
from coterie.io.formats import Table
from coterie.io.memory import require_memory_to_solve
from coterie.io.model_parts import OF_NODES, OF_SOME, name_arrays
from coterie.io.preparation import prepare
from coterie.io.ranks.directory import sent_text
from coterie.io.ranks.model import write_together
from coterie.io.ranks.network import RankNetwork, read_edges
from coterie.io.ranks.partition import assign, read_partition
from coterie.io.ranks.preparation import RankReader
from coterie.io.rows import Columns
from coterie.io.sources import data_files
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.problem.arrays import Array
from coterie.problem.convert import Measure
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import with_offset
from coterie.problem.penalties import as_penalty
from coterie.problem.penalties.by_column import by_column
from coterie.solver.parts import PartProblem, PartSolution, solve_parts

HOW_LONG = ("tol", "max_iter", "time_limit")  # a fit that goes on may be asked for more
OWN = (*OF_NODES, *OF_SOME, "u", "edges", "weights", "undetermined")  # arrays of which every rank writes its own


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
    """A fit of a model, without a graph and with λ given or chosen by folds, to tables of rows and of edges.

    Attributes
    ----------
    model : NetworkedModel
        Of any loss and penalty.
    rows, edges : Table
    columns : Columns
    measure : Measure
        Which column of the edges holds weights.
    partition : Table, or None
        Which rank each node belongs to; None: that is decided here.
    say : callable
        Called with each sentence that a user should read.
    offset : Offset, default=None
        Whether `columns.offset` is an offset or an exposure. None: there is no such column.
    one_hot, missing
        What is made of columns: as for `fit_files`.
    strength : mapping, default={}
        Strengths of columns that are not 0; that of a column with levels is that of each of them.
    """

    model: NetworkedModel
    rows: Table
    edges: Table
    columns: Columns
    measure: Measure
    partition: Table | None
    say: Say
    offset: Offset | None = None
    one_hot: Sequence[str] = ()
    missing: str | None = None
    strength: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def ranks(self) -> Crew:
        return crew()

    @cached_property
    def holders(self) -> RankHolders:
        return RankHolders(self.ranks)

    @property
    def checks(self) -> FileChecks:
        return FileChecks(self.rows, self.columns, self.say)

    def fit(self) -> Facts:
        """Fit together with all other ranks; at each, the model has what its `save` writes of the own nodes."""
        with self.ranks.ending_together(), naming_the_file(self.rows):
            name = self._agreed()
            self.model._check_parameters()
            with using(Form.NUMPY), self.ranks.profile.phase("reading"):  # a small fit compiles nothing
                columns, gaps = prepare(self.rows, self.columns, self.one_hot, self.missing, RankReader(self.ranks))
            prepared = replace(self, columns=columns)
            prepared.checks.gaps(gaps)
            return prepared._fitted(name)

    def _agreed(self) -> str:
        """What the fit is known by; refuse ranks that were asked for another one."""
        tables = {"rows": self.rows, "edges": self.edges, "ranks of nodes": self.partition}
        given: dict[str, Any] = {
            f"table of {name} (here {table})": self.ranks.do(partial(_files, table), f"find the {name}")
            for name, table in tables.items()
        }
        *fitted, _ = given.values()  # who does what is free to change when a fit goes on
        chosen = self.columns, self.measure, self.offset, self.one_hot, self.missing, dict(self.strength)
        given["choice of columns"] = repr(chosen)
        given["set of options"] = repr(_said(self.model))
        refuse_differences(self.ranks, given)
        wanted = {name: value for name, value in _said(self.model).items() if name not in HOW_LONG}
        return digest([*fitted, repr(chosen), repr(wanted)]).hex()

    def _fitted(self, name: str) -> Facts:
        self._introduce()
        model = self.model
        with using(Form.NUMPY), self.ranks.profile.phase("reading"):
            network = self._network()
            data, labelled = RankData(model, network, self.checks, self.offset).read()
        model._check_labelled(data.labelled, self.holders)
        model._find_units(data.labelled, data.labelled, self.holders)
        rows = model._in_units(data).labelled
        del data
        loss, penalty = model._loss(model._unpenalised), as_penalty(model.penalty)
        strength = model._find_strengths(loss)
        if strength is not None and (strength != 1).any():
            penalty = by_column(penalty, strength)
        self.ranks.do(lambda: loss.validate(rows), f"use the labels of {self.rows}")
        problem = PartProblem(network.share, network.n_nodes, network.n_edges, rows, loss, penalty, 1.0, name)
        chooses = isinstance(model, ChoosesLam)
        model.lam_ = RankFolds(model, self.ranks, problem).choose() if chooses else float(model.lam)
        tell = listener(model.verbose)
        found = solve_parts(
            replace(problem, lam=model.lam_),
            model.tol,
            max_iter=model.max_iter,
            time_limit=model.time_limit,
            callback=None if tell is None else follow(tell, model.tol),
        )
        return self._take(found, network, rows, labelled)

    def _introduce(self) -> None:
        """Let the model know what is known before any row is read."""
        model, columns = self.model, self.columns
        model.n_features_in_, model.feature_names_in_ = len(columns.features), np.array(columns.features, dtype=object)
        model.groups_column_, model.frame_library_, model.target_name_ = columns.node, "polars", columns.target
        model.preparation_ = columns.made
        if self.strength:
            given = of_features(self.strength, columns.features, self.one_hot, model.fit_intercept, "--strength")
            model.set_params(column_strength=given)
        model.offset_ = None if self.offset is None else self.offset.named

    def _network(self) -> RankNetwork:
        """The own nodes of this rank, and their edges."""
        directory, edges = read_edges(self.edges, self.measure, self.columns.text_ids, self.ranks)
        with self.ranks.profile.phase("assigning nodes"):
            if self.partition is not None:
                read_partition(self.partition, directory)
            else:
                assign(directory, edges, len(self.columns.features) + int(self.model.fit_intercept))
        network, n = RankNetwork.joined(directory, edges), len(self.columns.features)
        sizes = len(network.share.own), len(network.share.pairs)
        self.ranks.do(lambda: require_memory_to_solve(*sizes, n), "hold its part")
        return network

    def _take(self, found: PartSolution, network: RankNetwork, rows: LabelledRows, labelled: Array) -> Facts:
        """Let the model have what is known of own nodes, and a way to write it."""
        model, share = self.model, network.share
        order = np.searchsorted(share.own, found.nodes)  # nodes in the order of the solution
        w = np.empty_like(found.solution.w)
        w[order] = found.solution.w
        of, loss = np.repeat(rows.M, rows.m), model._loss(model._unpenalised)
        X, own_w = with_offset(rows.X, w[of], rows.offset)
        total = np.bincount(of, rows.shares * loss.error(X, rows.y, own_w), minlength=len(share.own))
        unit = model.scaling_.y_spread**loss.measure.degree
        model.n_labelled_ = labelled[order]
        model.node_errors_ = np.where(labelled > 0, unit * total, np.nan)[order]
        model.solution_ = model.scaling_.values_back(found.solution, model._degree)
        model.graph_ = model.solution_.graph
        if hasattr(model, "held_out_"):
            model.held_out_ = replace(model.held_out_, node_errors=model.held_out_.node_errors[order])
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
        undetermined, _ = sent_text(self.ranks, lost, self.ranks.for_first(len(lost)))
        lost_names = [name if self.columns.text_ids else int(name) for name in undetermined.to_list()]
        return Facts(round(counts[1]), round(counts[0]), found.clusters, sorted(lost_names))


def _write(
    ranks: Crew, own: dict[str, Array], text_ids: bool, path: Path, record: dict[str, Any], arrays: dict[str, Array]
) -> None:
    """What `save` of a model writes, with arrays of nodes and edges by their owners."""
    here = {name: arrays[name] for name in (*OF_NODES, *OF_SOME, "u") if name in arrays} | own
    shared = {name: array for name, array in arrays.items() if name not in OWN}
    with ranks.profile.phase("writing"):
        write_together(ranks, path, {**record, "text_ids": text_ids}, shared, here)


def _said(model: NetworkedModel) -> dict[str, Any]:
    """The parameters that say what is fitted, and how far."""
    return {name: value for name, value in model.get_params(deep=False).items() if name not in ("graph", "verbose")}


def _files(table: Table | None) -> list[tuple[str, int]]:
    """The files of a table, and how long they are."""
    return [] if table is None else [(str(file), file.stat().st_size) for file in data_files(table)]
