"""The two versions of the paper's experiment: what the text says, and what the authors' code did."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.datasets import SyntheticNetwork, stochastic_block_model
from coterie.datasets.sbm import Normal
from coterie.problem import Problem
from coterie.problem.losses import SquaredError
from coterie.problem.losses.squared import Reduction


@dataclass(frozen=True)
class Setting:
    """Everything that the experiment depends on, apart from the seed."""

    name: str
    labelled: int
    edge_weights: tuple[Normal, Normal] | None
    reduction: Reduction
    sigma: float
    n_iter: int = 500
    lam: float = 1e-3
    p_out: float = 1e-3

    def network(self, seed: int) -> SyntheticNetwork:
        """Draw the network; with the same seed, settings share the features and, at one p_out, the edges."""
        return stochastic_block_model(
            labelled=self.labelled, edge_weights=self.edge_weights, p_out=self.p_out, seed=seed
        )

    def problem(self, network: SyntheticNetwork) -> Problem:
        """State the learning problem on a network."""
        return Problem(network.graph, network.data, loss=SquaredError(self.reduction), lam=self.lam)


PRINTED = Setting("as printed", labelled=30, edge_weights=None, reduction="mean", sigma=0.5)
AUTHORS = Setting("authors' code", labelled=60, edge_weights=((40.0, 1.0), (10.0, 1.0)), reduction="sum", sigma=0.45)
