"""Nodes in blocks of similar numbers of rows, so that a block is one array (nodes, rows, columns)."""

from __future__ import annotations

import numpy as np


def blocks(starts):
    """Blocks of nodes whose numbers of rows lie between the same powers of two.

    Each is (nodes, rows, there): the rows of every node, and which of them are there; others are filled up with row 0.
    """
    m = np.diff(starts)
    level = np.ceil(np.log2(np.maximum(m, 1)))
    for each in np.unique(level):
        nodes = np.flatnonzero(level == each)
        place = np.arange(m[nodes].max())
        there = place < m[nodes, None]
        yield nodes, np.where(there, starts[nodes, None] + place, 0), there


def by_node(A, x):
    """A_i x_i of every node."""
    return np.einsum("iab,ib->ia", A, x)
