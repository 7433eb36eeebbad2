"""Family f, by default a hundredth of it: scale=1.0 is a million nodes."""

from benchmark_utils import FamilyDataset


class Dataset(FamilyDataset):
    """See benchmarks.families."""

    name = "large"
    parameters = {"family": ["f"], "scale": [0.01], "seed": [0]}  # noqa: RUF012
    test_parameters = {"family": ["f"], "scale": [0.0005], "seed": [0]}  # noqa: RUF012
