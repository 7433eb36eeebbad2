"""Fitted models to files and back. The training rows are not among what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from numbers import Integral
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.criterion import CriterionChoice
from coterie.estimators.held_out import HeldOut
from coterie.estimators.information import Information, InformationMixin
from coterie.estimators.intervals import Calibration
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.offsets import Offset
from coterie.estimators.refit import Refit
from coterie.estimators.saved_graph import edges_of, graph_of, names_of
from coterie.estimators.scaling import Scaling
from coterie.estimators.shared import without_hub
from coterie.estimators.space_time import SpaceTime
from coterie.estimators.variants import CHOSEN, OF_GRAPHS
from coterie.io.errors import ModelFileError
from coterie.io.model import read_model, write_model
from coterie.io.preparation import Preparation
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.penalties import PENALTIES, Penalty
from coterie.solver import Record, Solution, Status

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

PACKAGES = ("coterie", "numpy", "scipy", "numba", "scikit-learn")
KINDS = ("Lasso", *(f"{kind}Regression" for kind in ("Huber", "Linear", "Logistic", "Poisson", "Quantile")))
MODELS = tuple(f"Networked{kind}{cv}" for kind in KINDS for cv in ("", "CV"))
BY_NAME = ("class_weight", "column_strength", "lower", "upper")  # parameters that may be dicts
CERTIFICATE = ("objective", "dual_bound", "gap", "unconditional", "condition", "n_iter", "seconds")


class PersistenceMixin(InformationMixin):
    """Write a model to a folder. Mixed into a networked model; the attributes are its own."""

    penalty: str | Penalty
    solution_: Solution
    graph_: EmpiricalGraph
    lam_: float
    row_weight_: float
    n_features_in_: int
    groups_column_: str | list[str] | None
    frame_library_: str | None
    n_labelled_: Array
    node_errors_: Array
    scaling_: Scaling
    space_time_: SpaceTime | None
    first_graph_: EmpiricalGraph | None
    time_strength_: float
    preparation_: Preparation | None = None
    _refit: Refit | None
    offset_: Offset | None = None
    strengths_: Array | None
    _write: Callable[[Path, dict[str, Any], dict[str, Array]], None] = staticmethod(write_model)

    def save(self, path: str | Path, notes: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a folder, for :func:`coterie.load`. The training rows are not written.

        Parameters
        ----------
        path : str or Path
            A folder; a model that is there already is replaced in one step.
        notes : dict, default=None
            Anything that JSON can hold and that should travel with the model: where the data came from, say. None:
            those that it was loaded with.

        Raises
        ------
        TypeError
            If a node id or the penalty is of a type that a model file cannot hold.
        """
        check_is_fitted(self)
        solution, graph = self.solution_, self.solution_.graph
        record = {
            "estimator": type(self).__name__,
            "parameters": _parameters(self),
            "lam": self.lam_,
            "row_weight": self.row_weight_,
            "n_features": self.n_features_in_,
            "feature_names": getattr(self, "feature_names_in_", None),
            "classes": getattr(self, "classes_", None),
            "class_weights": getattr(self, "class_weight_", None),
            "offset": self.offset_,
            "groups_column": self.groups_column_,
            "frame_library": self.frame_library_,
            "target_name": getattr(self, "target_name_", None),
            **names_of(graph),
            "certificate": {name: getattr(solution, name) for name in CERTIFICATE} | {"status": solution.status.name},
            "history": [list(line) for line in solution.history],
            "preparation": None if self.preparation_ is None else asdict(self.preparation_),
            "versions": versions(),
            "notes": getattr(self, "notes_", {}) if notes is None else notes,
            "chosen": {name: getattr(self, name) for name in OF_GRAPHS if hasattr(self, name)},
        }
        arrays = {
            "w": solution.w,
            "u": solution.u,
            **edges_of(graph, self.space_time_, self.first_graph_),
            "undetermined": solution.undetermined,
            "n_labelled": self.n_labelled_,
            "node_errors": self.node_errors_,
            "centre": np.append(self.scaling_.centre, self.scaling_.y_centre),
            "spread": np.append(self.scaling_.spread, self.scaling_.y_spread),
        }
        if self.space_time_ is not None:
            record["time_strength"] = self.time_strength_
        if self.strengths_ is not None:
            arrays["strength"] = self.strengths_
        if isinstance(choice := getattr(self, "lam_choice_", None), LamChoice):
            record |= {"over": choice.over, "degree": choice.degree}
            arrays |= {f"cv_{name}": getattr(choice, name) for name in ("lams", "errors", "gaps", "weights")}
            others = {name: getattr(choice, name) for name in CHOSEN}
            arrays |= {f"cv_{name}": values for name, values in others.items() if values is not None}
        if self._refit is not None:
            arrays |= {"refit_w": self._refit.w, "refit_errors": self._refit.errors}
        if isinstance(calibration := getattr(self, "calibration_", None), Calibration):
            record["calibration"] = {"by": calibration.by, "how": calibration.how}
            arrays["calibration_residuals"] = calibration.residuals
        if (known := self._known_information()) is not None:
            record["information"] = known._asdict()
        if isinstance(criterion := getattr(self, "criterion_choice_", None), CriterionChoice):
            record["criterion"] = criterion.criterion
            arrays |= {f"criterion_{name}": values for name, values in criterion.results().items()}
        if isinstance(held_out := getattr(self, "held_out_", None), HeldOut):
            record["held_out"], found = held_out.split()
            arrays |= {f"held_out_{name}": array for name, array in found.items()}
        self._write(Path(path), record, arrays)


