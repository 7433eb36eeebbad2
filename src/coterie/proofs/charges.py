"""Sums of charges, and what sets that hold a minimiser make of them, with what rounding may have added or taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.problem.losses.base import by_node
from coterie.proofs.ellipsoids import WIDER, Ellipsoids
from coterie.proofs.rest import Rest


def beyond(level: float, floor: float, terms: float) -> float:
    """What is left of `level` above a floor that is a sum of so many terms, at most."""
    return max(level - floor, 0.0) * WIDER + (terms + 16) * EPS * level


def ends(centre: Array, width: Array, caps: Array) -> tuple[Array, Array]:
    """centre ± width, rounded outwards, where caps do not say more."""
    low, high = np.nextafter(centre - width, -np.inf), np.nextafter(centre + width, np.inf)
    return np.maximum(low, -caps), np.minimum(high, caps)


def total(charges: Array) -> float:
    """Their sum, less what rounding may have added."""
    return float(charges.sum()) - 32 * EPS * float(np.abs(charges).sum())


def around(sets: Ellipsoids, group: NDArray[np.int64], rest: Rest, radius: Array, R: Array, caps: Array) -> Array:
    """A lower bound on Σ ⟨ρ_i, w*_i − w_i⟩ over the nodes of each group, −∞ where the group has no ellipsoid.

    Σ_i ⟨ρ_i, w*_i − w_i⟩ = Σ_i ⟨ρ_i, v₀ − w_i⟩ + ⟨Σ_i ρ_i, v − v₀⟩ + Σ_i ⟨ρ_i, w*_i − v⟩.
    """
    n = sets.v0.shape[1]
    first, lost, total, slack, size = rest.gathered(group, sets.v0)
    turned, C = by_node(sets.C.transpose(0, 2, 1), total), np.abs(sets.C).transpose(0, 2, 1)
    unsure = by_node(C, slack + (n + 1) * EPS * np.abs(total))
    with np.errstate(invalid="ignore", over="ignore"):
        along = np.linalg.norm(np.abs(turned) + unsure, axis=1) * radius
        apart = np.where(R > 0, (size.sum(axis=1) if sets.distance is None else size @ sets.distance) * R, 0.0)
        beyond = np.where(sets.capped, size * caps, 0.0).sum(axis=1)
        charge = first - (lost + along + apart + beyond) * WIDER
    return np.where(np.isfinite(radius) & ~np.isnan(charge), charge, -np.inf)
