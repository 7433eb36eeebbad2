"""Coterie: networked federated learning with certified answers.

One model for every node of a graph of local datasets; neighbours are pulled together by total variation;
a duality gap says how close to optimal the answer is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from coterie import plot
    from coterie.estimators import (
        Comparison,
        ConvexClustering,
        NetworkedHuberRegression,
        NetworkedHuberRegressionCV,
        NetworkedLasso,
        NetworkedLassoCV,
        NetworkedLinearRegression,
        NetworkedLinearRegressionCV,
        NetworkedLogisticRegression,
        NetworkedLogisticRegressionCV,
        NetworkedPoissonRegression,
        NetworkedPoissonRegressionCV,
        NetworkedQuantileRegression,
        NetworkedQuantileRegressionCV,
        compare_baselines,
        fit_files,
        load,
    )
    from coterie.graphs import (
        Resolvability,
        SimilarityGraph,
        knn_graph,
        product_graph,
        resolvability,
        similarity_graph,
        time_graph,
    )
    from coterie.problem import (
        EmpiricalGraph,
        LocalDatasets,
        Problem,
        largest_useful_lam,
    )
    from coterie.problem.losses import (
        Huber,
        Lasso,
        Logistic,
        Loss,
        Multinomial,
        Poisson,
        Quantile,
        RowLoss,
        SquaredError,
        SquaredHinge,
    )
    from coterie.problem.penalties import (
        GroupTotalVariation,
        Penalty,
        SquaredVariation,
        TotalVariation,
    )
    from coterie.report.page import write_report
    from coterie.solver import (
        Clusters,
        NotConverged,
        Path,
        Record,
        Solution,
        Status,
        algorithm1,
        certify,
        solve,
        solve_path,
    )

# Where each public name lives. Nothing is imported before it is used, so that `import coterie` is instant.
_HOMES = {
    "coterie.estimators": (
        "Comparison",
        "ConvexClustering",
        "NetworkedHuberRegression",
        "NetworkedHuberRegressionCV",
        "NetworkedLasso",
        "NetworkedLassoCV",
        "NetworkedLinearRegression",
        "NetworkedLinearRegressionCV",
        "NetworkedLogisticRegression",
        "NetworkedLogisticRegressionCV",
        "NetworkedPoissonRegression",
        "NetworkedPoissonRegressionCV",
        "NetworkedQuantileRegression",
        "NetworkedQuantileRegressionCV",
        "compare_baselines",
        "fit_files",
        "load",
    ),
    "coterie.graphs": (
        "Resolvability",
        "SimilarityGraph",
        "knn_graph",
        "product_graph",
        "resolvability",
        "similarity_graph",
        "time_graph",
    ),
    "coterie.problem": (
        "EmpiricalGraph",
        "LocalDatasets",
        "Problem",
        "largest_useful_lam",
    ),
    "coterie.problem.losses": (
        "Huber",
        "Lasso",
        "Logistic",
        "Loss",
        "Multinomial",
        "Poisson",
        "Quantile",
        "RowLoss",
        "SquaredError",
        "SquaredHinge",
    ),
    "coterie.problem.penalties": (
        "GroupTotalVariation",
        "Penalty",
        "SquaredVariation",
        "TotalVariation",
    ),
    "coterie.report.page": ("write_report",),
    "coterie.solver": (
        "Clusters",
        "NotConverged",
        "Path",
        "Record",
        "Solution",
        "Status",
        "algorithm1",
        "certify",
        "solve",
        "solve_path",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Clusters",
    "Comparison",
    "ConvexClustering",
    "EmpiricalGraph",
    "GroupTotalVariation",
    "Huber",
    "Lasso",
    "LocalDatasets",
    "Logistic",
    "Loss",
    "Multinomial",
    "NetworkedHuberRegression",
    "NetworkedHuberRegressionCV",
    "NetworkedLasso",
    "NetworkedLassoCV",
    "NetworkedLinearRegression",
    "NetworkedLinearRegressionCV",
    "NetworkedLogisticRegression",
    "NetworkedLogisticRegressionCV",
    "NetworkedPoissonRegression",
    "NetworkedPoissonRegressionCV",
    "NetworkedQuantileRegression",
    "NetworkedQuantileRegressionCV",
    "NotConverged",
    "Path",
    "Penalty",
    "Poisson",
    "Problem",
    "Quantile",
    "Record",
    "Resolvability",
    "RowLoss",
    "SimilarityGraph",
    "Solution",
    "SquaredError",
    "SquaredHinge",
    "SquaredVariation",
    "Status",
    "TotalVariation",
    "algorithm1",
    "certify",
    "compare_baselines",
    "fit_files",
    "knn_graph",
    "largest_useful_lam",
    "load",
    "plot",
    "product_graph",
    "resolvability",
    "similarity_graph",
    "solve",
    "solve_path",
    "time_graph",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("coterie.plot")
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'coterie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
