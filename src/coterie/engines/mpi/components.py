"""The components of a network that has labels somewhere, numbered alike at every rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.engines.mpi.clusters import PartClusters
from coterie.engines.mpi.part import Integers, Part, find
from coterie.problem.arrays import Array


@dataclass(frozen=True, eq=False)
class Components:
    """Components with a label.

    Attributes
    ----------
    of : array of shape (V,)
        The number of each node of the part, own or halo; −1 where no label reaches.
    weakest : array of shape (G,)
        The smallest weight of an edge of each.
    sizes : array of shape (G,)
        How many nodes each has.
    """

    of: Integers
    weakest: Array
    sizes: Array

    @classmethod
    def found(cls, part: Part) -> Components:
        """Pieces of this part join up with those of others."""
        graph, crew = part.problem.graph, part.crew
        label = graph.components[:, None]
        pieces = PartClusters(part, label, np.array([label.max() + 1]), part.single)
        name = pieces.name[pieces.piece[:, 0]]
        labelled = np.unique(np.concatenate(list(crew.in_turn(np.unique(name[part.problem.M])))))
        of = find(labelled, name)
        weakest, begins = np.full(len(labelled), np.inf), of[graph.edges[:, 0]]
        np.minimum.at(weakest, begins[begins >= 0], graph.weights[begins >= 0])
        own = of[: part.own]
        sizes = np.bincount(own[own >= 0], minlength=len(labelled)).astype(np.float64)
        return cls(of, crew.every(weakest).min(axis=0), crew.every(sizes).sum(axis=0))
