"""What a loss calls the error of predictions: the one place that names it, for tables, reports and the command line."""

from __future__ import annotations

from typing import NamedTuple

from coterie.problem.arrays import Array


class Measure(NamedTuple):
    """How errors of rows, as `Loss.error` gives them, become one number that people know.

    Attributes
    ----------
    name : str
        What that number is called.
    degree : int
        Errors of rows are in units of y to this power. The number is the power mean of this degree: in units of y.
    score : str
        What says how good predictions are without any unit: R² of numbers, D² (the part of the error of the best
        constant that is gone), or the accuracy of classes.
    """

    name: str
    degree: int = 1
    score: str = "R²"

    @property
    def of_classes(self) -> bool:
        """Whether labels are classes, 0 and 1, and have no unit."""
        return self.score == ACCURACY

    @property
    def has_unit(self) -> bool:
        """Whether the number is in units of y."""
        return not self.of_classes and self != MEAN_DEVIANCE

    def of_mean(self, mean: Array) -> Array:
        """The number, of a mean of errors of rows."""
        return mean ** (1 / self.degree)


ACCURACY, EXPLAINED = "accuracy", "D²"
ROOT_MEAN_SQUARED_ERROR = Measure("root mean squared error", degree=2)
LOG_LOSS = Measure("log-loss", score=ACCURACY)
MEAN_LOSS = Measure("mean loss")
MEAN_DEVIANCE = Measure("mean deviance", score=EXPLAINED)
MEAN_ABSOLUTE_ERROR = Measure("mean absolute error", score=EXPLAINED)
PINBALL_LOSS = Measure("pinball loss", score=EXPLAINED)
