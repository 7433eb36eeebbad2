"""Logistic loss: the variants of b and c."""

from benchmark_utils import FamilyDataset


class Dataset(FamilyDataset):
    """See benchmarks.families."""

    name = "logistic"
    parameters = {"family": ["b-logistic", "c-logistic"], "scale": [1.0], "seed": [0]}  # noqa: RUF012
    test_parameters = {"family": ["b-logistic"], "scale": [0.02], "seed": [0]}  # noqa: RUF012
