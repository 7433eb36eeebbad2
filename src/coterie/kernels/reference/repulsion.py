"""How points of a drawing push each other apart."""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.ends import Array, by_group

CLOSEST = 1e-6  # squared distance; nearer points push no harder


def repulsion(x: Array, side: int, out: Array) -> None:
    """out_i ← Σ_j (x_i − x_j)/|x_i − x_j|², with the points of a distant cell of a side × side grid as one.

    Exact inside a cell and from its eight neighbours; with side ≤ 2 exact everywhere.
    """
    low = x.min(axis=0)
    step = (x.max(axis=0) - low).max() / side * (1 + 1e-9) + 1e-300
    cell = np.minimum(((x - low) / step).astype(np.int64), side - 1)
    number = cell[:, 0] * side + cell[:, 1]
    used, number, count = np.unique(number, return_inverse=True, return_counts=True)
    centre = by_group(number, x, len(used)) / count[:, None]
    places = np.stack([used // side, used % side], axis=1)
    near = (np.abs(cell[:, None] - places) <= 1).all(axis=2)  # (V, cells)
    out[:] = _pushed(x, x, near[:, number]) + _pushed(x, centre, ~near * count)


def _pushed(x: Array, others: Array, weight: Array) -> Array:
    """Σ_j weight_ij (x_i − others_j)/|x_i − others_j|²."""
    dx, dy = (x[:, k, None] - others[None, :, k] for k in (0, 1))
    push = weight / np.maximum(dx * dx + dy * dy, CLOSEST)
    return np.stack([(push * dx).sum(axis=1), (push * dy).sum(axis=1)], axis=1)
