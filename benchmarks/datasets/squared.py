"""Squared error: the families a to e."""

from benchmark_utils import FamilyDataset


class Dataset(FamilyDataset):
    """See benchmarks.families."""

    name = "squared"
    parameters = {"family": ["a", "b", "c", "d", "e"], "scale": [1.0], "seed": [0]}  # noqa: RUF012
    test_parameters = {"family": ["a"], "scale": [0.2], "seed": [0]}  # noqa: RUF012
