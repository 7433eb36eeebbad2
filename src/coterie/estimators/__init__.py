"""Estimators with the scikit-learn API, a thin layer over `solve`."""

from coterie.estimators.baselines import compare_baselines
from coterie.estimators.comparison import Comparison
from coterie.estimators.convex_clustering import ConvexClustering
from coterie.estimators.from_files import fit_files
from coterie.estimators.lasso import NetworkedLasso, NetworkedLassoCV
from coterie.estimators.logistic import NetworkedLogisticRegression, NetworkedLogisticRegressionCV
from coterie.estimators.persistence import load
from coterie.estimators.regression import NetworkedLinearRegression, NetworkedLinearRegressionCV

__all__ = [
    "Comparison",
    "ConvexClustering",
    "NetworkedLasso",
    "NetworkedLassoCV",
    "NetworkedLinearRegression",
    "NetworkedLinearRegressionCV",
    "NetworkedLogisticRegression",
    "NetworkedLogisticRegressionCV",
    "compare_baselines",
    "fit_files",
    "load",
]
