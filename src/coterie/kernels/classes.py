"""Rows of several classes, node by node: values, duals and what these prove, with every rounding error accounted for.

The formulas, and why they are bounds, are those of `reference.classes`; see there for what e_k and chances are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import class_rows
from coterie.kernels.exact import EPS, FAINT, add, add_product, part, strict, two_sum
from coterie.kernels.kinds import CLASSES
from coterie.kernels.node_solvers import newton_of_kind
from coterie.kernels.reference.classes import ROUNDING, SURE

model, thin_model = class_rows.model, class_rows.thin_model


def newton(X: Any, y: Any, share: Any, starts: Any, ridge: Any, *aim: Any) -> Any:
    """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node, as `node_solvers.newton` does."""
    return newton_of_kind(CLASSES, 0.0, np.empty(len(ridge)), X, y, share, starts, ridge, *aim)


@part
def _excess(X, r, own, w, low, e, miss):
    """e_k ← ⟨x_r, w_k − w_own⟩ of every class, from twice the precision; miss_k ← how far that may be off before.

    Sums of products lose less than half of ((n + 1) eps)² of the sizes that are added up, as in `exact`.
    """
    n, K = X.shape[1], len(e)
    for k in range(K):
        hi, lo, reach = 0.0, 0.0, 0.0
        for j in range(n):
            hi, lo = add_product(hi, lo, X[r, j], w[k * n + j])
            reach += abs(X[r, j] * w[k * n + j])
        e[k], low[k], miss[k] = hi, lo, reach
    hi, lo, reach = e[own], low[own], miss[own]
    for k in range(K):
        d, error = two_sum(e[k], -hi)
        e[k] = d + (error + (low[k] - lo))
        miss[k] = 2 * ((n + 1) * EPS) ** 2 * (miss[k] + reach) + FAINT
    e[own], miss[own] = 0.0, 0.0


@part
def _loss(e):
    """log Σ_k e^{e_k}, accurate where it is tiny: one e_k is zero."""
    top, others = e.argmax(), 0.0
    for k in range(len(e)):
        if k != top:
            others += np.exp(e[k] - e[top])
    return e[top] + np.log1p(others)


@strict
def values(X, y, s, starts, ridge, w, out):
    """out ← L_i(w_i), with scores in twice the precision."""
    K = len(ridge) // X.shape[1]
    e, low, miss = np.empty(K), np.empty(K), np.empty(K)
    for i in range(len(out)):
        total, rest = 0.0, 0.0
        for r in range(starts[i], starts[i + 1]):
            _excess(X, r, int(y[r]), w[i], low, e, miss)
            total, rest = add(total, rest, s[r] * _loss(e))
        for k in range(len(ridge)):
            if ridge[k] > 0:
                total, rest = add(total, rest, ridge[k] * w[i, k] * w[i, k])
        out[i] = total + rest


@strict
def misses(X, y, starts, w, out):
    """out ← how far any e_k of a row may be off before it is rounded to one float."""
    K = w.shape[1] // X.shape[1]
    e, low, miss = np.empty(K), np.empty(K), np.empty(K)
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            _excess(X, r, int(y[r]), w[i], low, e, miss)
            out[r] = miss.max()


@strict
def duals(X, y, s, starts, w, a):
    """a (N, K) ← the factor of each row times the chances of other classes than its own, a little less of each."""
    K = a.shape[1]
    e, low, miss = np.empty(K), np.empty(K), np.empty(K)
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            own = int(y[r])
            _excess(X, r, own, w[i], low, e, miss)
            most, total = e.max(), 0.0
            for k in range(K):
                e[k] = np.exp(e[k] - most)
                total += e[k]
            for k in range(K):
                a[r, k] = 0.0 if k == own else s[r] * (e[k] / total) * (1 - ROUNDING * K)


@part
def _entropy(a, s, own):
    """The entropy of the chances a_k/s of other classes and of what they leave of one, less what rounding can add."""
    K, others, found, doubt, fair = len(a), 0.0, 0.0, 0.0, True
    for k in range(K):
        if k != own:
            p = a[k] / s
            fair = fair and p >= 0
            others += p
            if p > 0:
                size = abs(np.log(p))
                found += p * size
                doubt += p * (1 + size)
    eta = (K + 4) * EPS * others + FAINT
    left = -np.log1p(-others)
    found += (1 - others) * left
    doubt = 8 * EPS * doubt + (K + 8) * EPS * found + 4 * eta * (2 + left)
    return found - doubt if fair and 1 - others >= 2 * eta else -np.inf


@strict
def lower_bounds(X, y, s, starts, ridge, w, a, b, out):
    """out ← what the duals a of rows (N, K) and b of the ridge prove of L_i at w_i, less all rounding.

    A row proves Σ_k a_k e_k + s (entropy of a/s).
    """
    K = a.shape[1]
    e, low, miss = np.empty(K), np.empty(K), np.empty(K)
    for i in range(len(out)):
        total, rest, doubt = 0.0, 0.0, FAINT
        for r in range(starts[i], starts[i + 1]):
            own = int(y[r])
            _excess(X, r, own, w[i], low, e, miss)
            term = s[r] * _entropy(a[r], s[r], own)
            total, rest = add(total, rest, term)
            doubt += 4 * EPS * abs(term)
            for k in range(K):
                if k != own:
                    term = a[r, k] * e[k]
                    total, rest = add(total, rest, term)
                    doubt += a[r, k] * miss[k] + 4 * EPS * abs(term)
        for k in range(len(ridge)):
            if ridge[k] > 0:
                first, second = b[i, k] * w[i, k], -b[i, k] * (b[i, k] / (4 * ridge[k]))
                doubt += 4 * EPS * (abs(first) + abs(second))
                total, rest = add(total, rest, first)
                total, rest = add(total, rest, second)
        out[i] = (total + rest) - doubt * SURE - 4 * EPS * abs(total)


@strict
def forces(X, y, starts, a, b, q, low, size):
    """q_i + low_i ← Σ_r Σ_k a_rk x_r ⊗ (e_k − e_y) + b in twice the precision; size ← the sizes of what was added."""
    n, K = X.shape[1], a.shape[1]
    for i in range(len(starts) - 1):
        for k in range(K * n):
            q[i, k], low[i, k], size[i, k] = b[i, k], 0.0, abs(b[i, k])
        for r in range(starts[i], starts[i + 1]):
            own = int(y[r])
            for k in range(K):
                if k == own:
                    continue
                for j in range(n):
                    if X[r, j] == 0:
                        continue
                    to, back = k * n + j, own * n + j
                    q[i, to], low[i, to] = add_product(q[i, to], low[i, to], a[r, k], X[r, j])
                    q[i, back], low[i, back] = add_product(q[i, back], low[i, back], -a[r, k], X[r, j])
                    reach = abs(a[r, k] * X[r, j]) + FAINT
                    size[i, to] += reach
                    size[i, back] += reach
