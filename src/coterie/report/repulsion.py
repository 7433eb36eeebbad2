"""How points of a drawing push each other apart."""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import jit

CLOSEST = 1e-6  # squared distance; nearer points push no harder


@jit
def repulsion(x, side, out):
    """out_i ← Σ_j (x_i − x_j)/|x_i − x_j|², with the points of a distant cell of a side × side grid as one.

    Exact inside a cell and from its eight neighbours; with side ≤ 2 exact everywhere.
    """
    V = len(x)
    low = np.array([x[:, 0].min(), x[:, 1].min()])
    step = max(x[:, 0].max() - low[0], x[:, 1].max() - low[1]) / side * (1 + 1e-9) + 1e-300
    cell = np.empty((V, 2), dtype=np.int64)
    starts = np.zeros(side * side + 1, dtype=np.int64)
    centre = np.zeros((side * side, 2))
    for i in range(V):
        for k in range(2):
            cell[i, k] = min(int((x[i, k] - low[k]) / step), side - 1)
        c = cell[i, 0] * side + cell[i, 1]
        starts[c + 1] += 1
        centre[c, 0] += x[i, 0]
        centre[c, 1] += x[i, 1]
    for c in range(side * side):
        if starts[c + 1] > 0:
            centre[c] /= starts[c + 1]
        starts[c + 1] += starts[c]
    members, filled = np.empty(V, dtype=np.int64), starts[:-1].copy()
    for i in range(V):
        c = cell[i, 0] * side + cell[i, 1]
        members[filled[c]] = i
        filled[c] += 1
    for i in range(V):
        a = b = 0.0
        for c in range(side * side):
            count = starts[c + 1] - starts[c]
            if count == 0:
                continue
            if abs(c // side - cell[i, 0]) <= 1 and abs(c % side - cell[i, 1]) <= 1:
                for q in range(starts[c], starts[c + 1]):
                    dx, dy = x[i, 0] - x[members[q], 0], x[i, 1] - x[members[q], 1]
                    push = 1 / max(dx * dx + dy * dy, CLOSEST)
                    a += push * dx
                    b += push * dy
            else:
                dx, dy = x[i, 0] - centre[c, 0], x[i, 1] - centre[c, 1]
                push = count / max(dx * dx + dy * dy, CLOSEST)
                a += push * dx
                b += push * dy
        out[i, 0], out[i, 1] = a, b
