"""Strengths of columns by their names, as users give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.estimators.export import names_of_design
from coterie.io.errors import MissingColumnError
from coterie.problem.arrays import Array
from coterie.problem.losses import Loss
from coterie.problem.strengths import RULE, is_strength

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

INTERCEPT = "intercept"


def as_array(given: Mapping[Any, Any] | None, names: Sequence[str] | None, n: int, intercept: bool) -> Array | None:
    """Strengths of n features and the intercept, if there is one; None where nothing is said of them.

    A key is the name of a feature, where they have names, its number, or "intercept".
    """
    if not given:
        return None
    s = np.ones(n + intercept)
    for key, value in given.items():
        k = column_of(key, names, n, intercept, "column_strength")
        if isinstance(value, bool) or not isinstance(value, Real) or not is_strength(float(value)):
            raise ValueError(f"column_strength of {key!r} is {value!r}; {RULE}")
        s[k] = value
    return s


def of_features(
    given: Mapping[str, float], features: Sequence[str], one_hot: Sequence[str], intercept: bool, option: str
) -> dict[str, float]:
    """Numbers of features: that of a column with levels is that of each of them. Refuse names that are none."""
    found: dict[str, float] = {}
    for name, value in given.items():
        levels = [feature for feature in features if name in one_hot and feature.startswith(f"{name}=")]
        if name not in features and not levels and not (name == INTERCEPT and intercept):
            known = ", ".join([*features, *([INTERCEPT] if intercept else [])])
            raise MissingColumnError(f"{option} {name}=…: there is no feature {name!r}; there are {known}")
        found |= dict.fromkeys(levels or [name], value)
    return found


def column_of(key: Any, names: Sequence[str] | None, n: int, intercept: bool, parameter: str) -> int:
    """The number of the column that a key of a parameter names."""
    if key == INTERCEPT and intercept and names is not None and INTERCEPT in names:
        raise ValueError(
            f"{parameter} names 'intercept', which a feature is called, too; give the feature another name"
        )
    if isinstance(key, str) and names is not None and key in names:
        return list(names).index(key)
    if key == INTERCEPT and intercept:
        return n
    if isinstance(key, Integral) and 0 <= int(key) < n:
        return int(key)
    if key == INTERCEPT and parameter == "column_strength":
        raise ValueError("column_strength names the intercept, but the model has none: fit_intercept=True")
    columns = f"numbers from 0 to {n - 1}" if names is None else f"features {', '.join(map(str, names))}"
    also = " and intercept" if intercept else ""
    raise ValueError(f"{parameter} names {key!r}, but there are the {columns}{also}")


def strengths_of(model: NetworkedModel) -> dict[str, float]:
    """The strengths of a fitted model by the names of its columns; those that are one only where folds chose them."""
    if model.strengths_ is None:
        return {}
    named, chosen = zip(names_of_design(model), model.strengths_, strict=True), getattr(model, "refine_strength", False)
    return {name: float(s) for name, s in named if chosen or s != 1}


def of_weights(strengths: Array, loss: Loss) -> Array:
    """The strength of each weight of a node, from those of columns: each class has all columns."""
    return np.tile(strengths, loss.n_weights(len(strengths)) // len(strengths))
