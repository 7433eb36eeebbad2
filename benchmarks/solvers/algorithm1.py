"""Algorithm 1 as printed."""

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "Algorithm 1"
    requirements = []  # noqa: RUF012
    sampling_strategy = "iteration"
