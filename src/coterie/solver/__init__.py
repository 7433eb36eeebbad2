"""How it is solved: Algorithm 1, the default method, and the certificate."""

from coterie.solver.algorithm1 import algorithm1
from coterie.solver.certificate import Certificate
from coterie.solver.certify import certify
from coterie.solver.clusters import Clusters
from coterie.solver.path import Path, lam_grid, solve_path
from coterie.solver.solution import NotConverged, Record, Solution, Status
from coterie.solver.solve import solve

__all__ = [
    "Certificate",
    "Clusters",
    "NotConverged",
    "Path",
    "Record",
    "Solution",
    "Status",
    "algorithm1",
    "certify",
    "lam_grid",
    "solve",
    "solve_path",
]
