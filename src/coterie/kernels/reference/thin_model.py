"""Quadratic models whose curvature is a diagonal and few rows, diag(h) + ZᵀZ, all nodes at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.reference.exact import quiet


def _thin_inverse(own, tau, h, Z):
    """D⁻¹ and Y with (diag(own + τh) + τZᵀZ)⁻¹ = D⁻¹ − YᵀY, of every node, and the largest trace of τZD⁻¹Zᵀ.

    LLᵀ = I + τ Z D⁻¹ Zᵀ comes from a QR factorisation: of the sum, rounding may leave nothing to be factorised.
    """
    keep = 1 / (own + tau[:, None] * h)
    half = np.sqrt(tau[:, None] * keep)
    A = (half[:, None, :] * Z).transpose(0, 2, 1)
    one = np.broadcast_to(np.eye(Z.shape[1]), (len(Z), Z.shape[1], Z.shape[1]))
    Lt: Any = np.linalg.qr(np.concatenate([one, A], axis=1), mode="r")
    Y = np.linalg.solve(Lt.transpose(0, 2, 1), (A * np.sqrt(keep)[:, :, None]).transpose(0, 2, 1))
    return keep, Y, float((A**2).sum(axis=(1, 2)).max(initial=0.0))


@quiet
def thin_share(tau, h, Z, Y, keep):
    """keep_i, Y_i ← D⁻¹ and Y of (I + τ(diag(h) + ZᵀZ))⁻¹ = D⁻¹ − YᵀY; return how stiff directions are, at most."""
    keep[:], Y[:], stiffest = _thin_inverse(1.0, tau, h, Z)
    return stiffest


@quiet
def thin_fall(h, Z, pull):
    """Return Σ ½⟨pull_i, (diag(h) + ZᵀZ)⁻¹ pull_i⟩, h > 0: by how much linear terms lower the minima of models."""
    keep, Y, _ = _thin_inverse(0.0, np.ones(len(Z)), h, Z)
    return 0.5 * float((keep * pull**2).sum() - (np.einsum("irk,ik->ir", Y, pull) ** 2).sum())


@quiet
def add_thin(h, Z, group, H):
    """H_g ← Σ diag(h) + Z_iᵀZ_i over the nodes of group g."""
    H[:] = 0.0
    np.add.at(H, group, Z.transpose(0, 2, 1) @ Z + np.diag(h))
