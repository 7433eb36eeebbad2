"""What is to be solved: graph, datasets, losses, penalties, and the problem they make."""

from coterie.problem.bound_problem import BoundProblem
from coterie.problem.datasets import LocalDatasets
from coterie.problem.graph import EmpiricalGraph
from coterie.problem.largest_lam import largest_useful_lam
from coterie.problem.problem import Problem, bound

__all__ = ["BoundProblem", "EmpiricalGraph", "LocalDatasets", "Problem", "bound", "largest_useful_lam"]
