"""Convex clustering: points that neighbours pull together until some are one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie.estimators.cluster_count import JUST_ABOVE
from coterie.estimators.merge_path import Stage, cut_closely, points_problem, stages
from coterie.estimators.merge_tree import MergeTree
from coterie.estimators.tables import check_numbers, refuse_gaps
from coterie.graphs.neighbours import first_alike, neighbour_graph
from coterie.problem import BoundProblem, EmpiricalGraph, largest_useful_lam
from coterie.problem.arrays import Array
from coterie.problem.ids import are_text, as_ids, look_up, numbering, some_of
from coterie.problem.penalties import GroupTotalVariation, Penalty, as_penalty
from coterie.solver import Solution, solve

TREE_TOL = 0.1  # times tol: at tol itself the gap that is left decides whether two clusters have merged
SMALLEST, LARGEST = 1e-100, 1e100  # how far from their mean points may be, at most: squares must be numbers


class ConvexClustering(ClusterMixin, BaseEstimator):
    """Cluster points by min_w Σ_i ‖w_i − x_i‖² + λ Σ_e A_e φ(w_i − w_j): points with equal w are one cluster.

    Edges join near points. As λ grows, clusters become one, until a single one is left: that is the tree of merges.
    As in most solvers of this problem, points that are one at some λ stay one at larger λ in the tree.

    Parameters
    ----------
    n_clusters : int, default=None
        How many to cut the tree into. None: 2, or as many as there are at `lam`.
    lam : float, default=None
        λ ≥ 0, instead of the number of clusters.
    graph : EmpiricalGraph, networkx.Graph, matrix or frame of edges, default=None
        What joins the points: its nodes are what the index of X calls the rows, where X is a frame, or their numbers;
        of a graph with other nodes in an order of their own, the k-th one is row k. None: the nearest neighbours, and
        what else it takes to be connected.
    n_neighbors : int, default=15
        How many of the nearest points that differ from it each point is joined to.
    phi : float, default=2.0
        Weights of edges of length d are exp(−φ d²/s), with s the mean of d²; those between equal points hold at any λ.
    penalty : {"l2", "l1"}, default="l2"
        φ: the ℓ2 norm, or the ℓ1 norm, which clusters each coordinate by itself.
    n_lams : int, default=100
        How many λ the tree is grown with at most; they lie where most clusters merge. Merges between two of them are
        noted at the larger.
    tol : float, default=1e-6
        The relative gap to reach; the tree is grown to a tenth of it.

    Attributes
    ----------
    labels_ : array of shape (V,)
        The cluster of each point, numbered in the order of their first points.
    n_clusters_ : int
        How many there are.
    children_ : array of shape (V − 1, 2)
        The two clusters of each merge; points are 0 … V − 1, and merge k makes cluster V + k.
    distances_ : array of shape (V − 1,)
        The λ of each merge, ascending; 0 for points that are equal.
    n_leaves_, n_connected_components_ : int
        V, and 1: the graph is connected.
    lam_ : float
        The λ of `solution_`: the one that was given, or one just above the last merge before the tree is cut.
    solution_ : Solution
        The certified answer at `lam_`, on all points. Where several merges are noted at this λ and the tree is cut
        between them, `labels_` tells apart what is one here; and what is one in the tree may be apart here.
    graph_ : EmpiricalGraph
        What joins the points.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.0, 5.1], [9.0, 0.0]])
    >>> model = ct.ConvexClustering(n_clusters=3).fit(X)
    >>> model.labels_.tolist(), model.solution_.status.name
    ([0, 0, 1, 1, 2], 'OPTIMAL')
    """

    _parameter_constraints = {  # noqa: RUF012 - as scikit-learn has it
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "lam": [None, Interval(Real, 0, None, closed="left")],
        "graph": "no_validation",
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "phi": [Interval(Real, 0, None, closed="left")],
        "penalty": [str, Penalty],
        "n_lams": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        lam: float | None = None,
        graph: Any = None,
        n_neighbors: int = 15,
        phi: float = 2.0,
        penalty: str | Penalty = "l2",
        n_lams: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.n_clusters = n_clusters
        self.lam = lam
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.phi = phi
        self.penalty = penalty
        self.n_lams = n_lams
        self.tol = tol

    def fit(self, X: Any, y: Any = None) -> ConvexClustering:
        """Grow the tree, cut it, and solve for the λ of the cut.

        Parameters
        ----------
        X : array-like of shape (V, n)
            One row per point. Columns count by their size: scale them first.
        y : None, default=None
            Not used.

        Returns
        -------
        ConvexClustering
            Itself.

        Raises
        ------
        ValueError
            If a number is missing, more clusters are asked for than points differ, or the graph does not fit them.
        """
        self._validate_params()
        check_numbers(X, "encode it, or leave it out")
        rows = getattr(X, "index", None)  # the names of points, where a frame has them
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        refuse_gaps(X, getattr(self, "feature_names_in_", None))
        penalty = self._checked()
        centre = X.mean(axis=0)
        X = _checked_size(X - centre)  # far from zero, gaps would be relative to objectives of that size
        self.graph_ = self._graph_of(X, None if rows is None or callable(rows) else as_ids(rows))
        axes = _axes(X, penalty)
        X = (X @ axes.T)[first_alike(X)]  # products of equal rows may be rounded in other ways
        points = Stage.of_points(self.graph_, X)
        different = len(points.m)
        wanted = self.n_clusters or min(2, different)
        if wanted > different:
            of = f"there are {len(X)} points" if different == len(X) else f"only {different} of {len(X)} points differ"
            raise ValueError(f"n_clusters={wanted}, but {of}")
        problem = points_problem(self.graph_, X, np.ones(len(X)), penalty, 0.0)
        largest = largest_useful_lam(problem)
        found = stages(points, penalty, largest, self.n_lams, TREE_TOL * self.tol)
        if self.lam is None:
            cut_closely(found, wanted, penalty, TREE_TOL * self.tol)
        tree = MergeTree(self.graph_, X, found)
        self.n_leaves_, self.n_connected_components_ = len(X), 1
        self.children_, self.distances_ = np.array(tree.children).reshape(-1, 2), np.array(tree.lams)
        cut = len(X) - wanted  # so many merges are made
        self.lam_, solution = self._solved(
            problem.bound, points, self._lams_after(cut) if self.lam is None else [self.lam], wanted
        )
        self.solution_ = replace(solution, w=solution.w @ axes + centre, u=solution.u @ axes)
        self.labels_ = tree.labels(wanted) if self.lam is None else solution.clusters().joint
        self.n_clusters_ = int(self.labels_.max()) + 1
        return self

    def plot_dendrogram(self, ax: Any = None, **options: Any) -> Any:
        """Draw the tree of merges, with λ as height.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None: the present ones.
        **options : dict
            Options of ``scipy.cluster.hierarchy.dendrogram``.

        Returns
        -------
        dict
            What ``scipy.cluster.hierarchy.dendrogram`` returns.
        """
        from scipy.cluster.hierarchy import dendrogram

        check_is_fitted(self)
        V = len(self.labels_)
        size = np.ones(V + len(self.children_))
        for k, (a, b) in enumerate(self.children_):
            size[V + k] = size[a] + size[b]
        linkage = np.column_stack([self.children_, self.distances_, size[V:]]).astype(np.float64)
        return dendrogram(linkage, ax=ax, **options)

    def _lams_after(self, merges: int) -> list[float]:
        """λ to try for a cut after so many merges, best first: just above the last one, at it, half-way to the next."""
        last = float(self.distances_[merges - 1]) if merges else 0.0
        after = self.distances_[self.distances_ > last]
        middle = [float(np.sqrt(last * after[0]))] if len(after) else []
        return list(dict.fromkeys([min([JUST_ABOVE * last, *middle]), last, *middle]))

    def _solved(self, problem: BoundProblem, points: Stage, lams: list[float], wanted: int) -> tuple[float, Solution]:
        """The first of these λ at which there are as many clusters as wanted, or else the first.

        Where points are equal, the problem of those that differ is solved first.
        """
        found, graph = [], problem.graph
        alike = len(points.m) < graph.n_nodes
        for lam in map(float, lams):
            start = points.start_on(graph, lam, problem.penalty, TREE_TOL * self.tol) if alike else None
            found.append((lam, solve(problem.at(lam), self.tol, start=start)))
            if len(lams) == 1 or len(found[-1][1].clusters()) == wanted:
                return found[-1]
        return found[0]

    def _checked(self) -> Penalty:
        """The penalty, unless parameters contradict each other."""
        penalty = as_penalty(self.penalty)
        if not penalty.is_norm:
            raise ValueError('penalty must be "l2" or "l1": squared variation makes no two points equal')
        if self.n_clusters is not None and self.lam is not None:
            raise ValueError("give n_clusters or lam, not both")
        return penalty

    def _graph_of(self, X: Array, names: list[Hashable] | None) -> EmpiricalGraph:
        if self.graph is None:
            return neighbour_graph(X, self.n_neighbors, self.phi)
        graph = EmpiricalGraph.from_any(self.graph)
        if graph.n_nodes != len(X):
            raise ValueError(f"the graph has {graph.n_nodes} nodes, but X has {len(X)} rows")
        parts = int(graph.components.max()) + 1
        if parts > 1:
            raise ValueError(f"the graph falls into {parts} parts, which no λ joins; add edges, or leave graph out")
        ids = set(graph.names)
        names = list(range(len(X))) if names is None or ids != set(names) else names
        if ids == set(names):
            point = look_up(graph.names, numbering(names))
            return EmpiricalGraph.from_edges(point[graph.edges], graph.weights, n_nodes=len(X))
        if are_text(graph.names) and not hasattr(self.graph, "nodes") and not isinstance(self.graph, EmpiricalGraph):
            raise ValueError(
                f"the nodes of the graph are called {some_of(graph.names)}, and not after rows of X: "
                "use the numbers of the rows, give X as a frame whose index has these names, or the graph as "
                "ct.EmpiricalGraph.from_edges(…, ids=…) with the names in the order of the rows"
            )
        return graph


def _axes(X: Array, penalty: Penalty) -> Array:
    """Orthonormal axes (r, n) to solve on: those that span points with more columns than there are points.

    The ℓ2 norm is the same on any such axes, and all w_i lie where the points do; r² numbers are kept per point.
    """
    V, n = X.shape
    if n <= V or not isinstance(penalty, GroupTotalVariation):
        return np.eye(n)
    _, size, axes = np.linalg.svd(X, full_matrices=False)
    return axes[: max(int((size > V * np.finfo(float).eps * size[0]).sum()), 1)]


def _checked_size(X: Array) -> Array:
    """Points around their mean; an error where they are so near it, or so far away, that squares are no numbers."""
    furthest = float(np.abs(X).max(initial=0.0))
    if furthest > 0 and not SMALLEST <= furthest <= LARGEST:
        raise ValueError(
            f"the point furthest from the mean is {furthest:g} away from it in one column; scale X, so that this lies "
            f"between {SMALLEST:g} and {LARGEST:g}"
        )
    return X
