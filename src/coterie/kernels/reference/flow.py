"""Edges in objective and certificate: Dᵀu, g(Dw), and the corrections of dual repair.

`kind` is the number of a known penalty, or another penalty itself, which knows its value and its domain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import L1, L2, SQUARED
from coterie.kernels.reference.ends import Array, Integers, at_ends, by_group, exactly_by_group, total
from coterie.kernels.reference.exact import EPS, two_sum

KNOWN = (L1, L2, SQUARED)
LEAST_WEIGHT = 0.1  # of an edge without slack, against 1 for an edge with all of it
PUSHED_WEIGHT = 0.03  # … when the last correction pushed it against its bound
PUSHED = -1.0  # marks such edges in S


def differences(ends: Integers, w: Array) -> Array:
    """Dw."""
    return w[ends[:, 0]] - w[ends[:, 1]]


def _lengths(u: Array) -> Array:
    return np.sqrt((u * u).sum(axis=1))


def divergence(ends: Integers, u: Array, out: Array) -> None:
    """out ← Dᵀu."""
    out[:] = at_ends(ends, u, len(out))


def exact_divergence(ends: Integers, u: Array, hi: Array, lo: Array, rounding_bound: Array) -> None:
    """hi + lo ← Dᵀu in twice the precision; rounding_bound ← how far that may be from the truth."""
    group, flows = ends.T.ravel(), np.concatenate([u, -u])
    hi[:], lo[:] = exactly_by_group(group, flows, len(hi))
    count = np.bincount(group, minlength=len(hi))[:, None]
    rounding_bound[:] = by_group(group, np.abs(flows), len(hi)) * ((count + 2) * EPS) ** 2


def add_exactly(s: Array, hi: Array, lo: Array, rounding_bound: Array) -> None:
    """hi + lo ← hi + lo + s, and what rounding of lo can do is added to rounding_bound."""
    hi[:], error = two_sum(hi, s)
    lo += error
    rounding_bound += 16 * EPS * EPS * np.abs(s)


def across(ends: Integers, u: Array, w: Array) -> float:
    """⟨u, Dw⟩, less what rounding may have added."""
    terms = u * differences(ends, w)
    return total(terms) - 4 * EPS * float(np.abs(terms).sum())


def variation(kind: Any, ends: Integers, c: Array, w: Array) -> float:
    """g(Dw) = Σ c_e φ(w_i − w_j)."""
    d = differences(ends, w)
    if kind not in KNOWN:
        return float(kind.value(d, c))
    part = (np.abs(d) if kind == L1 else d * d).sum(axis=1)
    return total(c * (np.sqrt(part) if kind == L2 else part))


def slack_weights(kind: Any, c: Array, u: Array, S: Array) -> None:
    """S ← the share that each edge and coordinate takes of a correction: its slack, but never nothing.

    S comes with the marks of the last correction.
    """
    c = c[:, None]
    if kind == L1:
        S[:] = np.maximum(c - np.abs(u), _least(S) * c)
    elif kind == L2:
        S[:] = np.maximum(c - _lengths(u)[:, None], _least(S[:, :1]) * c)
    elif kind == SQUARED:
        S[:] = c
    else:
        S[:] = kind.room(u, c[:, 0])


def _least(marks: Array) -> Array:
    return np.where(marks == PUSHED, PUSHED_WEIGHT, LEAST_WEIGHT)


def into_domain(kind: Any, c: Array, u: Array) -> None:
    """u ← the nearest point where g* is finite."""
    if kind == L1:
        np.clip(u, -c[:, None], c[:, None], out=u)
    elif kind == L2:
        length = _lengths(u)
        outside = length > c
        u[outside] *= (c[outside] / length[outside])[:, None]
    elif kind == SQUARED:
        u[c == 0] = 0.0
    else:
        u[:] = kind.into_domain(u, c)


def saturate_cuts(ends: Integers, c: Array, w: Array, u: Array, fixed: Any) -> None:
    """Where w differs across an edge, u ← ±c: total variation is tight there. fixed ← where that is."""
    d = differences(ends, w)
    fixed[:] = d != 0
    np.copyto(u, c[:, None] * np.sign(d), where=fixed)


def stretch(
    vector_buffer: Any, kind: Any, far: Any, ends: Integers, c: Array, S: Array, potential: Array, u: Array
) -> float:
    """By how much the domain of g* would have to be stretched to hold u − SDφ."""
    if kind == SQUARED or not len(u):
        return 1.0
    t = u - S * differences(ends, potential)
    if kind not in KNOWN:
        return max(1.0, float(kind.strength_needed(t, c)))
    size = np.abs(t).max(axis=1) if kind == L1 else _lengths(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(size > c, size / c, 1.0)
    return float(ratio.max())


def correct(
    vector_buffer: Any,
    kind: Any,
    far: Any,
    ends: Integers,
    c: Array,
    S: Array,
    potential: Array,
    factor: float,
    u: Array,
) -> None:
    """u ← (u − SDφ) / factor, back into the domain of g*; edges that were pushed out of it are marked in S."""
    u -= S * differences(ends, potential)
    u /= factor
    if kind == L1:
        S[:] = np.where(np.abs(u) > c[:, None], PUSHED, 0.0)
    elif kind == L2:
        S[:, 0] = np.where(_lengths(u) > c, PUSHED, 0.0)
    into_domain(kind, c, u)
