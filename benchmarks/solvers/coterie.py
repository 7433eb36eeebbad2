"""Coterie, one thread."""

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "Coterie"
    requirements = []  # noqa: RUF012
