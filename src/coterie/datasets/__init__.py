"""Networks to try things on."""

from coterie.datasets.sbm import SyntheticNetwork, stochastic_block_model

__all__ = ["SyntheticNetwork", "stochastic_block_model"]
