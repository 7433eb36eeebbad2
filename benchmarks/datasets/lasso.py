"""Lasso: the variants of b and c."""

from benchmark_utils import FamilyDataset


class Dataset(FamilyDataset):
    """See benchmarks.families."""

    name = "lasso"
    parameters = {"family": ["b-lasso", "c-lasso"], "scale": [1.0], "seed": [0]}  # noqa: RUF012
    test_parameters = {"family": ["b-lasso"], "scale": [0.02], "seed": [0]}  # noqa: RUF012
