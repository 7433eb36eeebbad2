"""The objective for Benchopt: Σ_i L_i(w_i) + λ Σ_e A_e ‖w_i − w_j‖₁."""

from typing import Any

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """The networked learning problem; its data are a coterie.Problem."""

    name = "Network Lasso"
    min_benchopt_version = "1.10"
    test_dataset_name = "squared"

    def set_data(self, problem: Any) -> None:
        self.problem = problem

    def get_objective(self) -> dict[str, Any]:
        return {"problem": self.problem}

    def evaluate_result(self, w: np.ndarray) -> dict[str, float]:
        return {"value": self.problem.objective(w)}

    def get_one_result(self) -> dict[str, np.ndarray]:
        return {"w": np.zeros((self.problem.graph.n_nodes, self.problem.n_features))}
