"""Cut pursuit; needs NumPy < 2."""

import pycut_pursuit  # noqa: F401  (Benchopt asks whether this file can be imported)
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "pycut_pursuit"
    requirements = ["pip::pycut_pursuit"]  # noqa: RUF012
