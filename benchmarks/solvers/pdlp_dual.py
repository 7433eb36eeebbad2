"""OR-tools PDLP on the dual."""

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "PDLP (dual)"
    requirements = ["pip::ortools"]  # noqa: RUF012
