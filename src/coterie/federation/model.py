"""What a federation leaves behind: a model as `coterie fit` writes it.

The server knows weights, the edges between sites and the certificate. Rows, labels and inner edges stay at the sites:
in the model the number of labelled rows of a node is −1 and its error nan, for "not known here". What only a
federation has (sites, rounds, privacy) is in the model's notes, under "federation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.estimators import (
    NetworkedHuberRegression,
    NetworkedLasso,
    NetworkedLinearRegression,
    NetworkedLogisticRegression,
    NetworkedPoissonRegression,
    NetworkedQuantileRegression,
)
from coterie.estimators.base import NetworkedModel
from coterie.estimators.offsets import Offset
from coterie.estimators.scaling import Scaling
from coterie.federation.classes import SeenElsewhere, as_labels
from coterie.federation.loop import Outcome
from coterie.federation.partition import Cut
from coterie.federation.site_files import Settings
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.losses import Huber, Lasso, Logistic, Poisson, Quantile, SquaredError
from coterie.solver import Record, Solution, Status
from coterie.solver.clusters import Clusters

ESTIMATORS: dict[type, Any] = {
    SquaredError: NetworkedLinearRegression,
    Lasso: NetworkedLasso,
    Logistic: NetworkedLogisticRegression,
    SeenElsewhere: NetworkedLogisticRegression,
    Poisson: NetworkedPoissonRegression,
    Huber: NetworkedHuberRegression,
    Quantile: NetworkedQuantileRegression,
}
OWN = {"alpha": "alpha", "ridge": "ridge", "l1": "l1", "delta": "delta", "quantile": "q"}
"""Parameters of estimators, and the loss's name of each."""

UNKNOWN = -1  # labelled rows of a node
SAME = 1e-5  # of the largest weight: what two solves of one question may differ by


@dataclass(frozen=True, eq=False)
class KnownNetwork:
    """What the server knows of the network in the end.

    Attributes
    ----------
    nodes : list of str
        The boundary nodes, in the order of the cut, and then the other nodes whose weights sites shared.
    site : array of int, shape (V,)
        The site of each.
    w : array of shape (V, n)
    graph : EmpiricalGraph
        These nodes, and the edges between sites.
    u : array of shape (E, n)
        The duals of these edges.
    """

    nodes: list[str]
    site: NDArray[np.int64]
    w: Array
    graph: EmpiricalGraph
    u: Array

    @classmethod
    def of(
        cls, cut: Cut, boundary: Sequence[str], outcome: Outcome, own: Mapping[int, Sequence[str]], u: Array
    ) -> KnownNetwork:
        """Gather the boundary weights, which the certificate is of, and those that sites shared of the nodes in `own`.

        What a site shares of its boundary is the same but for rounding, or else it does not count.
        """
        near = SAME * float(np.abs(outcome.boundary).max(initial=0.0))
        known = {name: (int(k), w) for name, k, w in zip(boundary, cut.part, outcome.boundary, strict=True)}
        for k, weights in outcome.w.items():
            for name, w in zip(own[k], weights, strict=True):
                if name not in known or np.abs(known[name][1] - w).max() <= near:
                    known[name] = k, w
        nodes, (site, w) = list(known), zip(*known.values(), strict=True)
        graph = EmpiricalGraph.from_edges(cut.graph.edges, cut.graph.weights, n_nodes=len(nodes), ids=nodes)
        return cls(nodes, np.array(site), np.array(w), graph, u)

    @property
    def clusters(self) -> NDArray[np.int64]:
        """The cluster of each node; nodes of one site with equal weights are one, as inner edges are not known here."""
        alike = np.unique(np.column_stack([self.site, self.w]), axis=0, return_inverse=True)[1].ravel()
        order = np.argsort(alike, kind="stable")
        chains = np.stack([order[:-1], order[1:]], axis=1)[np.diff(alike[order]) == 0]
        edges = np.concatenate([self.graph.edges, chains])
        return Clusters.of(EmpiricalGraph.from_edges(edges, n_nodes=len(self.nodes)), self.w).joint


def federated_model(
    known: KnownNetwork, settings: Settings, features: Sequence[str], outcome: Outcome, tol: float
) -> NetworkedModel:
    """Return what was found as the estimator that would have been fitted to all rows in one place."""
    loss, V, n = settings.loss, len(known.nodes), len(features)
    estimator: Any = ESTIMATORS[type(loss)]
    taken = estimator._get_param_names()
    own = {name: getattr(loss, theirs) for name, theirs in OWN.items() if hasattr(loss, theirs) and name in taken}
    as_given = {"fit_intercept": False, "standardize": False, "weight_by": "nodes"}
    model: NetworkedModel = estimator(known.graph, settings.lam, penalty=settings.penalty, tol=tol, **own, **as_given)
    model.n_features_in_, model.feature_names_in_ = n, np.array(features, dtype=object)
    model.groups_column_, model.frame_library_ = settings.node, None
    model.lam_, model.row_weight_, model.scaling_ = settings.lam, 1.0, Scaling.none(n)
    model.n_labelled_, model.node_errors_ = np.full(V, UNKNOWN), np.full(V, np.nan)
    if estimator is NetworkedLogisticRegression:
        model.classes_ = as_labels(settings.classes or ("0", "1"))
    known_before = Offset.of(settings.offset or None, settings.exposure or None)
    if known_before is not None:
        model.offset_ = known_before
    model._take(_solution(known, outcome))
    return model


def _solution(known: KnownNetwork, outcome: Outcome) -> Solution:
    """The outcome as a solver would say it; an iteration is a round.

    What is proven while sites are held is about the problem in which their weights stay as they are: of the whole
    problem it holds under that condition only.
    """
    held = f"the weights of {', '.join(outcome.held)} stay as they are" if outcome.held else ""
    reached = Status.CONDITIONAL if held and outcome.status is Status.OPTIMAL else outcome.status
    history = tuple(Record(r.number, r.objective, r.dual_bound, r.gap, r.seconds) for r in outcome.history)
    return Solution(
        w=known.w,
        u=known.u,
        objective=outcome.objective,
        dual_bound=outcome.dual_bound,
        gap=outcome.gap,
        unconditional=outcome.unconditional and not held,
        condition=" and ".join(filter(None, [outcome.condition, held])),
        status=reached,
        n_iter=outcome.rounds,
        seconds=history[-1].seconds if history else 0.0,
        history=history,
        undetermined=np.empty(0, dtype=np.int64),
        graph=known.graph,
    )


def federation_note(
    known: KnownNetwork, settings: Settings, sites: Sequence[str], outcome: Outcome, privacy: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what only a federation has, for the notes of its model."""
    return {
        "sites": list(sites),
        "rounds": outcome.rounds,
        "label": settings.label,
        "held": list(outcome.held),
        "complaints": list(outcome.complaints),
        "privacy": privacy,
        "clusters": known.clusters.tolist(),
    }
