"""Does the network help? The same data, folds and loss with and without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from coterie.estimators.base import NetworkedModel
from coterie.estimators.comparison import NETWORK, Comparison
from coterie.estimators.criterion import CRITERIA, choose_by_criterion
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.fold import Fold, Over
from coterie.estimators.fold_paths import Remade, how_to_solve, mean_error, remade, training_part
from coterie.estimators.folds import as_it_was, folds_for, folds_of, reachable, without
from coterie.estimators.intercepts import has_intercepts, mixed_model, node_intercepts
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.lam_errors import cross_validate_lam, lam_values, steps
from coterie.estimators.made_graph import SecondFit
from coterie.estimators.offsets import Offset
from coterie.estimators.progress import listener
from coterie.estimators.refit import refitted
from coterie.estimators.space_time import carried, last_known
from coterie.estimators.variants import Variant, recipe_of, variants_of, varies
from coterie.graphs.similarity_recipe import choices, joined
from coterie.problem import LocalDatasets, Problem, largest_useful_lam
from coterie.problem.arrays import Array
from coterie.problem.penalties import SquaredVariation
from coterie.solver import NotConverged, solve
from coterie.solver.pace import expecting

Nodes = NDArray[np.int64]
SMOOTH, SMOOTH_LAMS = "squared variation", 20
HARDLY = 1e-6  # of the largest useful λ: nodes with a model hardly feel it, those without still get one


def compare_baselines(
    estimator: NetworkedModel,
    X: Any,
    y: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    cv: Any = 5,
    over: Over = "auto",
    random_state: Any = 0,
) -> Comparison:
    """Compare a networked model with what can be had without it, on the same folds.

    - local only: each node alone, with the smallest weights where its rows leave a choice. A node without labels
      of its own takes the median of its neighbours' models.
    - pooled: one model for all nodes.
    - node intercepts: common slopes and an intercept per node, as dummy variables give it.
    - mixed model: the same with the shrunken intercepts of a random-intercept model; see coterie.estimators.intercepts.
      Nodes without labels take the common intercept. A model without intercepts, or of the Huber or quantile loss, is
      not compared with these two.
    - networked: the estimator. A CV form tries its λ on all folds, and counts in each fold with the λ that the other
      folds choose.
    - squared variation: the same with smooth differences instead of clusters, and its λ chosen so.

    Parameters
    ----------
    estimator : NetworkedModel
        The model to compare; it is not changed.
    X : array or frame of shape (rows, features)
        The features of each row.
    y : sequence of shape (rows,)
        Labels; nan (or None) where a row has none.
    groups : sequence of shape (rows,) or str
        The node of each row, or the column of the frame X that says so.
    sample_weight : sequence of shape (rows,), default=None
        A row of weight 2 counts like two rows. None: all count alike.
    offset, exposure : sequence of shape (rows,), float or str, default=None
        Of counts: one of them, as for :meth:`NetworkedPoissonRegression.fit`. No other model takes them.
    cv : int, splitter or iterable of (train, test), default=5
        The number of folds, or what scikit-learn takes for cv. With one fold, λ is chosen inside its training part.
    over : {"auto", "nodes", "rows", "places", "times", "blocks"}, default="auto"
        What a fold holds out, as for the CV forms.
    random_state : int or RandomState, default=0
        Draws the folds.

    Returns
    -------
    Comparison
        Errors in the units of y: root mean squared errors, log-losses, or what the loss of the model calls its error.
        It says which method has the smallest, in words too.

    Examples
    --------
    >>> import coterie as ct
    >>> from coterie.datasets import stochastic_block_model
    >>> network = stochastic_block_model((20, 20), labelled=40, points=2, p_in=0.3, noise=0.5)
    >>> X, y, nodes = network.data.X, network.data.y, network.data.nodes
    >>> found = ct.compare_baselines(ct.NetworkedLinearRegression(network.graph, lam=0.1), X, y, nodes, cv=2)
    >>> found.methods[found.best]
    'networked'
    """
    model = clone(estimator)
    given = Offset.for_model(model, offset, exposure)
    problem, order = model._problem(X, y, groups, sample_weight, given)
    folds, held = folds_for(model, problem, cv, over, order, random_state)
    return compare(model, problem, folds, held)


def compare(
    model: NetworkedModel,
    problem: Problem,
    folds: Sequence[Fold],
    over: str,
    *,
    known: LamChoice | None = None,
    tuned: bool = True,
    condensed: bool = False,
) -> Comparison:
    """Compare a model with what can be had without it, on these folds of its problem.

    known : the errors of the model in these folds, in units of y, where they are known already.
    tuned : whether squared variation is among the methods, which takes a path of λ on each fold.
    condensed : whether rows stand for many, as those of coterie.io.moments do.
    """
    tell, measure, unit = listener(model.verbose), problem.loss.measure, model.scaling_.y_spread
    methods = _methods(model, model.row_weight_ if condensed else None)
    if known is None:
        by = _by_criterion if getattr(model, "criterion", "cv") in CRITERIA else _by_folds
        known = by(model, problem, folds, over)
    means, graph_made = np.empty((len(methods), len(folds))), _graph_made(model, known)
    with expecting(len(folds)):
        for k, fold in enumerate(folds):
            past, rows = training_part(problem, fold, graph_made)
            tested = np.unique(last_known(problem.data.nodes[rows], past.graph))
            for row, (name, weights_of) in enumerate(methods.items()):
                if tell is not None:
                    tell(f"baselines, fold {k + 1}: {name}", k / len(folds))
                means[row, k] = mean_error(problem, rows, carried(weights_of(past, tested), problem.graph))
    errors = dict(zip(methods, unit * measure.of_mean(means), strict=True))
    errors[NETWORK] = known.elsewhere(_rule_of(model))
    if tuned:
        at, kappas = known.by_rule(_rule_of(model)), known.time_strengths
        kappa = model._strengths[0] if kappas is None else float(kappas[at])
        squared = replace(model._in_time(problem, kappa), penalty=SquaredVariation())
        smooth = _by_lam(model, squared, folds, over, SMOOTH_LAMS, SMOOTH, known.repeats, graph_made)
        errors[SMOOTH] = smooth.elsewhere()
    table, library = np.array(list(errors.values())), model.frame_library_
    return Comparison(tuple(errors), table, over, known.weights, library, measure.name, measure.degree, known.repeats)


def _methods(model: NetworkedModel, unit: float | None) -> dict[str, Callable[[Problem, Nodes], Array]]:
    """What makes weights, right for the nodes that are tested, of a training problem without a choice of λ."""
    methods: dict[str, Callable[[Problem, Nodes], Array]] = {
        "local only": lambda training, tested: _alone(model, training, tested),
        "pooled": lambda training, tested: _pooled(training),
    }
    if model.fit_intercept and has_intercepts(model._loss(())):
        methods |= {
            "node intercepts": lambda training, tested: node_intercepts(training, unit),
            "mixed model": lambda training, tested: mixed_model(training, unit),
        }
    return methods


def _lams_of(model: NetworkedModel) -> Sequence[float] | int:
    """The λ that a model chooses from, or its own."""
    if not isinstance(model, ChoosesLam):
        return [model.lam]
    return model.n_lams if model.lams is None else model.lams


def _rule_of(model: NetworkedModel) -> str:
    return model.rule if isinstance(model, ChoosesLam) else "best"


def _by_lam(
    model: NetworkedModel,
    problem: Problem,
    folds: Sequence[Fold],
    over: str,
    lams: Sequence[float] | int,
    name: str,
    repeats: int,
    made: Remade | None = None,
    each: Sequence[Remade] | None = None,
) -> LamChoice:
    """The errors of every λ in every fold, in units of y; of one λ only, where there is one fold to choose by.

    `made` makes the problem of the data of all rows, and of those of a fold where `each` has nothing for it.
    """
    whole = remade(problem, made) if isinstance(lams, int | np.integer) else problem
    values, tell = lam_values(whole, lams), listener(model.verbose)
    how = how_to_solve(model)
    if len(folds) == 1 and len(values) > 1:
        inside = _inside(without(problem, folds[0]), folds[0], values, how, made)
        values = [float(inside.lams[inside.by_rule(_rule_of(model))])]
    if len(values) == 1:
        how["tol"] = max(model.tol, 1e-5)
    told = None if tell is None else steps(tell, len(folds), len(values), f"{name}, ")
    refit = model.refit is not None and name == NETWORK
    options: dict[str, Any] = {"repeats": repeats, "progress": told, "refit": refit, "made": each or made}
    choice = cross_validate_lam(problem, values, folds, over, **options, **how)
    return replace(choice, errors=choice.errors * model.scaling_.y_spread)


def _by_folds(model: NetworkedModel, problem: Problem, folds: Sequence[Fold], over: str) -> LamChoice:
    """The errors of every λ, and of what else is chosen, in every fold, in units of y."""
    tried = variants_of(model, problem)
    several = len(tried) > 1
    if len(folds) == 1 and several:
        tried = [_best_inside(model, tried, folds[0])]
    found = [_by_lam(model, one.problem, folds, over, _lams_of(model), NETWORK, 1, one.made) for one in tried]
    known, _ = LamChoice.joined(found, [one.value for one in tried], varies(model))
    if several and known.varied is None:  # chosen inside the only fold
        known = known.beside_one(varies(model), tried[0].value)
    return known if model._reweights is None else _second(model, tried, folds, over, known)


def _by_criterion(model: NetworkedModel, problem: Problem, folds: Sequence[Fold], over: str) -> LamChoice:
    """The errors in every fold of the λ and the strength in time that the model's criterion chooses on the rest."""
    errors, weights = [], []
    tried = [model._in_time(problem, kappa) for kappa in model._strengths]
    for fold in folds:
        parts = [as_it_was(without(one, fold), fold) for one in tried]
        choices = [choose_by_criterion(model, past, lam_values(past, _lams_of(model))) for past in parts]
        best = min(range(len(tried)), key=lambda k: choices[k].values[choices[k].best])
        w = _solved(model, parts[best], choices[best].lam)
        w = w if model.refit is None else refitted(parts[best].bound.at(choices[best].lam), w)
        w = carried(w, problem.graph)
        rows = reachable(without(problem, fold), fold)
        errors.append(mean_error(problem, rows, w))
        weights.append(float(problem.data.weights[rows].sum()))
    measure = problem.loss.measure
    found = measure.of_mean(np.array([errors])) * model.scaling_.y_spread
    return LamChoice(np.array([np.nan]), found, np.zeros_like(found), over, np.array(weights), 1, measure.degree)


