"""Squared error: the families a to e."""

from benchmark_utils import FamilyDataset


class Dataset(FamilyDataset):
    """See benchmarks.families."""

    name = "squared"
    parameters = {"family": ["a", "b", "c", "d", "e"], "scale": [1.0], "seed": [0]}  # noqa: RUF012
    test_parameters = {"family": ["d"], "scale": [0.02], "seed": [0]}  # noqa: RUF012
