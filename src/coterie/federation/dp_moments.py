"""Differential privacy for single rows: clipped moments with noise, released once.

Squared error and the Lasso see the rows of a node only through Σ z zᵀ, z = (x, y). So a site clips its rows,

    ‖x‖ ≤ x_clip, |y| ≤ y_clip,        z = (x/x_clip, y/y_clip), so that ‖z‖² ≤ 2,

and releases Σ z zᵀ + E of each labelled node, E symmetric and Gaussian. Another row in the place of one moves
Σ z zᵀ of one node by ‖zzᵀ − z′z′ᵀ‖ ≤ √2·2 in the Frobenius norm, and nothing else: one Gaussian mechanism. Everything
after that is computed from what was released, however often it is asked: λ, clusters and the certificate cost no more.

What is released is written as rows again. The positive part of the noisy matrix is LᵀL, and the n + 1 rows of L have
exactly these moments; so sites, server and certificate are those of any other problem, which is called the noisy one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coterie.federation.dp_mechanism import accounting
from coterie.io.files import MissingExtraError
from coterie.problem import LocalDatasets
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows

SENSITIVITY = 2 * np.sqrt(2)  # of Σ z zᵀ, ‖z‖² ≤ 2, for one row in the place of another
PROTECTS = "any one labelled row of any node; not how many rows a node has, nor which nodes are labelled, nor edges"
NOISY = "the certificate is that of the noisy problem: its rows are the moments that the sites released"

Gaussian = Callable[[float, tuple[int, ...]], Array]  # standard deviation and shape → noise


@dataclass(frozen=True)
class RowPrivacy:
    """How private single rows are.

    Attributes
    ----------
    epsilon, delta : float
        Of everything that a site ever says, for rows of which one is replaced by another.
    x_clip, y_clip : float
        The Euclidean norm of features, and the size of labels, that rows are clipped to. They are part of what is
        promised: choosing them by looking at the rows spends privacy that is not accounted for.
    """

    epsilon: float
    delta: float = 1e-5
    x_clip: float = 1.0
    y_clip: float = 1.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "x_clip", "y_clip"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"row-privacy-{name.replace('_', '-')} must be positive, got {value}")
        if not 0 < self.delta < 1:
            raise ValueError(f"row-privacy-delta must lie between 0 and 1, got {self.delta}")

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> RowPrivacy | None:
        """Read the configuration of a run; None, where row-privacy-epsilon is 0: no such privacy is asked for."""
        epsilon = float(config.get("row-privacy-epsilon", 0.0))
        if epsilon == 0:
            return None
        return cls(epsilon, *(float(config[f"row-privacy-{name}"]) for name in ("delta", "x-clip", "y-clip")))

    @cached_property
    def noise(self) -> float:
        """The noise multiplier of one Gaussian mechanism that is (ε, δ)-private, by bisection in the accountant."""
        low, high = 1e-3, 1e6
        while high / low > 1 + 1e-4:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if self._epsilon_of(middle) <= self.epsilon else (middle, high)
        return high

    def _epsilon_of(self, noise: float) -> float:
        dp = accounting()
        accountant = dp.pld.PLDAccountant() if noise > PLD else dp.rdp.RdpAccountant()
        accountant.compose(dp.GaussianDpEvent(noise))
        return float(accountant.get_epsilon(self.delta))

    def release(self, data: LocalDatasets, gaussian: Gaussian | None = None) -> LocalDatasets:
        """Return rows with the noisy moments of these, n + 1 at every labelled node.

        Parameters
        ----------
        data : LocalDatasets
            Rows whose weights are all 1.
        gaussian : callable, optional
            Where noise comes from. None: OpenDP's sampler, which no rounding of floating-point numbers gives away.
        """
        if (data.weights != 1).any():
            raise ValueError("row-level privacy needs rows that all have the weight 1")
        rows, n = data.labelled, data.n_features
        moments = self._clipped_moments(rows)
        noise = (gaussian or opendp_gaussian)(SENSITIVITY * self.noise, moments.shape)
        values, vectors = np.linalg.eigh(moments + _symmetric(noise))
        L = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
        L *= np.sqrt((n + 1) / rows.m)[:, None, None]  # losses are means, over m_i rows
        Z = L.reshape(-1, n + 1) * [self.x_clip] * n + [self.y_clip] if False else L.reshape(-1, n + 1)
        nodes = np.repeat(rows.M, n + 1)
        return LocalDatasets.from_rows(Z[:, :n] * self.x_clip, Z[:, n] * self.y_clip, nodes, data.n_nodes)

    def _clipped_moments(self, rows: LabelledRows) -> Array:
        """Σ z zᵀ of each labelled node, (|M|, n + 1, n + 1)."""
        length = np.linalg.norm(rows.X, axis=1, keepdims=True)
        X = rows.X / np.maximum(length, self.x_clip)
        Z = np.column_stack([X, np.clip(rows.y / self.y_clip, -1.0, 1.0)])
        starts = np.concatenate([[0], np.cumsum(rows.m)])
        products = np.concatenate([np.zeros((1, *Z.shape[1:], Z.shape[1])), np.cumsum(Z[:, :, None] * Z[:, None, :], axis=0)])
        return products[starts[1:]] - products[starts[:-1]]

    @property
    def record(self) -> dict[str, Any]:
        """What the model's record says of it."""
        return {**asdict(self), "noise": self.noise, "protects": PROTECTS, "certificate": NOISY}


def opendp_gaussian(scale: float, shape: tuple[int, ...]) -> Array:
    """Noise of OpenDP's sampler."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtraError("noise for rows is drawn by OpenDP: pip install 'coterie[privacy]'") from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    draw = space >> dp.m.then_gaussian(scale)
    return np.array(draw([0.0] * int(np.prod(shape)))).reshape(shape)


def _symmetric(noise: Array) -> Array:
    """Symmetric matrices whose Frobenius norm is that of as many independent numbers: √2 entries off the diagonal."""
    upper = np.triu(noise, 1) / np.sqrt(2)
    diagonal = np.einsum("kii->ki", noise)[:, :, None] * np.eye(noise.shape[1])
    return upper + upper.transpose(0, 2, 1) + diagonal