def _inside(training: Problem, fold: Fold, values: list[float], how: dict[str, Any], made: Remade | None) -> LamChoice:
    """Cross-validation within a training part, held out as the fold holds out."""
    rows = reachable(remade(training, made), fold)
    known = np.isin(training.data.nodes[rows], training.M).mean()
    over: Over = "rows" if known >= 0.5 else "nodes"
    n_folds = min(5, len(training.M) if over == "nodes" else len(training.data.labelled.y))
    classes, order = training.loss.measure.of_classes, np.arange(len(training.data.y))
    folds, _ = folds_of(training.data, n_folds, over, order, 0, of_classes=classes)
    return cross_validate_lam(training, values, folds, over, made=made, **how)


def _second(
    model: NetworkedModel, tried: Sequence[Variant], folds: Sequence[Fold], over: str, first: LamChoice
) -> LamChoice:
    """The errors of a second fit, on edges that are weighed anew after a first one at the λ that other folds choose."""
    assert model._reweights is not None
    at = first.by_rule(_rule_of(model))
    here = tried[0] if first.varied is None else next(one for one in tried if one.value == first.varied[at])
    second = SecondFit(here.made, model._reweights, {"tol": model.tol, **how_to_solve(model)})
    made, each = second.after(float(first.lams[at])), second.in_folds(first, _rule_of(model))
    found = _by_lam(model, here.problem, folds, over, _lams_of(model), NETWORK, first.repeats, made, each)
    return found.beside(first, _rule_of(model))


