"""Rows of several classes: ψ = log Σ_k e^{z_k} − z_y of the scores z_k = ⟨x, w_k⟩, one weight vector for each class.

The weights of a node are one vector, those of class 0 first, then those of class 1, and so on: w.reshape(K, n). With
e_k = z_k − z_y, what class k has more than the row's own class y, ψ = log(1 + Σ_{k≠y} e^{e_k}) is not negative, and its
slopes are the chances p_k of the other classes. Its conjugate is minus the entropy of all chances.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.reference import rows as scalar_rows
from coterie.kernels.reference.blocks import blocks
from coterie.kernels.reference.cholesky import solve
from coterie.kernels.reference.exact import EPS, FAINT, quiet, two_product, two_sum
from coterie.kernels.reference.node_solvers import take_newton_steps
from coterie.kernels.reference.sums import node_of_rows, sum_columns_exactly, sum_rows_exactly

ROUNDING = 16 * EPS  # times K: what chances are made smaller by, so that no rounding makes their sum more than one

SURE = 1 + 1e-9  # for the rounding of sums of doubts
FAR = 50.0  # a way along which curvature can become anything


def as_classes(w: Any, n: Any) -> Any:
    """Weights (…, K n) as one vector for each class, (…, K, n)."""
    return w.reshape(*w.shape[:-1], w.shape[-1] // n, n)


@quiet
def excess(X: Any, y: Any, starts: Any, w: Any) -> Any:
    """e_k = ⟨x_r, w_k − w_y⟩ of every row and class (N, K), from twice the precision rounded to one float.

    And how far they may be off before that. Scores lose less than half of (n eps)² of the sizes that are added up, and
    their difference loses (log₂ n + 4) eps²/4 of these: twice ((n + 1) eps)² is more.
    """
    N, n = X.shape
    W = as_classes(w, n)[node_of_rows(starts)]
    K = W.shape[1]
    left = np.ascontiguousarray(np.broadcast_to(X[:, None, :], W.shape)).reshape(-1, n)
    right = np.ascontiguousarray(W).reshape(-1, n)
    reach = np.abs(left * right).sum(axis=1).reshape(N, K)
    hi, lo = (part.reshape(N, K) for part in sum_columns_exactly(*two_product(left, right)))
    own = np.s_[np.arange(N), y.astype(np.int64)]
    e, error = two_sum(hi, -hi[own][:, None])
    e = e + (error + (lo - lo[own][:, None]))
    e[own] = 0.0
    miss = 2 * ((n + 1) * EPS) ** 2 * (reach + reach[own][:, None]) + FAINT
    miss[own] = 0.0
    return e, miss


def losses(e: Any) -> Any:
    """log Σ_k e^{e_k} over the last axis, accurate where it is tiny: one e_k is zero."""
    top = e.argmax(axis=-1)[..., None]
    most = np.take_along_axis(e, top, axis=-1)
    others = np.exp(e - most)
    np.put_along_axis(others, top, 0.0, axis=-1)
    return most[..., 0] + np.log1p(others.sum(axis=-1))


def chances(e: Any) -> Any:
    """e^{e_k}/Σ e^{e_l} over the last axis."""
    p = np.exp(e - e.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


@quiet
def values(X: Any, y: Any, s: Any, starts: Any, ridge: Any, w: Any, out: Any) -> None:
    """out ← L_i(w_i), with scores in twice the precision."""
    held = ridge > 0  # weights that nothing holds can have squares that are no numbers
    out[:] = sums(starts, s * losses(excess(X, y, starts, w)[0])) + w[:, held] ** 2 @ ridge[held]


@quiet
def misses(X: Any, y: Any, starts: Any, w: Any, out: Any) -> None:
    """out ← how far any e_k of a row may be off before it is rounded to one float."""
    out[:] = excess(X, y, starts, w)[1].max(axis=1)


@quiet
def duals(X: Any, y: Any, s: Any, starts: Any, w: Any, a: Any) -> None:
    """a (N, K) ← the factor of each row times the chances of other classes than its own, a little less of each."""
    p = chances(excess(X, y, starts, w)[0]) * (1 - ROUNDING * a.shape[1])
    a[:] = np.where(others(y, a.shape[1]), s[:, None] * p, 0.0)


@quiet
def lower_bounds(X: Any, y: Any, s: Any, starts: Any, ridge: Any, w: Any, a: Any, b: Any, out: Any) -> None:
    """out ← what the duals a of rows (N, K) and b of the ridge prove of L_i at w_i, less all rounding.

    A row proves Σ_k a_k e_k + s (entropy of a/s).
    """
    (e, miss), held = excess(X, y, starts, w), ridge > 0
    terms = np.column_stack([a * e, s * entropies(a / s[:, None], y)])
    ridges = np.column_stack([b[:, held] * w[:, held], -b[:, held] * (b[:, held] / (4 * ridge[held]))])
    total = sums(starts, terms.sum(axis=1)) + ridges.sum(axis=1)
    size = sums(starts, np.abs(terms).sum(axis=1)) + np.abs(ridges).sum(axis=1)
    doubt = (terms.shape[1] + ridges.shape[1] + 8) * EPS * size + sums(starts, (a * miss).sum(axis=1)) + FAINT
    out[:] = total - doubt * SURE - 4 * EPS * np.abs(total)


@quiet
def forces(X: Any, y: Any, starts: Any, a: Any, b: Any, q: Any, low: Any, size: Any) -> None:
    """q_i + low_i ← Σ_r Σ_k a_rk x_r ⊗ (e_k − e_y) + b in twice the precision; size ← the sizes of what was added."""
    n, K = X.shape[1], a.shape[1]
    row, k = np.nonzero(others(y, K))
    signs = np.zeros((len(row), K))
    signs[np.arange(len(row)), k], signs[np.arange(len(row)), y[row].astype(np.int64)] = 1.0, -1.0
    x = (signs[:, :, None] * X[row][:, None, :]).reshape(-1, K * n)
    scalar_rows.forces(x, (K - 1) * starts, a[row, k], b, q, low, size)


def others(y: Any, K: Any) -> Any:
    """Which classes a row is not of, (N, K)."""
    return np.arange(K) != y[:, None]


@quiet
def sums(starts: Any, terms: Any) -> Any:
    """The sum over the rows of each node, rounded once."""
    total, low = sum_rows_exactly(starts, terms.copy(), np.zeros_like(terms))
    return total + low


@quiet
def entropies(p: Any, y: Any) -> Any:
    """The entropy of each row's chances, less all that rounding can add; −∞ where they are not chances.

    p (N, K) are those of other classes than y, rounded once; the chance of y is what they leave of one, exactly. As
    their sum is known here to η = (K + 4) EPS of it, and −p log p is no steeper than 2 + |log p| on η either side of a
    p ≥ 2η, that costs no more than 4η(2 + |log p|).
    """
    N, K = p.shape
    p = p.copy()
    p[np.arange(N), y.astype(np.int64)] = 0.0
    others = p.sum(axis=1)
    eta = (K + 4) * EPS * others + FAINT
    size, own = np.where(p > 0, np.abs(np.log(np.where(p > 0, p, 1.0))), 0.0), -np.log1p(-others)
    found = (p * size).sum(axis=1) + (1 - others) * own
    doubt = 8 * EPS * (p * (1 + size)).sum(axis=1) + (K + 8) * EPS * found + 4 * eta * (2 + own)
    return np.where((1 - others >= 2 * eta) & (p >= 0).all(axis=1), found - doubt, -np.inf)


class _Nodes(NamedTuple):
    """Nodes i with the function L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2; None: the anchor is z itself."""

    X: Any  # (V, m, n), zero where a node has fewer rows
    y: Any  # (V, m), whole numbers
    share: Any  # (V, m)
    p: Any  # (V, K n)
    anchor: Any  # (V, K n) or None
    diagonal: Any  # (V, K n), 2 ridge + curvature
    curvature: Any  # (V, 1)

    @property
    def self_concordant(self):
        """Along any line, with the spread of what scores change by."""
        return True

    def among(self, which):
        return self._replace(**{name: part[which] for name, part in self._asdict().items() if part is not None})

    def scores(self, z):
        return self.X @ as_classes(z, self.X.shape[2]).transpose(0, 2, 1)

    def excess(self, z):
        z = self.scores(z)
        return z - np.take_along_axis(z, self.y[:, :, None], axis=2)

    def way(self, step):
        """How much curvature can change along a step, as a logarithm."""
        return np.ptp(self.scores(step), axis=2).max(axis=1)

    def from_anchor(self, z):
        return np.zeros_like(z) if self.anchor is None else z - self.anchor

    def objective(self, z, d):
        """The function at z, where z is d from the anchor."""
        loss = (self.share * losses(self.excess(z))).sum(axis=1)
        ridge = 0.5 * (self.diagonal - self.curvature)
        return loss + (ridge * z * z - self.p * z + 0.5 * self.curvature * d * d).sum(axis=1)

    def gradient(self, z):
        """The gradient, the chances of each row, and the largest entries of the gradient and of what it is made of."""
        p = chances(self.excess(z))
        pull = self.share[:, :, None] * (p - np.eye(p.shape[2])[self.y])
        ridge, d = self.diagonal - self.curvature, self.from_anchor(z)
        g = ridge * z - self.p + self.curvature * d + _gathered(self.X, pull)
        size = ridge * np.abs(z) + np.abs(self.p) + self.curvature * np.abs(d)
        size += _gathered(np.abs(self.X), np.abs(pull))
        return g, p, np.abs(g).max(axis=1), size.max(axis=1)

    def newton_step(self, g, p):
        H = _curvature(self.X, self.share, p)
        np.einsum("ikk->ik", H)[...] += self.diagonal
        return solve(H, g)


def _gathered(X, pull):
    """Σ_r pull_rk x_r of every node and class, as one vector for each node."""
    return (pull.transpose(0, 2, 1) @ X).reshape(len(X), -1)


def _own_bends(p):
    """p_k (1 − p_k), also where 1 − p_k would be rounding."""
    return p * (p @ (1 - np.eye(p.shape[2])))


def _curvature(X, share, p):
    """Σ_r share_r (diag p − ppᵀ) ⊗ xxᵀ of every node."""
    V, _, n = X.shape
    K, own = p.shape[2], _own_bends(p)
    H = np.empty((V, K, n, K, n))
    for k in range(K):
        for j in range(k + 1):
            bend = share * (own[:, :, k] if k == j else -p[:, :, k] * p[:, :, j])
            H[:, k, :, j, :] = (X * bend[:, :, None]).transpose(0, 2, 1) @ X
            H[:, j, :, k, :] = H[:, k, :, j, :]
    return H.reshape(V, K * n, K * n)


def _each_block(X, y, share, starts):
    for nodes, rows, there in blocks(starts):
        yield nodes, X[rows] * there[:, :, None], y[rows].astype(np.int64), there * share[rows]


@quiet
def newton(
    X: Any,
    y: Any,
    share: Any,
    starts: Any,
    ridge: Any,
    p: Any,
    anchor: Any,
    curvature: Any,
    start: Any,
    accuracy: Any,
    max_steps: Any,
) -> Any:
    """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node, as `node_solvers.newton` does."""
    out = start.copy()
    for nodes, x, label, s in _each_block(X, y, share, starts):
        kappa = curvature[nodes, None]
        given = _Nodes(x, label, s, p[nodes], None if anchor is None else anchor[nodes], 2 * ridge + kappa, kappa)
        out[nodes] = take_newton_steps(given, out[nodes], accuracy, max_steps)
    return out


def _touch(x, label, s, ridge, w, before):
    """Slopes at w of nodes with these rows (V, m, n); c (V, m) and p (V, m, K) of c (diag p − ppᵀ), which is at least
    the curvature of a row as far as w is from `before`; and the largest spread of what its scores have moved by since.

    Along a line, |ψ‴| is at most ψ″ times the spread of what scores change by: curvature grows by no more than e to
    that. It is at most ½(I − 11ᵀ/K) (Böhning), which is taken where that is less, and everywhere without `before`.
    """
    here = _Nodes(x, label, s, None, None, None, None)
    p = chances(here.excess(w))
    K = p.shape[2]
    slope = 2 * ridge * w + _gathered(x, s[:, :, None] * (p - np.eye(K)[label]))
    way, longest = np.full(s.shape, FAR), 0.0
    if before is not None:
        way = np.ptp(here.scores(w - before), axis=2)
        longest = float(way.max(initial=0.0))
    factor = np.exp(np.minimum(way, FAR))
    most = (way >= FAR) | (factor * _own_bends(p).sum(axis=2) >= 0.5 * (K - 1))  # the traces of both
    return slope, s * np.where(most, 0.5 * K, factor), np.where(most[:, :, None], 1 / K, p), longest


@quiet
def model(X: Any, y: Any, share: Any, starts: Any, ridge: Any, w: Any, before: Any, slope: Any, H: Any) -> Any:
    """slope, H ← gradient and curvature at w_i of a quadratic that lies above L_i as far as w_i is from `before`, or
    everywhere without it. Return the largest spread of what the scores of a row have moved by since.
    """
    longest = 0.0
    for nodes, x, label, s in _each_block(X, y, share, starts):
        last = before[nodes] if len(before) else None
        slope[nodes], c, p, far = _touch(x, label, s, ridge, w[nodes], last)
        longest = max(longest, far)
        H[nodes] = _curvature(x, c, p) + 2 * ridge * np.eye(len(ridge))
    return longest


@quiet
def thin_model(X: Any, y: Any, share: Any, starts: Any, ridge: Any, w: Any, before: Any, slope: Any, Z: Any) -> Any:
    """The same with the curvature 2 diag(ridge) + ZᵀZ, Z_i of K − 1 rows for each of node i, and zeros after them.

    diag p − ppᵀ = BBᵀ with the K − 1 columns B_j of which B_kj = 0 for k < j, B_jj = √(p_j t_j/(p_j + t_j)) and
    B_kj = −B_jj p_k/t_j for k > j, t_j the sum of the p_k with k > j: nothing overflows, however small chances are.
    """
    longest = 0.0
    Z[:] = 0.0
    for nodes, x, label, s in _each_block(X, y, share, starts):
        last = before[nodes] if len(before) else None
        slope[nodes], c, p, far = _touch(x, label, s, ridge, w[nodes], last)
        longest, K = max(longest, far), p.shape[2]
        B = np.zeros((*p.shape, K - 1))
        for j in range(K - 1):
            tail = p[:, :, j + 1 :].sum(axis=2)
            some = np.where(tail > 0, tail, 1.0)
            B[:, :, j, j] = np.sqrt(c * p[:, :, j] * (tail / (p[:, :, j] + some)))
            B[:, :, j + 1 :, j] = -B[:, :, j, j, None] * (p[:, :, j + 1 :] / some[:, :, None])
        rows = np.einsum("imkj,ima->imjka", B, x).reshape(len(nodes), -1, len(ridge))
        Z[nodes, : rows.shape[1]] = rows
    return longest