def load(path: str | Path) -> NetworkedModel:
    """Read a model that its method ``save`` wrote.

    Parameters
    ----------
    path : str or Path
        The folder that it was saved to.

    Returns
    -------
    NetworkedModel
        The fitted model, without its training rows. `notes_` and `versions_` are what was saved with it.

    Raises
    ------
    ModelFileError
        If the folder holds no model, or one that is damaged or newer than this version of Coterie.

    Examples
    --------
    >>> import tempfile
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1)])
    >>> model = ct.NetworkedLinearRegression(graph).fit([[1.0], [2.0], [3.0]], [2.0, 4.0, 6.0], groups=[0, 0, 1])
    >>> folder = tempfile.mkdtemp()
    >>> model.save(folder)
    >>> bool((ct.load(folder).coef_ == model.coef_).all())
    True
    """
    record, arrays = read_model(Path(path))
    try:
        if record["schema"] == 1:
            record, arrays = _from_schema_1(record, arrays)
        return _restore(record, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{path}: the model is damaged ({type(error).__name__}: {error})") from error


def _from_schema_1(record: dict[str, Any], arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what is written today: nodes counted alike unless reduction was "sum", folds did, errors had no unit."""
    parameters = dict(record["parameters"])
    parameters["weight_by"] = "rows" if parameters.pop("reduction", "mean") == "sum" else "nodes"
    if "over" in record:
        unit = arrays["spread"][-1] ** 2
        arrays |= {"cv_errors": unit * arrays["cv_errors"], "cv_weights": np.ones(arrays["cv_errors"].shape[1])}
    return record | {"parameters": parameters, "row_weight": 1.0}, arrays


def _restore(record: dict[str, Any], arrays: dict[str, Array]) -> NetworkedModel:
    first, both = graph_of(record, arrays)
    parameters, graph = _known(record), first
    given = tuple(both) if both is not None else without_hub(first) if parameters.get("shared") else first
    model = _class_of(record["estimator"])(given, **parameters)
    if "adapted_weights" in arrays:
        model.first_graph_, graph = first, replace(first, weights=arrays["adapted_weights"])
    model.space_time_ = both
    if both is not None:
        model.time_strength_ = record["time_strength"]
    for name in OF_GRAPHS:
        if name in record.get("chosen", {}):
            setattr(model, name, record["chosen"][name])
    certificate = {name: _number(value) for name, value in record["certificate"].items()}
    solution = Solution(
        w=arrays["w"],
        u=arrays["u"],
        undetermined=arrays["undetermined"],
        graph=graph,
        history=tuple(Record(*map(_number, line)) for line in record["history"]),
        **certificate | {"status": Status[record["certificate"]["status"]]},
    )
    model.n_features_in_ = record["n_features"]
    if record["feature_names"] is not None:
        model.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    if record["classes"] is not None:
        model.classes_ = np.array(record["classes"])
        model.class_weight_ = np.array(record.get("class_weights") or [1.0] * len(model.classes_))
    model.groups_column_, model.frame_library_ = record["groups_column"], record["frame_library"]
    model.lam_, model.notes_, model.versions_ = _number(record["lam"]), record["notes"], record["versions"]
    model.row_weight_, model.preparation_ = record["row_weight"], _preparation(record.get("preparation"))
    model.target_name_, model.strengths_ = record.get("target_name"), arrays.get("strength")
    model.offset_ = None if record.get("offset") is None else Offset(*record["offset"])
    model.n_labelled_, model.node_errors_ = arrays["n_labelled"], arrays["node_errors"]
    *centre, y_centre = arrays["centre"]
    *spread, y_spread = arrays["spread"]
    model.scaling_ = Scaling(np.array(centre), np.array(spread), float(y_centre), float(y_spread))
    if "over" in record:
        lams, errors, gaps, weights = (arrays[f"cv_{name}"] for name in ("lams", "errors", "gaps", "weights"))
        measure = model._loss(()).measure
        if "degree" not in record:  # means of errors of rows, as they were once written
            errors = measure.of_mean(errors)
        varied: dict[str, Any] = {name: arrays.get(f"cv_{name}") for name in CHOSEN}
        how = model.cv_repeats, measure.degree
        model.lam_choice_ = LamChoice(lams, errors, gaps, record["over"], weights, *how, **varied)
        model.cv_results_ = model.lam_choice_.results()
    if "held_out" in record:
        model.held_out_ = HeldOut.joined(
            {name: _number(value) for name, value in record["held_out"].items()},
            {name.removeprefix("held_out_"): array for name, array in arrays.items() if name.startswith("held_out_")},
        )
    model._take(solution, Refit(arrays["refit_w"], arrays["refit_errors"]) if "refit_w" in arrays else None)
    if "calibration" in record:
        model.calibration_ = Calibration(**record["calibration"], residuals=arrays["calibration_residuals"])
    if "information" in record:
        model._information = Information(**{name: _number(value) for name, value in record["information"].items()})
    if "criterion" in record:
        names = ("lam", "effective_parameters", "deviance", "aicc", "bic", "gap")
        model.criterion_choice_ = CriterionChoice(record["criterion"], *(arrays[f"criterion_{name}"] for name in names))
    federation = record["notes"].get("federation")
    if isinstance(federation, dict) and "clusters" in federation:  # its inner edges are not in the graph
        model.clusters_ = np.array(federation["clusters"], dtype=np.int64)
    return model


def _preparation(made: dict[str, Any] | None) -> Preparation | None:
    """What columns of files became before they were features; older models knew no such thing."""
    if made is None:
        return None
    levels = {name: tuple(known) for name, known in made["levels"].items()}
    return Preparation(tuple(made["columns"]), levels, made["missing"], made["means"])


def _known(record: dict[str, Any]) -> dict[str, Any]:
    """The parameters; models that draw nothing were once written with a random_state."""
    draws, parameters = record["estimator"].endswith("CV"), dict(record["parameters"])
    for name in BY_NAME:
        pairs = parameters.get(name)
        if isinstance(pairs, list) and all(isinstance(pair, list) for pair in pairs):
            parameters[name] = {key: _number(value) for key, value in pairs}
    for name in ("lower", "upper"):
        if not isinstance(given := parameters.get(name), dict):
            parameters[name] = list(map(_number, given)) if isinstance(given, list) else _number(given)
    return {name: value for name, value in parameters.items() if draws or name != "random_state"}


def _class_of(name: str) -> type[NetworkedModel]:
    if name not in MODELS:
        raise ValueError(f"there is no estimator {name!r}")
    return getattr(import_module("coterie.estimators"), name)


def versions() -> dict[str, str]:
    """What is installed here of what a fit depends on."""
    return {name: version(name) for name in PACKAGES} | {"python": python_version()}


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters but for the graph, each as JSON can hold it."""
    parameters, of_class = model.get_params(deep=False), signature(type(model)).parameters
    for name in ("graph", "threads", "n_jobs"):  # how many a machine has says nothing about a model
        parameters.pop(name, None)
    for name in ("cv", "random_state", "engine", "verbose"):  # an object, such as a splitter, matters to a fit only
        if not isinstance(parameters.get(name), Integral | str | None):
            parameters[name] = of_class[name].default
    for name in ("lower", "upper"):
        if not isinstance(given := parameters.get(name), dict | None):
            parameters[name] = np.asarray(given, dtype=np.float64).tolist()
    for name in BY_NAME:  # the keys of JSON are text, classes and columns may be numbers
        if isinstance(given := parameters.get(name), dict):
            parameters[name] = list(map(list, given.items()))
    if not isinstance(model.penalty, str):
        name_of = {penalty: name for name, penalty in PENALTIES.items()}
        if model.penalty not in name_of:
            raise TypeError(
                f"a model file cannot hold {model.penalty!r}; it takes the penalties {', '.join(PENALTIES)}"
            )
        parameters["penalty"] = name_of[model.penalty]
    return parameters


def _number(value: Any) -> Any:
    """Undo the strings that stand for numbers that are not finite."""
    return float(value) if value in ("nan", "inf", "-inf") else value
