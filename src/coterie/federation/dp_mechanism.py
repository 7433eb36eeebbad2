"""Differential privacy for what leaves a site: clip, add Gaussian noise, account.

What is protected is *all that one site has*: rows, labels and inner edges together. A single row or node would be no
cheaper, because through the inner edges any of them can move every boundary weight of its site, and nothing bounds how
far. So the change ŵ − v that a site replies to centres v is clipped to a Euclidean norm C over all its boundary
nodes, and Gaussian noise is added before it leaves:

    v + min(1, C/‖ŵ − v‖)·(ŵ − v) + N(0, (2Cz)²).

Whatever else a site might have had, what it releases before noise moves by 2C at most; so z is the noise
multiplier of a Gaussian mechanism, and a run is that mechanism composed as often as there are rounds. No scalar
leaves, and so there is no certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coterie.io.files import MissingExtraError
from coterie.problem.arrays import Array

PROTECTS = "all rows, labels and inner edges of any one site, against the server and the other sites"


@dataclass(frozen=True)
class Privacy:
    """How private a run is.

    Attributes
    ----------
    noise : float
        The noise multiplier z: noise has the standard deviation 2·clip·noise in every coordinate.
    clip : float
        The norm C that the change of a site's boundary weights is clipped to.
    rounds : int
        How many replies every site releases; known beforehand.
    delta : float
        δ, for which ε is stated.
    """

    noise: float
    clip: float = 1.0
    rounds: int = 10
    delta: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("noise", "clip"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"privacy-{name} must be positive, got {value}")
        if self.rounds < 1:
            raise ValueError(f"privacy-rounds must be at least 1, got {self.rounds}")
        if not 0 < self.delta < 1:
            raise ValueError(f"privacy-delta must lie between 0 and 1, got {self.delta}")

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Privacy | None:
        """Read the run configuration of a Flower app; None, where privacy-noise is 0: no privacy is asked for."""
        noise = float(config.get("privacy-noise", 0.0))
        if noise == 0:
            return None
        return cls(noise, float(config["privacy-clip"]), int(config["privacy-rounds"]), float(config["privacy-delta"]))

    @property
    def epsilon(self) -> float:
        """ε of a whole run, for δ = delta: of `rounds` Gaussian mechanisms, each chosen after the one before."""
        dp = accounting()
        accountant = dp.pld.PLDAccountant()  # noise is relative to 2C already, so no factor for replacing
        accountant.compose(dp.GaussianDpEvent(self.noise), self.rounds)
        return float(accountant.get_epsilon(self.delta))

    def release(self, w: Array, v: Array, rng: np.random.Generator) -> Array:
        """Return what may leave a site instead of the boundary weights w, its reply to the centres v."""
        change = w - v
        length = float(np.linalg.norm(change))
        clipped = change * min(1.0, self.clip / length) if length > 0 else change
        return v + (clipped + 2.0 * self.clip * self.noise * rng.standard_normal(w.shape))

    @property
    def record(self) -> dict[str, Any]:
        """What the model's record says of it."""
        return {"epsilon": self.epsilon, **asdict(self), "protects": PROTECTS}


def accounting() -> Any:
    """Return dp-accounting, or say which extra has it."""
    try:
        import dp_accounting
        import dp_accounting.pld
        import dp_accounting.pld.privacy_loss_mechanism
    except ImportError:
        raise MissingExtraError("accounting for privacy needs the extra coterie[privacy]") from None
    return dp_accounting
