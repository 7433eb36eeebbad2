"""Digests of what a run depends on: equal digests, equal problem."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from coterie.problem import Problem

SAID = 8  # hexadecimal digits of a site's digest that leave it: enough to notice a change, too few to be searched for


def digest_of(facts: object, *arrays: ArrayLike) -> bytes:
    """Return SHA-256 of whatever `repr` says of the facts, and of the shapes and bytes of arrays."""
    digest = hashlib.sha256(repr(facts).encode())
    for array in arrays:
        digest.update(repr(np.shape(array)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def data_digest(nodes: Sequence[str], problem: Problem) -> str:
    """Return a short digest of all that a site has: the names of its nodes, its rows, labels and inner edges."""
    return digest_of(list(nodes), *data_arrays(problem)).hex()[:SAID]


def data_arrays(problem: Problem) -> tuple[ArrayLike, ...]:
    """Rows, labels, what is known of these beforehand, and edges."""
    data, graph = problem.data, problem.graph
    known = () if data.offset is None else (data.offset,)
    return (data.X, data.y, data.nodes, data.weights, *known, graph.edges, graph.weights)
