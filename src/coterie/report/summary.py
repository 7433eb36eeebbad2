"""What was fitted and on what, as terms and values."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.report.criterion import NAMES
from coterie.report.notes import Notes
from coterie.report.text import (
    clusters_asked_of,
    information_in_words,
    labels_of,
    measure_of,
    network_of,
    own_of,
    penalty_of,
    plural,
    short,
    some,
    weighting_of,
)

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

Summary = list[tuple[str, str]]
MOST_LISTED = 20


def model_summary(model: NetworkedModel) -> Summary:
    """What was fitted."""
    names = getattr(model, "feature_names_in_", None)
    count = plural(model.n_features_in_, "feature") + (" and an intercept" if model.fit_intercept else "")
    summary = [
        ("Estimator", type(model).__name__ + own_of(model)),
        ("Penalty", penalty_of(model)),
        ("λ", short(model.lam_, 4) + _how_chosen(model)),
        ("Weighting", weighting_of(model)),
        ("Units", "solved in units of each column's spread" if model.standardize else "solved in those of the data"),
        ("Coefficients", count if names is None else f"{count}: {some([str(n) for n in names], MOST_LISTED)}"),
    ]
    summary += [("Effective parameters", said.partition(": ")[2][:-1]) for said in information_in_words(model)]
    if model.space_time_ is not None:
        summary.append(("Strength in time", short(model.time_strength_, 4) + ", of one in space"))
    if hasattr(model, "classes_"):
        summary.append(("Classes", some([shown(c) for c in model.classes_], MOST_LISTED)))
    return summary


def _how_chosen(model: NetworkedModel) -> str:
    if (criterion := getattr(model, "criterion_choice_", None)) is not None:
        return f", chosen by {NAMES[criterion.criterion]}, without folds"
    if (choice := getattr(model, "lam_choice_", None)) is None:
        return clusters_asked_of(model) or ", as given"
    held = "" if choice.over == "given" else f" over {choice.over}"
    rule = "one standard error" if getattr(model, "rule", "best") == "one_se" else "smallest error"
    drawn = f" drawn {choice.repeats} times" if choice.repeats > 1 else ""
    folds = plural(choice.errors.shape[1] // choice.repeats, "fold")
    return f", chosen by cross-validation{held} ({folds}{drawn}, {rule})"


def data_summary(model: NetworkedModel, notes: Notes) -> Summary:
    """What it was fitted on."""
    graph, labelled = model.graph_, model.n_labelled_ > 0
    parts = int(graph.components.max()) + 1
    summary = [
        ("Graph", f"{network_of(graph)}, {plural(parts, 'component')}"),
        ("Labels", labels_of(model)),
    ]
    if labelled.any():
        m, measure = model.n_labelled_[labelled], measure_of(model)
        error = measure.of_mean(np.average(model.node_errors_[labelled], weights=m))
        summary.append(("Training error", f"{measure.name} {short(float(error), 3)} on the rows it was fitted to"))
    return summary + [(str(name).capitalize(), shown(value)) for name, value in notes.data.items() if name != "sha256"]


def parameters(model: NetworkedModel) -> Summary:
    """All parameters of the constructor but the graph."""
    values = model.get_params(deep=False)
    return [(name, shown(values[name])) for name in sorted(values) if name != "graph"]


def versions(model: NetworkedModel) -> dict[str, str]:
    """What the model was fitted with: for one that was fitted here, what is installed."""
    from coterie.estimators.persistence import versions

    return versions() if hasattr(model, "problem_") else dict(model.versions_)


def shown(value: Any) -> str:
    """A value as text; an object as its kind, since what it prints may differ from run to run."""
    if value is None or isinstance(value, str | bool):
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, Number):
        return short(float(value), 6)  # type: ignore[arg-type]
    if isinstance(value, dict):
        return some([f"{name}: {shown(item)}" for name, item in value.items()], MOST_LISTED)
    if isinstance(value, Iterable):
        return some([shown(item) for item in value], MOST_LISTED)
    return type(value).__name__
