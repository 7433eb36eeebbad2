"""What a report reads of the notes that travel with a model.

Notes are a dictionary that JSON can hold, given to ``model.save(path, notes)`` or set as ``model.notes_``. A report
understands these keys, all optional, and passes over any others:

data : dict
    What the model was fitted on, shown as it is: "files" (names), "rows", "sha256", or anything else.
coordinates : dict
    "names" (two strings; those that begin with lat and lon or lng make a map) and "values" (a pair of numbers, or
    null, for each node, in the order of ``nodes_``; of places at times, for each place).
baselines : dict
    "methods", "errors" (methods × folds), "over", "weights", "measure", "degree" and "repeats", as in
    :class:`coterie.Comparison`. Without weights, all folds count alike; without a measure, errors are means over rows
    of what the loss of the model calls an error.
resolvability : dict of columns
    One row per cluster, as ``Resolvability.to_dict()`` gives them; RESOLVABILITY below says which are needed.
federation : dict
    What a federation leaves in its model: "sites" (names), "rounds", "label", "held" and "complaints" (names and
    sentences), "privacy" (null, or what was promised) and "clusters" (the cluster of each node).
seed : int
command : str
    How the model was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.graphs.knn import latitude_and_longitude
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.ids import Pairs
from coterie.problem.losses.measure import Measure
from coterie.report.text import measure_of

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.comparison import Comparison


RESOLVABILITY = ("cluster", "n_nodes", "n_labelled", "boundary", "flow", "margin", "resolved", "next_label")


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where the nodes are: across, then up; nan where it is not known."""

    names: tuple[str, str]
    values: Array
    geographic: bool

    @property
    def stretch(self) -> float:
        """How long a unit upwards is, in units across: degrees of longitude shrink towards the poles."""
        if not self.geographic:
            return 1.0
        middle = math.radians(float(np.nanmean(self.values[:, 1])))
        return 1 / max(math.cos(middle), 0.1)


@dataclass(frozen=True, eq=False)
class Notes:
    """The notes of a model, checked."""

    data: dict[str, Any] = field(default_factory=dict)
    coordinates: Coordinates | None = None
    baselines: Comparison | None = None
    resolvability: list[dict[str, Any]] = field(default_factory=list)
    seed: Any = None
    command: str | None = None

    @classmethod
    def of(cls, model: NetworkedModel) -> Notes:
        notes = getattr(model, "notes_", None) or {}
        readers: dict[str, Callable[[Any], Any]] = {
            "data": dict,
            "coordinates": lambda note: _coordinates(note, model.graph_),
            "baselines": lambda note: as_comparison(note, measure_of(model)),
            "resolvability": _rows,
            "seed": lambda note: note,
            "command": str,
        }
        found = {}
        for key, read in readers.items():
            if notes.get(key) is not None:
                try:
                    found[key] = read(notes[key])
                except (TypeError, ValueError, KeyError, AttributeError) as error:
                    raise ValueError(f"the model's note {key!r} cannot be read: {error}") from None
        return cls(**found)


def _coordinates(note: dict[str, Any], graph: EmpiricalGraph) -> Coordinates:
    names = [str(name) for name in note["names"]]
    values = np.array([[math.nan] * 2 if row is None else row for row in note["values"]], dtype=float)
    V, pairs = graph.n_nodes, graph.ids
    if isinstance(pairs, Pairs) and len(values) == len(pairs.first):
        values = np.tile(values, (len(pairs.second), 1))
    if len(names) != 2 or values.shape != (V, 2):
        raise ValueError(f"it needs two names and {V} pairs of numbers, got {len(names)} and shape {values.shape}")
    values[~np.isfinite(values).all(axis=1)] = np.nan
    up, across = latitude_and_longitude(names)
    if up is None or across is None or not np.isfinite(values).any():
        return Coordinates((names[0], names[1]), values, geographic=False)
    return Coordinates((names[across], names[up]), values[:, [across, up]], geographic=True)


def as_comparison(note: dict[str, Any], measure: Measure) -> Comparison:
    """The note of baselines as what compare_baselines returned; without a measure, errors are means over rows."""
    from coterie.estimators.comparison import Comparison

    methods, errors = tuple(map(str, note["methods"])), np.array(note["errors"], dtype=float)
    if errors.ndim != 2 or len(errors) != len(methods) or not errors.size:
        raise ValueError(f"{len(methods)} methods need as many rows of errors, got shape {errors.shape}")
    weights = np.array(note.get("weights", np.ones(errors.shape[1])), dtype=float)
    if weights.shape != errors.shape[1:] or not (weights > 0).all():
        raise ValueError(f"{errors.shape[1]} folds need as many positive weights, got {weights.tolist()}")
    if "measure" not in note:
        note, errors = {**note, "measure": measure.name, "degree": measure.degree}, measure.of_mean(errors)
    kind = {"measure": str(note["measure"]), "degree": int(note["degree"]), "repeats": int(note.get("repeats", 1))}
    return Comparison(methods, errors, str(note["over"]), weights, **kind)  # type: ignore[arg-type]


def _rows(note: dict[str, list[Any]]) -> list[dict[str, Any]]:
    if missing := [column for column in RESOLVABILITY if column not in note]:
        raise ValueError(f"it has no column {', '.join(missing)}")
    return [dict(zip(note, row, strict=True)) for row in zip(*note.values(), strict=True)]
