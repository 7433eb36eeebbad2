"""The tree of merges, as scikit-learn's AgglomerativeClustering has it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from coterie.estimators.merge_path import Integers, Stage
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array


class MergeTree:
    """Which clusters became one, and at which λ; leaves are 0 … V − 1, and the k-th merge makes cluster V + k.

    Attributes
    ----------
    children : list of pairs
    lams : list of float
        Ascending.
    """

    def __init__(self, graph: EmpiricalGraph, X: Array, path: Sequence[Stage]) -> None:
        """Note the merges from each stage of the path to the next; what is one stays one."""
        self.n_leaves, self.children, self.lams = len(X), list[tuple[int, int]](), list[float]()
        self._part_of = list(range(len(X)))  # the cluster that each became part of; itself: none yet
        self._merge(graph, X, path[0])
        for before, after in pairwise(path):
            self._merge(graph, before.w[before.to], after)

    def _merge(self, graph: EmpiricalGraph, w: Array, stage: Stage) -> None:
        """Let leaves that are one at a stage be one from there on; those that were nearest, by w, are noted first."""
        whole = np.array([self._whole(k) for k in range(self.n_leaves)])
        i, j = graph.edges[stage.to[graph.edges[:, 0]] == stage.to[graph.edges[:, 1]]].T
        apart = np.flatnonzero(whole[i] != whole[j])
        i, j = i[apart], j[apart]
        for e in np.argsort(np.linalg.norm(w[i] - w[j], axis=1), kind="stable"):
            a, b = self._whole(i[e]), self._whole(j[e])
            if a != b:
                self._part_of[a] = self._part_of[b] = len(self._part_of)
                self._part_of.append(len(self._part_of))
                self.children.append((min(a, b), max(a, b)))
                self.lams.append(stage.lam)

    def _whole(self, k: int) -> int:
        """The largest cluster so far that this one is part of."""
        part_of = self._part_of
        while part_of[k] != k:
            part_of[k] = part_of[part_of[k]]
            k = part_of[k]
        return int(k)

    def labels(self, n_clusters: int) -> Integers:
        """The clusters when so many are left, numbered in the order of their first leaves."""
        V = self.n_leaves
        owner = np.arange(V + len(self.children))
        for k, (a, b) in enumerate(self.children[: V - n_clusters]):
            owner[a] = owner[b] = V + k
        for k in reversed(range(len(owner))):
            owner[k] = owner[owner[k]]
        _, first, inverse = np.unique(owner[:V], return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[inverse]
