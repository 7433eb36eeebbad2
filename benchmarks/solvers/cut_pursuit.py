"""Cut pursuit; needs NumPy < 2."""

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "pycut_pursuit"
    requirements = ["pip::pycut_pursuit"]  # noqa: RUF012
