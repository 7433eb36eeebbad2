"""Local losses. To add one: write its file, add its line here; the tests find it (CONTRIBUTING.md)."""

from coterie.problem.losses.base import LocalLosses, Loss
from coterie.problem.losses.huber import Huber
from coterie.problem.losses.lasso import Lasso
from coterie.problem.losses.logistic import Logistic
from coterie.problem.losses.multinomial import Multinomial
from coterie.problem.losses.poisson import Poisson
from coterie.problem.losses.quantile import Quantile
from coterie.problem.losses.row_loss import RowLoss
from coterie.problem.losses.squared import SquaredError
from coterie.problem.losses.squared_hinge import SquaredHinge

__all__ = [
    "Huber",
    "Lasso",
    "LocalLosses",
    "Logistic",
    "Loss",
    "Multinomial",
    "Poisson",
    "Quantile",
    "RowLoss",
    "SquaredError",
    "SquaredHinge",
]
