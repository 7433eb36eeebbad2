"""Differential privacy for single rows: clipped moments with noise, released once.

Squared error and the Lasso see the rows of a node only through Σ z zᵀ, z = (x/x_clip, y/y_clip). So a site shrinks
rows with ‖z‖ > 1 to ‖z‖ = 1, features and label alike, which keeps what is linear between them, and releases
Σ z zᵀ + E of each labelled node, E symmetric and Gaussian. Another row in the place of one moves Σ z zᵀ of one node by
‖zzᵀ − z′z′ᵀ‖ ≤ √2 in the Frobenius norm, and nothing else: one Gaussian mechanism. Everything after that is computed
from what was released, however often it is asked: λ, clusters and the certificate cost no more.

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

SENSITIVITY = float(np.sqrt(2))  # of Σ z zᵀ, ‖z‖ ≤ 1, for one row in the place of another
PROTECTS = "any one labelled row of any node; not how many rows a node has, nor which nodes are labelled, nor edges"
NOISY = "the certificate is that of the noisy problem: its rows are the moments that the sites released"

Noisy = Callable[[Array, float], Array]  # numbers and a standard deviation → these numbers with noise


@dataclass(frozen=True)
class RowPrivacy:
    """How private single rows are.

    Attributes
    ----------
    epsilon, delta : float
        Of everything that a site ever says, for rows of which one is replaced by another.
    x_clip, y_clip : float
        The size that features, by their Euclidean norm, and labels may have: rows with ‖(x/x_clip, y/y_clip)‖ > 1 are
        shrunk. Choosing them by looking at the rows spends privacy that is not accounted for.
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
        """The smallest noise multiplier with which one Gaussian mechanism is (ε, δ)-private."""
        pld = accounting().pld
        promised = pld.common.DifferentialPrivacyParameters(self.epsilon, self.delta)
        mechanism = pld.privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(promised, sensitivity=1)
        return float(mechanism.standard_deviation)

    def release(self, data: LocalDatasets, noisy: Noisy | None = None) -> LocalDatasets:
        """Return rows with the noisy moments of these, n + 1 at every labelled node.

        Parameters
        ----------
        data : LocalDatasets
            Rows whose weights are all 1.
        noisy : callable, optional
            Adds noise. None: OpenDP's mechanism, whose last bits give nothing away either.
        """
        if (data.weights != 1).any():
            raise ValueError("row-level privacy needs rows that all have the weight 1")
        rows, n = data.labelled, data.n_features
        i, j = np.triu_indices(n + 1)
        length = np.where(i == j, 1.0, np.sqrt(2.0))  # so that the norm of the numbers is that of the matrix
        released = (noisy or opendp_noisy)(self._clipped_moments(rows)[:, i, j] * length, SENSITIVITY * self.noise)
        moments = np.empty((len(rows.M), n + 1, n + 1))
        moments[:, i, j] = moments[:, j, i] = released / length
        values, vectors = np.linalg.eigh(moments)
        L = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
        Z = (L * np.sqrt((n + 1) / rows.m)[:, None, None]).reshape(-1, n + 1)  # losses are means, over m_i rows
        nodes = np.repeat(rows.M, n + 1)
        return LocalDatasets.from_rows(Z[:, :n] * self.x_clip, Z[:, n] * self.y_clip, nodes, data.n_nodes)

    def _clipped_moments(self, rows: LabelledRows) -> Array:
        """Σ z zᵀ of each labelled node, (|M|, n + 1, n + 1)."""
        Z = np.column_stack([rows.X / self.x_clip, rows.y / self.y_clip])
        Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1.0)
        products = Z[:, :, None] * Z[:, None, :]
        return np.add.reduceat(products, rows.starts[:-1], axis=0) if len(rows.M) else products

    @property
    def record(self) -> dict[str, Any]:
        """What the model's record says of it."""
        return {**asdict(self), "noise": self.noise, "protects": PROTECTS, "certificate": NOISY}


def opendp_noisy(values: Array, scale: float) -> Array:
    """Add noise by OpenDP's Gaussian mechanism."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtraError("noise for rows is drawn by OpenDP: it comes with the extra coterie[privacy]") from None
    dp.enable_features("contrib")
    numbers = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    mechanism = numbers >> dp.m.then_gaussian(scale)
    return np.array(mechanism(values.ravel().tolist())).reshape(values.shape)


def numpy_noisy(rng: np.random.Generator) -> Noisy:
    """Add noise by NumPy's generator, for simulations: attacks on the last bits of its numbers are known."""
    return lambda values, scale: values + scale * rng.standard_normal(values.shape)
