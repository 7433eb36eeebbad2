"""proxTV: images only."""

import prox_tv  # noqa: F401  (Benchopt asks whether this file can be imported)
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See benchmarks.peers."""

    name = "proxTV"
    requirements = ["pip::prox_tv"]  # noqa: RUF012
    sampling_strategy = "iteration"
