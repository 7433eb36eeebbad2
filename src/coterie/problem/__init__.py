"""What is to be solved: graph, datasets, losses, penalties, and the problem they make."""

from coterie.problem.datasets import LocalDatasets
from coterie.problem.graph import EmpiricalGraph
from coterie.problem.largest_lam import largest_useful_lam
from coterie.problem.problem import Problem

__all__ = ["EmpiricalGraph", "LocalDatasets", "Problem", "largest_useful_lam"]