def _best_inside(model: NetworkedModel, tried: list[Variant], fold: Fold) -> Variant:
    """The one that is best within the training part of the only fold."""
    errors = []
    for _, problem, made in tried:
        values = lam_values(problem if made is None else made(problem), _lams_of(model))
        errors.append(_inside(without(problem, fold), fold, values, how_to_solve(model), made).mean.min())
    return tried[int(np.argmin(errors))]


def _graph_made(model: NetworkedModel, known: LamChoice) -> Remade | None:
    """What makes the graph of the rows, with the k or threshold that was chosen, or the only one."""
    recipe = recipe_of(model)
    if recipe is None:
        return None
    chosen = None if known.varied is None else float(known.varied[known.by_rule(_rule_of(model))])
    return partial(joined, recipe, value=choices(recipe)[0] if chosen is None else chosen)


def _alone(model: NetworkedModel, training: Problem, tested: Nodes | None = None) -> Array:
    M, n = training.M, training.n_features
    own = training.f.pooled(np.arange(len(M)), len(M))[0]
    if tested is not None and np.isin(tested, M).all():  # nobody asks for the models of other nodes
        w = np.zeros((training.graph.n_nodes, n))
    else:
        points = np.tile(np.eye(n), (len(M), 1)), own.ravel(), np.repeat(M, n)
        held_still = Problem(training.graph, LocalDatasets.from_rows(*points, n_nodes=training.graph.n_nodes))
        w = _solved(model, held_still, HARDLY * largest_useful_lam(held_still) or 1.0)  # 0: each component has one
    w[M] = own
    return w


def _solved(model: NetworkedModel, training: Problem, lam: float) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return solve(training.bound.at(lam), max(model.tol, 1e-5), **how_to_solve(model)).w


def _pooled(training: Problem) -> Array:
    common = training.f.pooled(np.zeros(len(training.M), dtype=np.int64), 1)[0]
    return np.broadcast_to(common, (training.graph.n_nodes, training.n_features))
