"""λ by cross-validation, where every rank of an MPI job holds the rows of its own nodes.

Rank 0 deals out the folds: it is told the node, label and weight of every labelled row, and no features, for a moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie.engines.mpi.checkpoint import not_keeping
from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.part import Integers
from coterie.estimators.fold_paths import FoldPath, Told
from coterie.estimators.folds import folds_of, refuse_lost, refuse_unreached
from coterie.estimators.held_out import held_out_at
from coterie.estimators.lam_errors import PATH_TOL, SMALLEST, choice_of, steps
from coterie.estimators.progress import listener
from coterie.estimators.rank_holders import RankHolders
from coterie.estimators.rank_lams import rank_lam_grid
from coterie.estimators.tested_rows import Labels, RowsOfLoss, TestedRows
from coterie.problem import LocalDatasets
from coterie.problem.arrays import Array
from coterie.solver.part_path import solve_parts_path
from coterie.solver.parts import PartProblem


@dataclass(frozen=True, eq=False)
class Dealt:
    """The folds of own labelled rows.

    Attributes
    ----------
    fold : array of shape (rows, repeats)
        The number of the fold that holds out each row, in each draw.
    over : str
        What is held out.
    labels : Labels
        What those of all rows say; `constant` is about own rows.
    """

    fold: Integers
    over: str
    labels: Labels


@dataclass(frozen=True, eq=False)
class RankFolds:
    """A choice of λ.

    Attributes
    ----------
    model : ChoosesLam
        It has its units.
    ranks : Crew
    problem : PartProblem
        With all labelled rows of own nodes; its λ does not count.
    """

    model: Any
    ranks: Crew
    problem: PartProblem

    def choose(self) -> float:
        """The λ that folds choose; the model is told how, and how well it predicts."""
        model, holders = self.model, RankHolders(self.ranks)
        known, repeats = RowsOfLoss(self._data, self.problem.loss), model.cv_repeats
        dealt = self._dealt()
        lams = rank_lam_grid(self.problem, model.n_lams, SMALLEST)
        tell, n_folds = listener(model.verbose), repeats * int(model.cv)
        told = None if tell is None else steps(tell, n_folds, len(lams))
        with not_keeping():
            paths = [self._path(dealt, k, lams, told, holders) for k in range(n_folds)]
        choice = choice_of(known, lams, paths, dealt.over, repeats, model.scaling_.y_spread)
        model.lam_choice_, model.cv_results_ = choice, choice.results()
        at = choice.by_rule(model.rule)
        measure, own, edges = known.loss.measure, len(self.problem.share.own), dealt.labels.edges
        model.held_out_ = held_out_at(measure, own, edges, paths, choice, at, model.rule, model.scaling_)
        return float(choice.lams[at])

    def _path(self, dealt: Dealt, k: int, lams: list[float], told: Told | None, holders: RankHolders) -> FoldPath:
        """What fold k says of each λ."""
        problem, data, folds = self.problem, self._data, int(self.model.cv)
        test = dealt.fold[:, k // folds] == k % folds
        rows = replace(data, y=np.where(test, np.nan, data.y)).labelled
        training = replace(problem, rows=rows, name=f"{problem.name}, fold {k}")
        progress = None if told is None else partial(told, k)
        path = solve_parts_path(training, lams, PATH_TOL, max_iter=self.model.max_iter, progress=progress)
        order = np.searchsorted(problem.share.own, path.nodes)
        test &= ~np.isin(data.nodes, order[path.undetermined])
        refuse_unreached(self.ranks.any(bool(test.any())))
        weights = [_placed(w, order) for w in path.weights]
        known = RowsOfLoss(data, problem.loss)
        return FoldPath(TestedRows.of(known, test, weights, np.ones(len(test)), dealt.labels).added(holders), path.gaps)

    @property
    def _data(self) -> LocalDatasets:
        """The labelled rows of own nodes."""
        rows, V = self.problem.rows, max(len(self.problem.share.own), 1)
        return LocalDatasets(rows.X, rows.y, np.repeat(rows.M, rows.m), V, rows.weights, rows.offset)

    def _dealt(self) -> Dealt:
        """Rank 0 deals out the labelled rows of all ranks as one process does, in the order of nodes and files."""
        ranks, data, everything = self.ranks, self._data, self.ranks.for_first(len(self.problem.rows.y))
        offset = np.zeros(len(data.y)) if data.offset is None else data.offset
        nodes, counts = ranks.swapped(self.problem.share.own[data.nodes], everything)
        y, weights, offsets = (ranks.swapped(values, everything)[0] for values in (data.y, data.weights, offset))

        def deal() -> tuple[Integers, Array, dict[str, Any]]:
            if ranks.rank:
                return np.empty((0, self.model.cv_repeats), dtype=np.int64), np.empty(0), {}
            order = np.argsort(nodes, kind="stable")
            known = None if data.offset is None else offsets[order]
            no_features = np.empty((len(y), 0))
            return self._of_all(
                LocalDatasets(no_features, y[order], nodes[order], self.problem.n_nodes, weights[order], known), order
            )

        fold, constant, rest = ranks.do(deal, "deal out the folds")
        back = counts if ranks.rank == 0 else np.zeros(ranks.size, dtype=np.int64)
        fold, constant = ranks.swapped(fold, back)[0], ranks.swapped(constant, back)[0]
        rest = ranks.said(rest)[0]
        edges = np.array(rest["edges"][0]), np.array(rest["edges"][1])
        return Dealt(fold, rest["over"], Labels(edges, rest["mean"], constant if rest["explained"] else None))

    def _of_all(self, data: LocalDatasets, order: Integers) -> tuple[Integers, Array, dict[str, Any]]:
        """The folds of all rows, in the order in which they came, and what all labels say."""
        model, loss = self.model, self.problem.loss
        drawn = model.cv, model.over, np.arange(len(order)), model.random_state, model.cv_repeats
        folds, over = folds_of(data, *drawn, of_classes=loss.measure.of_classes)
        fold, constant = np.empty((len(order), model.cv_repeats), dtype=np.int64), np.zeros(len(order))
        for k, one in enumerate(folds):
            refuse_lost(model, loss, data, one)
            fold[order[one.test], k // int(model.cv)] = k % int(model.cv)
        labels = Labels.of(RowsOfLoss(data, loss))
        if labels.constant is not None:
            constant[order] = labels.constant
        edges = [one.tolist() for one in labels.edges]
        rest = {"over": over, "edges": edges, "mean": labels.mean, "explained": labels.constant is not None}
        return fold, constant, rest


def _placed(w: Array, order: Integers) -> Array:
    """Weights with each row where its node is among the own ones."""
    out = np.empty_like(w)
    out[order] = w
    return out
