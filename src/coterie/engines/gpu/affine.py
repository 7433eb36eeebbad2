"""Primal updates as affine maps: PU_i(v) = q_i + P_i v, of quadratic losses, and of quadratic models of others."""

from __future__ import annotations

from typing import Any

import torch

from coterie.engines.equations import by_node
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.losses import DeviceQuadratics, HostLosses, Model

MOST = 1 << 27  # numbers in a batch of matrices


def affine_updates(losses: HostLosses, tau: Tensor, around: tuple[Model, Tensor] | None, dual: bool) -> Any:
    """P (|M|, n, n) and q (|M|, n) for steps τ; of models around given weights, if any.

    In dual steps, v is −Dᵀu, and the update argmin f + ⟨Dᵀu, ·⟩.
    """
    if around is None:
        assert isinstance(losses, DeviceQuadratics)
        return _of_quadratics(losses, tau, dual)
    model, centre = around
    P = _in_batches(lambda H, t: torch.linalg.inv(_identity(H) + t[:, None, None] * H), model.H, tau)
    return P, centre - by_node(P, centre + tau[:, None] * model.slope)


def _of_quadratics(losses: DeviceQuadratics, tau: Tensor, dual: bool) -> tuple[Tensor, Tensor]:
    """I − Vᵀ diag(τh / (1 + τh)) V and the rest of the centre; in dual steps H⁻¹ and the centre."""
    if dual:
        P = _in_batches(lambda V, h: (V.transpose(1, 2) / h[:, None, :]) @ V, losses.V, losses.h)
        return P, losses.centre
    share = tau[:, None] * losses.h
    share = share / (1 + share)
    seen = _in_batches(lambda V, part: (V.transpose(1, 2) * part[:, None, :]) @ V, losses.V, share)
    return _identity(seen) - seen, by_node(seen, losses.centre)


def _identity(like: Tensor) -> Tensor:
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def _in_batches(work: Any, A: Tensor, b: Tensor) -> Tensor:
    """Matrices (|M|, n, n), some nodes at a time: libraries fail on very many."""
    each = max(MOST // max(A.shape[2] ** 2, 1), 1)
    return torch.cat([work(A[k : k + each], b[k : k + each]) for k in range(0, max(len(A), 1), each)])
