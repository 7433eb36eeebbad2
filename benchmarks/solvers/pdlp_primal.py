"""OR-tools PDLP on the primal."""

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "PDLP (primal)"
    requirements = ["pip::ortools"]  # noqa: RUF012
