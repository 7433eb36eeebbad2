"""CVXPY with Clarabel."""

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "CVXPY + Clarabel"
    requirements = ["pip::cvxpy", "pip::clarabel"]  # noqa: RUF012
