"""CVXPY with PIQP."""

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "CVXPY + PIQP"
    requirements = ["pip::cvxpy", "pip::piqp"]  # noqa: RUF012
