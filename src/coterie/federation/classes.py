"""Classes with names: what a run calls them, which of them a label is, and losses at sites that miss some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import Logistic, Loss, Multinomial


@dataclass(frozen=True)
class SeenElsewhere(Multinomial):
    """Several classes of which a site may have no row: others have some."""

    def check_seen(self, rows: LabelledRows) -> None:
        return


def class_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The names in the setting `classes`, with commas in between; none: classes are 0 and 1."""
    text = str(config.get("classes", ""))
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    if names and (len(set(names)) < 2 or len(set(names)) < len(names) or not all(names)):
        raise ValueError(f"classes = {text!r}: give the names of two classes or more, each of them once")
    return names


def at_a_site(loss: Loss) -> Loss:
    """The loss at one site of several."""
    if not isinstance(loss, Multinomial):
        return loss
    return SeenElsewhere(**{own.name: getattr(loss, own.name) for own in fields(loss)})


def loss_of_classes(names: Sequence[str], **costs: Any) -> Logistic | SeenElsewhere:
    """The loss of a site for classes with these names, or for 0 and 1; `costs` of the weights, ridge and l1."""
    return SeenElsewhere(len(names), **costs) if len(names) > 2 else Logistic(**costs)


def as_labels(names: Sequence[str]) -> Array:
    """The classes as a model has them: numbers where all of them are whole."""
    whole = all(name.lstrip("-").isdecimal() for name in names)
    return np.array([int(name) for name in names] if whole else list(names))


def numbered(labels: Sequence[Any], names: Sequence[str]) -> Array:
    """The number of each label's class, nan where there is no label; −1 where there is no such class."""
    number = {known: k for k, name in enumerate(names) for known in (name, _as_number(name))}
    return np.array([np.nan if y is None or y != y else number.get(y, -1) for y in labels], dtype=np.float64)


def _as_number(name: str) -> float | str:
    try:
        return float(name)
    except ValueError:
        return name
