"""The equations of `coterie.engines.base`, one per line, for arrays of any library.

A subclass says how D, Dᵀ, the dual step and the losses' primal update are computed.
"""

from __future__ import annotations

from typing import Any

from coterie.engines.base import RELAXATION, Mode, Travel
from coterie.engines.models import Models
from coterie.kernels.interruption import check


class Equations:
    """z = (w, u), z₀ and Tz, in the order of the graph. Every other engine must agree with what is written here."""

    M: Any
    eigh: Any  # of a stack of symmetric matrices

    def begin(self, losses: Any, w: Any, u: Any) -> None:
        """Take a point, which is also the first anchor; `losses` are LocalLosses, or what stands in their place."""
        self.w, self.u = w, u
        self.w_hat, self.u_hat = w, u
        self.w0, self.u0, self.k = w, u, 0
        self.models = Models(losses)
        self.model: Any = None

    def differences(self, w: Any) -> Any:
        """Dw."""
        raise NotImplementedError

    def divergence(self, u: Any) -> Any:
        """Dᵀu."""
        raise NotImplementedError

    def dual_step(self, u: Any) -> Any:
        """The proximal map of σg*."""
        raise NotImplementedError

    def prox(self, v: Any, tau: Any) -> Any:
        """PU_i of the labelled nodes."""
        raise NotImplementedError

    def minimiser(self, s: Any) -> Any:
        """argmin f + ⟨s, ·⟩, for quadratic losses of full rank."""
        raise NotImplementedError

    def set_steps(self, tau: Any, sigma: Any) -> None:
        self.tau, self.sigma = tau[:, None], sigma[:, None]

    def advance(self, n_iter: int, mode: Mode) -> float:
        before, self.model = self.model, self.models.around(self.w_hat[self.M])
        if self.model is not None and self.model is not before and self.model.ground is None:
            self.spectrum = self.eigh(self.model.H)
        for last in reversed(range(n_iter)):
            self._apply_dual() if mode is Mode.DUAL else self._apply()
            if not last:
                residual = self._residual(mode)
            self._move(mode)
            check()
        return residual

    def restart(self) -> Travel:
        self.w, self.u = self.w_hat, self.u_hat
        primal = self._over_nodes((self.w - self.w0) ** 2 / self.tau) ** 0.5
        dual = self._over_edges((self.u - self.u0) ** 2 / self.sigma) ** 0.5
        self.w0, self.u0, self.k = self.w, self.u, 0
        return Travel(primal, dual)

    def _apply(self) -> None:
        """(ŵ, û) = T(w, u)."""
        v = self.w - self.tau * self.divergence(self.u)
        v[self.M] = self._primal_update(v[self.M], self.tau[self.M])
        self.w_hat = self._told(v)
        self.u_hat = self.dual_step(self.u + self.sigma * self.differences(2 * self.w_hat - self.w))

    def _primal_update(self, v: Any, tau: Any) -> Any:
        """PU_i, or that of the model: c + (I + τH)⁻¹(v − c − τ slope)."""
        centre = self.models.centre
        if self.model is None or centre is None:
            return self.prox(v, tau[:, 0])
        if self.model.ground is not None:
            return self.model.prox(centre, v, tau[:, 0], self.w_hat[self.M])
        h, Q = self.spectrum
        along = by_node(Q.swapaxes(1, 2), v - centre - tau * self.model.slope)
        return centre + by_node(Q, along / (1 + tau * h * (h > 0)))

    def _apply_dual(self) -> None:
        """ŵ = argmin f + ⟨Dᵀu, ·⟩, û = prox(u + σDŵ)."""
        v = self.divergence(self.u)
        v[self.M] = self.minimiser(v[self.M])
        self.w_hat = self._told(v)
        self.u_hat = self.dual_step(self.u + self.sigma * self.differences(self.w_hat))

    def _residual(self, mode: Mode) -> float:
        """r² = |dw|²/τ + |du|²/σ − 2⟨du, D dw⟩ for dz = Tz − z; for dual steps |du|²/σ alone."""
        dw, du = self.w_hat - self.w, self.u_hat - self.u
        r2 = self._over_edges(du**2 / self.sigma)
        if mode is not Mode.DUAL:
            r2 += self._over_nodes(dw**2 / self.tau) - 2 * self._over_edges(du * self.differences(dw))
        return max(r2, 0.0) ** 0.5

    def _told(self, w_hat: Any) -> Any:
        """ŵ, with what others have to tell of it, where nodes are shared out."""
        return w_hat

    def _over_nodes(self, terms: Any) -> float:
        return float(terms.sum())

    def _over_edges(self, terms: Any) -> float:
        return float(terms.sum())

    def _move(self, mode: Mode) -> None:
        if mode is Mode.RELAXED:
            self.w = self.w + RELAXATION * (self.w_hat - self.w)
            self.u = self.u + RELAXATION * (self.u_hat - self.u)
        elif mode is Mode.DUAL:
            self.u, self.u0 = self.u_hat + self.k / (self.k + 3) * (self.u_hat - self.u0), self.u_hat
            self.w = self.w_hat
        else:
            a = (self.k + 1) / (self.k + 2)
            self.w = a * (2 * self.w_hat - self.w) + (1 - a) * self.w0
            self.u = a * (2 * self.u_hat - self.u) + (1 - a) * self.u0
        self.k += 1


def by_node(matrices: Any, vectors: Any) -> Any:
    """Multiply each node's matrix (·, a, b) with its vector (·, b)."""
    return (matrices @ vectors[:, :, None])[:, :, 0]
