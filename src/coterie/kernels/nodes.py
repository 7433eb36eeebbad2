"""Node passes: the primal half of an iteration.

``xs`` (V, 2, n) holds x = 2ŵ − w and s = Dᵀu of each node side by side. Each pass handles the nodes first ≤ i < last.
``place[i]`` is the row of node i in arrays of labelled nodes, or −1. All leave s = 0. With ``move``, w ← aŵ + bw + gw₀.
"""

from __future__ import annotations

from typing import Any

from coterie.kernels import any_n
from coterie.kernels.compiling import jit
from coterie.kernels.forms import knows_n
from coterie.kernels.vector import put


def kernel() -> Any:
    """Return the node pass: that which knows n where its room is a tuple, or the one for any n."""
    return node_pass if knows_n() else any_n.node_pass


@jit
def node_pass(
    room, other, first, last, tau, place, low_rank, V, share2, share3, centre, slope, w, w0, xs, a, b, g, move
):
    """ŵ = PU(w − τs) for quadratic losses, x = 2ŵ − w.

    PU_i(v) = v − Vᵀ diag(share) V (v − ŵ_i), share = τh/(1 + τh): row by row where V has few, else as one matrix.
    A model of a loss comes with its slope at its centre, which joins s, and with share3 = (I + τH)⁻¹: then PU_i(v) is
    centre + share3 (v − centre), in which short steps are not lost beside long ones.
    """
    n = len(room)
    for i in range(first, last):
        v = room
        for k in range(n):
            v = put(v, k, w[i, k] - tau[i] * xs[i, 1, k])
        row = place[i]
        t = other
        for k in range(n):
            t = put(t, k, v[k])
        if row >= 0 and len(slope) > 0:
            for k in range(n):
                t = put(t, k, centre[row, k])
            for r in range(n):
                d = v[r] - tau[i] * slope[row, r] - centre[row, r]
                for k in range(n):
                    t = put(t, k, t[k] + d * share3[row, r, k])
        elif row >= 0:
            if low_rank:
                for r in range(V.shape[1]):
                    d = 0.0
                    for k in range(n):
                        d += V[row, r, k] * (v[k] - centre[row, k])
                    d *= share2[row, r]
                    for k in range(n):
                        t = put(t, k, t[k] - d * V[row, r, k])
            else:
                for r in range(n):
                    d = v[r] - centre[row, r]
                    for k in range(n):
                        t = put(t, k, t[k] - d * share3[row, r, k])
        for k in range(n):
            v = put(v, k, w[i, k])
        for k in range(n):
            xs[i, 0, k] = 2 * t[k] - v[k]
        for k in range(n):
            xs[i, 1, k] = 0.0
        if move:
            for k in range(n):
                t = put(t, k, a * t[k] + b * v[k])
            if g != 0:
                for k in range(n):
                    t = put(t, k, t[k] + g * w0[i, k])
            for k in range(n):
                w[i, k] = t[k]


@jit
def single_node_pass(room, columns, first, last, tau, place, share3, centre, w, w0, xs, a, b, g, move):
    """The same in single precision, share3 as one matrix, for vectors with more zeros than there are columns."""
    n = len(room)
    for i in range(first, last):
        v = room
        for k in range(n):
            v = put(v, k, w[i, k] - tau[i] * xs[i, 1, k])
        row, t = place[i], v
        if row >= 0:
            for r in range(len(columns)):
                d = v[r] - centre[row, r]
                for k in range(n):
                    t = put(t, k, t[k] - d * share3[row, r, k])
        for k in range(n):
            v = put(v, k, w[i, k])
        for k in range(n):
            xs[i, 0, k] = t[k] + t[k] - v[k]
        for k in range(n):
            xs[i, 1, k] = room[0]
        if move:
            for k in range(n):
                t = put(t, k, a * t[k] + b * v[k])
            if g != 0:
                for k in range(n):
                    t = put(t, k, t[k] + g * w0[i, k])
            for k in range(n):
                w[i, k] = t[k]


@jit
def dual_node_pass(room, first, last, inverse, centre, xs):
    """x = ŵ_i − H_i⁻¹ s_i, the minimiser of f + ⟨s, ·⟩, where every node is labelled; s ← 0."""
    n = len(room)
    for i in range(first, last):
        t = room
        for k in range(n):
            t = put(t, k, centre[i, k])
        for r in range(n):
            s = xs[i, 1, r]
            for k in range(n):
                t = put(t, k, t[k] - s * inverse[i, r, k])
        for k in range(n):
            xs[i, 0, k] = t[k]
        for k in range(n):
            xs[i, 1, k] = 0.0


@jit
def node_gather(first, last, tau, w, xs, v):
    """v = w − τs, for losses whose primal update is computed elsewhere."""
    for i in range(first, last):
        for k in range(w.shape[1]):
            v[i, k] = w[i, k] - tau[i] * xs[i, 1, k]


@jit
def node_finish(first, last, w_hat, w, w0, xs, a, b, g, move):
    """The second half of a node pass, from a given ŵ."""
    for i in range(first, last):
        for k in range(w.shape[1]):
            xs[i, 0, k] = 2 * w_hat[i, k] - w[i, k]
            xs[i, 1, k] = 0.0
            if move:
                w[i, k] = a * w_hat[i, k] + b * w[i, k] + g * w0[i, k]


@jit
def gather_copies(visited, copy, xs):
    """Add the sums of nodes that another thread has visited, in its copy of xs."""
    for i in visited:
        for k in range(xs.shape[2]):
            xs[i, 1, k] += copy[i, 1, k]
        for k in range(xs.shape[2]):
            copy[i, 1, k] = 0.0


@jit
def spread_copies(visited, copy, xs):
    """Give another thread the x of nodes that it will visit."""
    for i in visited:
        for k in range(xs.shape[2]):
            copy[i, 0, k] = xs[i, 0, k]


@jit
def full_share(room, tau, h, V, share):
    """K_i = V_iᵀ diag(τ_i h_i / (1 + τ_i h_i)) V_i for each labelled node."""
    n = len(room)
    for row in range(len(V)):
        for p in range(n):
            t = room
            for q in range(n):
                t = put(t, q, 0.0)
            for r in range(V.shape[1]):
                d = tau[row] * h[row, r] / (1 + tau[row] * h[row, r]) * V[row, r, p]
                for q in range(n):
                    t = put(t, q, t[q] + d * V[row, r, q])
            for q in range(n):
                share[row, p, q] = t[q]


@jit
def node_probe(first, last, tau, w_hat, w, w0, xs, a, b, g, move):
    """ŵ from x; w moves. Return Σ|ŵ − w|²/τ and Σ|ŵ − w₀|²/τ."""
    moved, travelled = 0.0, 0.0
    for i in range(first, last):
        now, since = 0.0, 0.0
        for k in range(w.shape[1]):
            hat = 0.5 * (xs[i, 0, k] + w[i, k])
            now += (hat - w[i, k]) ** 2
            since += (hat - w0[i, k]) ** 2
            w_hat[i, k] = hat
            if move:
                w[i, k] = a * hat + b * w[i, k] + g * w0[i, k]
        moved += now / tau[i]
        travelled += since / tau[i]
    return moved, travelled
