"""Inner solvers of primal updates and conjugates that have no closed form, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import class_rows, psi
from coterie.kernels.cholesky import LONG, dot, solve_in_place
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.few_rows import are_few, inner_products, step_by_rows
from coterie.kernels.interruption import WORK, time_is_up
from coterie.kernels.kinds import CLASSES
from coterie.kernels.psi import for_families
from coterie.kernels.vector import put


@jit
def keep_signs(room, other, V, h, centre, alpha, tau, v, start, z):
    """z ← argmin q_i(z) + Σ alpha|z| + ‖v − z‖²/(2τ_i) where it has the signs of `start`, none of them zero.

    Then alpha|z| is linear, and the primal update of q_i is all there is. Return the nodes where that is not so.
    """
    n = len(room)
    missed = np.empty(len(v), dtype=np.int64)
    count = 0
    for i in range(len(v)):
        x = room
        for k in range(n):
            x = put(x, k, v[i, k] - tau[i] * alpha[k] * np.sign(start[i, k]))
        t = other
        for k in range(n):
            t = put(t, k, x[k])
        for r in range(V.shape[1]):
            d = 0.0
            for k in range(n):
                d += V[i, r, k] * (x[k] - centre[i, k])
            d *= tau[i] * h[i, r] / (1 + tau[i] * h[i, r])
            for k in range(n):
                t = put(t, k, t[k] - d * V[i, r, k])
        agrees = True
        for k in range(n):
            agrees = agrees and (alpha[k] == 0 or t[k] * start[i, k] > 0)
        if agrees:
            for k in range(n):
                z[i, k] = t[k]
        else:
            missed[count] = i
            count += 1
    return missed[:count]


@inline_llvm
def _margin(n, X, r, z):
    """⟨x_r, z⟩; many terms are added in any order, several at a time."""
    if n > LONG:
        return dot(X[r], z)
    total = 0.0
    for k in range(n):
        total += X[r, k] * z[k]
    return total


@inline_llvm
def _objective(kind, c, X, y, share, first, last, ridge, p, anchor, curvature, z):
    """L + ridge − ⟨p, z⟩ + curvature ‖z − anchor‖²/2."""
    total = 0.0
    if kind == CLASSES:
        total = class_rows.objective(X, y, share, first, last, z)
    else:
        for r in range(first, last):
            e = psi.argument(kind, y[r], _margin(len(z), X, r, z), 0.0)
            total += share[r] * psi.value(kind, c, e, y[r])
    for k in range(len(z)):
        d = z[k] - anchor[k]
        total += ridge[k] * z[k] * z[k] - p[k] * z[k] + 0.5 * curvature * d * d
    return total


@inline_llvm
def _gradient(kind, c, room, X, y, share, first, last, ridge, p, anchor, curvature, z, g, size, bend):
    """g ← the gradient of that, bend ← the curvature of each row, or (`class_rows`) its chances.

    Return the largest entry of the gradient, and of the sum of what it is made of, in absolute value.
    """
    n = len(room)
    for k in range(n):
        g[k] = 2 * ridge[k] * z[k] - p[k] + curvature * (z[k] - anchor[k])
        size[k] = 2 * ridge[k] * abs(z[k]) + abs(p[k]) + curvature * abs(z[k] - anchor[k])
    if kind == CLASSES:
        class_rows.gradient(X, y, share, first, last, z, g, size, bend)
        first = last
    for r in range(first, last):
        e = psi.argument(kind, y[r], _margin(n, X, r, z), 0.0)
        steep, bent = psi.slope_and_bend(kind, c, e, y[r])
        pull = share[r] * psi.direction(kind, y[r]) * steep
        bend[r - first] = share[r] * bent
        for k in range(n):
            g[k] += pull * X[r, k]
        for k in range(n):
            size[k] += abs(pull * X[r, k])
    steepest, largest = 0.0, 0.0
    for k in range(n):
        steepest = max(steepest, abs(g[k]))
        largest = max(largest, size[k])
    return steepest, largest


@inline_llvm
def _hessian(kind, room, X, share, first, last, ridge, curvature, bend, H):
    """H ← the lower half of its Hessian."""
    n = len(room)
    for k in range(n):
        for q in range(k):
            H[k, q] = 0.0
        H[k, k] = 2 * ridge[k] + curvature
    if kind == CLASSES:
        class_rows.add_hessian(X, share, first, last, bend, H)
        return
    for r in range(first, last):
        for k in range(n):
            d = bend[r - first] * X[r, k]
            for q in range(k + 1):
                H[k, q] += d * X[r, q]


@inline_llvm
def _way(kind, X, first, last, step):
    """How far a step moves the margin of any row, or its margins with several classes apart."""
    if kind == CLASSES:
        return class_rows.way(X, first, last, step)
    longest = 0.0
    for r in range(first, last):
        way = 0.0
        for k in range(len(step)):
            way += X[r, k] * step[k]
        longest = max(longest, abs(way))
    return longest


@inline_llvm
def _classes(kind, columns, n):
    """How many classes a row tells apart."""
    return n // columns if kind == CLASSES else 2


@inline_llvm
def _products(n, rows, directions, few):
    """About how many a step takes."""
    margins = 20 * rows  # with their exponentials
    by_rows = directions * (directions * directions // 6 + 6 * n)
    return margins + (by_rows if few else n * n * (n // 6 + directions // 2 + 1))


@for_families
def newton(kind: int, c: float, *given: Any) -> Any:
    """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node by Newton steps, from `start`.

    Without an anchor, every step is anchored where it begins: curvature makes steps shorter, and moves no minimiser.
    Full steps as long as each halves the gradient; from the first that does not, steps are damped by line search.
    """
    return newton_of_kind(kind, c, *given)


def newton_of_kind(
    kind: int,
    c: float,
    room: Any,
    X: Any,
    y: Any,
    share: Any,
    starts: Any,
    ridge: Any,
    p: Any,
    anchor: Any,
    curvature: Any,
    start: Any,
    accuracy: float,
    max_steps: int,
) -> Any:
    """The same, with the number of a family."""
    out, kept = start.copy(), np.empty(len(ridge) + 2)
    given = X, y, share, starts, ridge, p, out if anchor is None else anchor, curvature
    node = step = 0
    while node < len(out) and not time_is_up():
        node, step = _newton(kind, c, room, *given, out, kept, node, step, accuracy, max_steps, WORK)
    return out


@jit
def _newton(
    kind,
    c,
    room,
    X,
    y,
    share,
    starts,
    ridge,
    p,
    anchor,
    curvature,
    out,
    kept,
    node,
    first_step,
    accuracy,
    max_steps,
    work,
):
    """Go on with this node and step; return the node and the step to go on with. `kept` is what a node left behind."""
    n, others = len(room), _classes(kind, X.shape[1], len(room)) - 1  # a row has a direction for each other class
    most, order, fewer = 0, 0, 0
    for i in range(len(out)):
        rows = starts[i + 1] - starts[i]
        few = are_few(others * rows, n)
        most, order = max(most, rows), max(order, others * rows if few else n)
        fewer = max(fewer, others * rows if few else 0)
    H, K = np.empty((order, order)), np.empty((fewer, fewer))
    Z, ones = np.empty((fewer if kind == CLASSES else 0, n)), np.ones(fewer)
    bend = np.empty(most * (others + 1 if kind == CLASSES else 1))
    g, size, trial, diagonal = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    pull, part, step = np.empty(fewer), np.empty(fewer), kept[2:]
    for i in range(node, len(out)):
        if work <= 0:
            return i, 0
        z, first, last = out[i], starts[i], starts[i + 1]
        directions = others * (last - first)
        few = are_few(directions, n)
        if few:
            for k in range(n):
                diagonal[k] = 2 * ridge[k] + curvature[i]
            if kind != CLASSES:
                inner_products(X, first, last, diagonal, trial, K)
                work -= n * directions * directions // 2
        before, damped = np.inf, False
        if first_step > 0:
            before, damped = kept[0], kept[1] > 0
        for s in range(first_step, max_steps):
            steepest, largest = _gradient(
                kind, c, room, X, y, share, first, last, ridge, p[i], anchor[i], curvature[i], z, g, size, bend
            )
            if steepest <= accuracy * largest:
                break
            if not damped and steepest > 0.5 * before:
                damped = True
                for k in range(n):
                    z[k] -= step[k]
                continue
            before = steepest
            if few and kind == CLASSES:
                class_rows.put_directions(X, share, first, last, bend, Z)
                inner_products(Z, 0, directions, diagonal, trial, K)
                step_by_rows(Z, 0, directions, diagonal, K, ones, g, step, H, pull, part)
            elif few:
                step_by_rows(X, first, last, diagonal, K, bend, g, step, H, pull, part)
            else:
                _hessian(kind, room, X, share, first, last, ridge, curvature[i], bend, H)
                solve_in_place(room, H, g, step)
            length = 1.0
            if damped:
                descent = 0.0
                for k in range(n):
                    descent += g[k] * step[k]
                now = _objective(kind, c, X, y, share, first, last, ridge, p[i], anchor[i], curvature[i], z)
                for _ in range(30):  # halve a step that does not descend
                    for k in range(n):
                        trial[k] = z[k] + length * step[k]
                    then = _objective(kind, c, X, y, share, first, last, ridge, p[i], anchor[i], curvature[i], trial)
                    if then <= now + 1e-4 * length * descent + 1e-15 * abs(now):
                        break
                    length *= 0.5
            for k in range(n):
                z[k] += length * step[k]
            if length == 1 and psi.is_even(kind) and steepest * _way(kind, X, first, last, step) <= accuracy * largest:
                break  # curvature has changed by no larger a part than that: what is left of the gradient is less
            work -= _products(n, last - first, directions, few)
            if work <= 0:
                kept[0], kept[1] = before, 1.0 if damped else 0.0
                return i, s + 1
        first_step = 0
    return len(out), 0
