"""The arrays of a model in parts, one for each rank that fitted it: nodes with their names, and edges between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np

from coterie.problem.arrays import Array

PARTS = 5  # the first schema with parts
OF_NODES = ("w", "n_labelled", "node_errors")
OF_SOME = ("held_out_node_errors",)  # of nodes, too, where λ was chosen by folds


def name_arrays(names: Sequence[str]) -> dict[str, Array]:
    """Names of nodes as letters, and where each ends."""
    letters = [name.encode() for name in names]
    ends = np.cumsum([len(name) for name in letters], dtype=np.int64)
    return {"names": np.frombuffer(b"".join(letters), dtype=np.uint8), "name_ends": ends}


def join_parts(parts: Sequence[dict[str, Array]], text_ids: bool) -> tuple[list[Hashable], dict[str, Array]]:
    """The names of all nodes, sorted, and the arrays of the whole network.

    A part has the `numbers` of its nodes, in the order of `names` and of what it says of them, and edges as pairs of
    such numbers, with duals that run from the smaller number to the larger.
    """
    names = [name if text_ids else int(name) for part in parts for name in _names(part)]
    numbers = np.concatenate([part["numbers"] for part in parts])
    order = sorted(range(len(names)), key=names.__getitem__)  # numbers are those of names sorted as text
    place = np.empty(len(names), dtype=np.int64)
    place[numbers[order]] = np.arange(len(names))
    known = [name for name in (*OF_NODES, *OF_SOME) if name in parts[0]]
    arrays = {name: np.concatenate([part[name] for part in parts])[order] for name in known}
    ends = place[np.concatenate([part["edges"] for part in parts])]
    turned = ends[:, 0] > ends[:, 1]
    u = np.concatenate([part["u"] for part in parts])
    u[turned] *= -1
    ends = np.sort(ends, axis=1)
    by_ends = np.lexsort((ends[:, 1], ends[:, 0]))
    weights = np.concatenate([part["weights"] for part in parts])
    arrays |= {"edges": ends[by_ends], "u": u[by_ends], "weights": weights[by_ends]}
    arrays["undetermined"] = np.sort(place[np.concatenate([part["undetermined"] for part in parts])])
    return [names[k] for k in order], arrays


def _names(part: dict[str, Array]) -> list[str]:
    content = part["names"].tobytes()
    return [content[a:b].decode() for a, b in pairwise([0, *part["name_ends"].tolist()])]
