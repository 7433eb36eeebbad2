"""Estimators with the scikit-learn API, a thin layer over `solve`."""

from coterie.estimators.baselines import compare_baselines
from coterie.estimators.comparison import Comparison
from coterie.estimators.convex_clustering import ConvexClustering
from coterie.estimators.from_files import fit_files
from coterie.estimators.huber import NetworkedHuberRegression, NetworkedHuberRegressionCV
from coterie.estimators.lasso import NetworkedLasso, NetworkedLassoCV
from coterie.estimators.logistic import NetworkedLogisticRegression, NetworkedLogisticRegressionCV
from coterie.estimators.persistence import load
from coterie.estimators.poisson import NetworkedPoissonRegression, NetworkedPoissonRegressionCV
from coterie.estimators.quantile import NetworkedQuantileRegression, NetworkedQuantileRegressionCV
from coterie.estimators.regression import NetworkedLinearRegression, NetworkedLinearRegressionCV

__all__ = [
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
]
