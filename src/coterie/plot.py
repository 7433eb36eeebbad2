"""The pictures of the report, one at a time, on matplotlib axes: ``ct.plot.network(model)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coterie.io.files import MissingExtraError
from coterie.report.coefficients import draw_coefficients
from coterie.report.convergence import draw_convergence, draw_gap
from coterie.report.criterion import draw_criterion
from coterie.report.held_out import draw_held_out
from coterie.report.map import draw_map
from coterie.report.over_time import draw_over_time
from coterie.report.validation import draw_comparison, draw_lam_choice
from coterie.solver import Solution

if TYPE_CHECKING:
    from coterie.estimators import Comparison
    from coterie.estimators.base import NetworkedModel

__all__ = ["coefficients", "comparison", "convergence", "gap", "held_out", "lam_choice", "network", "over_time"]


def network(model: NetworkedModel, by: str | None = None, ax: Any = None) -> Any:
    """Draw the network of a fitted model.

    Nodes are where the note "coordinates" of the model says they are, as `coterie fit --knn` writes it, else laid out.

    Parameters
    ----------
    model : NetworkedModel
        A fitted model.
    by : str, default=None
        The feature whose coefficient gives the colour, or "intercept". None: the cluster.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import coterie as ct
    >>> model = ct.NetworkedLinearRegression([("A", "B")]).fit([[1.0], [2.0]], [2.0, 4.0], groups=["A", "B"])
    >>> ct.plot.network(model, by="intercept").get_aspect()
    1.0
    """
    _check(model)
    ax = _axes(ax)
    draw_map(ax, model, by)
    return ax


def coefficients(model: NetworkedModel, ax: Any = None) -> Any:
    """Draw the models of the clusters as a heat map, one row per cluster, the largest at the top.

    Parameters
    ----------
    model : NetworkedModel
        A fitted model.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import coterie as ct
    >>> model = ct.NetworkedLinearRegression([("A", "B")]).fit([[1.0], [2.0]], [2.0, 4.0], groups=["A", "B"])
    >>> ct.plot.coefficients(model).get_ylabel()
    'cluster (nodes)'
    """
    _check(model)
    ax = _axes(ax)
    draw_coefficients(ax, model)
    return ax


def convergence(solved: NetworkedModel | Solution, ax: Any = None) -> Any:
    """Draw the objective and the lower bound against iterations; the best possible lies between them.

    Parameters
    ----------
    solved : NetworkedModel or Solution
        A fitted model, or what :func:`coterie.solve` returned.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import coterie as ct
    >>> model = ct.NetworkedLinearRegression([("A", "B")]).fit([[1.0], [2.0]], [2.0, 4.0], groups=["A", "B"])
    >>> ct.plot.convergence(model).get_xlabel()
    'iterations'
    """
    solution = _solution(solved)
    ax = _axes(ax)
    draw_convergence(ax, solution)
    return ax


def gap(solved: NetworkedModel | Solution, ax: Any = None) -> Any:
    """Draw the certified relative gap against iterations and, for a model, the gap that was asked for.

    Parameters
    ----------
    solved : NetworkedModel or Solution
        A fitted model, or what :func:`coterie.solve` returned.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import coterie as ct
    >>> model = ct.NetworkedLinearRegression([("A", "B")]).fit([[1.0], [2.0]], [2.0, 4.0], groups=["A", "B"])
    >>> ct.plot.gap(model).get_yscale()
    'log'
    """
    solution = _solution(solved)
    ax = _axes(ax)
    draw_gap(ax, solution, getattr(solved, "tol", None))
    return ax


def lam_choice(model: NetworkedModel, ax: Any = None) -> Any:
    """Draw the cross-validated error of every λ, with standard errors and both rules marked.

    Parameters
    ----------
    model : NetworkedModel
        A fitted model that chose its λ: one of those that end in CV.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Raises
    ------
    ValueError
        If the model was given its λ.

    Examples
    --------
    >>> import coterie as ct
    >>> model = ct.NetworkedLinearRegressionCV([("A", "B")], n_lams=3, cv=2, random_state=0)
    >>> model = model.fit([[1.0], [2.0], [3.0], [4.0]], [2.0, 4.0, 6.1, 8.0], groups=["A", "B", "A", "B"])
    >>> ct.plot.lam_choice(model).get_xscale()
    'log'
    """
    _check(model)
    choice = getattr(model, "lam_choice_", None)
    if (criterion := getattr(model, "criterion_choice_", None)) is not None:
        ax = _axes(ax)
        draw_criterion(ax, criterion)
        return ax
    if choice is None:
        raise ValueError(f"{type(model).__name__} was given its λ; one that ends in CV chooses it")
    ax = _axes(ax)
    draw_lam_choice(ax, choice)
    return ax


def held_out(model: NetworkedModel, ax: Any = None) -> Any:
    """Draw predicted against actual labels that were held out; of counts residuals, of classes shares.

    Parameters
    ----------
    model : NetworkedModel
        A fitted model that chose its λ: one of those that end in CV.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Raises
    ------
    ValueError
        If nothing was held out, or single predictions are not known.

    Examples
    --------
    >>> import coterie as ct
    >>> model = ct.NetworkedLinearRegressionCV([("A", "B")], n_lams=3, cv=2, random_state=0)
    >>> model = model.fit([[1.0], [2.0], [3.0], [4.0]], [2.0, 4.0, 6.1, 8.0], groups=["A", "B", "A", "B"])
    >>> ct.plot.held_out(model).get_ylabel()
    'actual'
    """
    _check(model)
    found = getattr(model, "held_out_", None)
    if found is None:
        raise ValueError(
            f"no labels were held out: {type(model).__name__} was given its λ; one that ends in CV has some"
        )
    ax = _axes(ax)
    draw_held_out(ax, found)
    return ax


def over_time(model: NetworkedModel, by: str | None = None, ax: Any = None) -> Any:
    """Draw the line of a coefficient at each place, of a model of places at times.

    Parameters
    ----------
    model : NetworkedModel
        A fitted model whose graph is a pair (space, time).
    by : str, default=None
        The feature whose coefficient is drawn, or "intercept". None: the first of those that vary most.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Raises
    ------
    ValueError
        If the model has no times.

    Examples
    --------
    >>> import coterie as ct
    >>> model = ct.NetworkedLinearRegression(([("A", "B")], ct.time_graph([1, 2])))
    >>> model = model.fit([[1.0], [2.0]], [2.0, 4.0], groups=[("A", 1), ("B", 2)])
    >>> ct.plot.over_time(model, by="intercept").get_ylabel()
    'intercept'
    """
    _check(model)
    ax = _axes(ax)
    draw_over_time(ax, model, by)
    return ax


def comparison(found: Comparison, ax: Any = None) -> Any:
    """Draw the held-out error of the network beside its baselines: every fold, and the mean with its standard error.

    Parameters
    ----------
    found : Comparison
        What :func:`coterie.compare_baselines` returned.
    ax : matplotlib Axes, default=None
        Where to draw. None: on axes of a new figure.

    Returns
    -------
    matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> errors = np.array([[2.0, 3.0], [1.0, 1.5]])
    >>> found = ct.Comparison(("pooled", "networked"), errors, "rows", weights=np.array([10.0, 10.0]))
    >>> len(ct.plot.comparison(found).get_yticklabels())
    2
    """
    ax = _axes(ax)
    draw_comparison(ax, found)
    return ax


def _axes(ax: Any) -> Any:
    """These axes, or those of a new figure, which notebooks and plt.show() show."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError("pictures need matplotlib, which comes with the extra coterie[plot]") from None
    return pyplot.subplots(layout="constrained")[1]


def _check(model: NetworkedModel) -> None:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)


def _solution(solved: NetworkedModel | Solution) -> Solution:
    if isinstance(solved, Solution):
        return solved
    _check(solved)
    return solved.solution_
