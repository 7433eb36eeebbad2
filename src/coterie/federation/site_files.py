"""What the apps at both ends need: the configuration, and a site's files.

A site is a folder with `data.parquet` or `data.csv` (rows with the id of their node, the same columns everywhere) and,
if its nodes have edges among themselves, `edges.parquet` or `edges.csv` (two columns of nodes, and perhaps one called
weight). Both are read as `coterie fit` reads them. Across sites the id of a node is text.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.federation.classes import class_names, loss_of_classes, numbered
from coterie.federation.dp_moments import RowPrivacy
from coterie.federation.released_rows import promised_rows
from coterie.federation.site import Site
from coterie.federation.site_folder import find_table
from coterie.io.edges import read_graph
from coterie.io.files import staged_file
from coterie.io.rows import Columns, read_rows
from coterie.io.sources import cell
from coterie.io.tables import count_rows
from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses import Huber, Lasso, Logistic, Loss, Poisson, Quantile, SquaredError
from coterie.problem.losses.multinomial import weight_names
from coterie.problem.penalties import Penalty, as_penalty


def _costs(config: Mapping[str, Any]) -> dict[str, Any]:
    """What weights cost by themselves."""
    return {"ridge": float(config["ridge"]), "l1": float(config.get("l1", 0.0))}


LOSSES: dict[str, Callable[[Mapping[str, Any]], Loss]] = {
    "squared": lambda config: SquaredError(**_costs(config)),
    "lasso": lambda config: Lasso(float(config["alpha"])),
    "logistic": lambda config: loss_of_classes(class_names(config), **_costs(config)),
    "poisson": lambda config: Poisson(**_costs(config)),
    "huber": lambda config: Huber(**_costs(config), delta=float(config.get("delta", 1.0))),
    "quantile": lambda config: Quantile(**_costs(config), q=float(config.get("quantile", 0.5))),
}
MOMENTS = (SquaredError, Lasso)  # losses that see moments of the rows, and nothing else of them
PROBLEM = (  # the settings that say what is solved
    *("loss", "alpha", "ridge", "l1", "delta", "quantile", "classes", "penalty", "lam"),
    *("node", "label", "offset", "exposure"),
)
SETTINGS = (  # of a run, as far as sites have to know them
    *(*PROBLEM, "share-weights"),
    *("privacy-noise", "privacy-clip", "privacy-rounds", "privacy-delta"),
    *("row-privacy-epsilon", "row-privacy-delta", "row-privacy-x-clip", "row-privacy-y-clip"),
)


class BadSiteError(ValueError):
    """A file or setting that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Settings:
    """What all sites agree on, from the app's configuration.

    `offset` or `exposure` is the column of what is known of a count beforehand; empty where there is none. `classes`
    are the names of classes; empty where these are 0 and 1, or where there are none.
    """

    node: str
    label: str
    loss: Loss
    penalty: Penalty
    lam: float
    row_privacy: RowPrivacy | None = None
    offset: str = ""
    exposure: str = ""
    classes: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """Read the run configuration of a Flower app."""
        loss, row_privacy = _loss(config), RowPrivacy.of(config)
        if row_privacy is not None and not isinstance(loss, MOMENTS):
            raise BadSiteError("row-level privacy is for the losses squared and lasso, which see moments only")
        known = str(config.get("offset", "")), str(config.get("exposure", ""))
        if any(known) and not isinstance(loss, Poisson):
            raise BadSiteError("offset and exposure are for the loss poisson")
        if all(known):
            raise BadSiteError("an exposure is an offset, its logarithm: name one of the two columns, not both")
        if config.get("l1") and isinstance(loss, Lasso):
            raise BadSiteError("l1 is for other losses than lasso, which calls it alpha")
        if config.get("classes") and config["loss"] != "logistic":
            raise BadSiteError("classes are for the loss logistic")
        node, label = str(config["node"]), str(config["label"])
        return cls(node, label, loss, _penalty(config), float(config["lam"]), row_privacy, *known, class_names(config))

    def weight_names(self, features: Sequence[str]) -> list[str]:
        """The columns of weights; where each class has its own, with its name."""
        return weight_names(features, self.classes) if len(self.classes) > 2 else list(features)


@dataclass(frozen=True, eq=False)
class SiteFiles:
    """A site's folder, read: ids of nodes in the order of its problem, the schema, the problem, and the rows."""

    folder: Path
    nodes: list[str]
    columns: tuple[str, ...]
    weight_names: list[str]
    problem: Problem
    rows: LocalDatasets

    @classmethod
    def read(cls, folder: Path, settings: Settings, features: Sequence[str] | None = None) -> SiteFiles:
        """Read and check a folder; what is wrong is said with the name of the site.

        Without `features`, all columns are that are neither node nor label.
        """
        try:
            return cls._read(folder, settings, features)
        except (TypeError, ValueError) as error:
            raise BadSiteError(f"{folder.name}: {error}") from None

    @classmethod
    def _read(cls, folder: Path, settings: Settings, features: Sequence[str] | None) -> SiteFiles:
        path, inner = find_table(folder, "data"), find_table(folder, "edges")
        if path is None:
            raise BadSiteError("there is neither data.parquet nor data.csv")
        known = settings.offset or settings.exposure or None
        of = settings.node, settings.label, features
        columns = Columns.of(path, *of, classes=bool(settings.classes), offset=known)
        table = read_rows(path, columns)
        of_rows = [str(node) for node in table[settings.node].to_list()]
        ends, weights = ([], np.empty(0)) if inner is None else read_edges(inner)
        nodes = sorted({*of_rows, *(node for pair in ends for node in pair)})
        number = {node: k for k, node in enumerate(nodes)}
        pairs = np.array([[number[a], number[b]] for a, b in ends], dtype=np.int64).reshape(-1, 2)
        graph = EmpiricalGraph.from_edges(pairs, weights, n_nodes=len(nodes))
        X, y = table.select(columns.features).to_numpy(), _labels(path, columns, settings, table[settings.label])
        offset = None if known is None else _offset(settings, table[known].to_numpy())
        rows = LocalDatasets.from_rows(X, y, [number[node] for node in of_rows], len(nodes), offset=offset)
        shown = promised_rows(folder, rows, settings.row_privacy)
        problem = Problem(graph, shown, settings.loss, settings.penalty, settings.lam)
        names = settings.weight_names(columns.features)
        return cls(folder, nodes, (*columns.features, settings.label), names, problem, rows)

    def site(self, boundary: Sequence[str], round_to: float = 0.0) -> Site:
        """Return the site, asked about these nodes of its own."""
        number = {node: k for k, node in enumerate(self.nodes)}
        unknown = [node for node in boundary if node not in number]
        if unknown:
            raise BadSiteError(f"{self.folder.name} does not host node {unknown[0]!r}")
        return Site(self.problem, np.array([number[node] for node in boundary], dtype=np.int64), round_to)


def read_edges(path: Path) -> tuple[list[tuple[str, str]], NDArray[np.float64]]:
    """Read edges as `coterie fit` does, by the names of the columns; ids become text. There may be no edge at all."""
    if count_rows(path) == 0:
        return [], np.empty(0)
    graph = read_graph(path)
    names = [str(name) for name in graph.names]
    return [(names[i], names[j]) for i, j in graph.edges.tolist()], graph.weights


def write_weights(path: Path, nodes: Sequence[str], features: Sequence[str], w: Array) -> None:
    """Write one row per node, with as many digits as it takes to read the same numbers back."""
    with staged_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["node", *features])
        writer.writerows([node, *(repr(float(x)) for x in row)] for node, row in zip(nodes, w, strict=True))


def _labels(path: Path, columns: Columns, settings: Settings, given: Any) -> Array:
    """Labels as numbers; those that a loss cannot have are refused, with the row of the file."""
    y = numbered(given.to_list(), settings.classes) if settings.classes else given.to_numpy()
    if settings.classes:
        wrong, rule = y < 0, f"the classes of this run are {', '.join(settings.classes)}"
    elif isinstance(settings.loss, Poisson):
        wrong, rule = y < 0, "counts are numbers ≥ 0"
    elif isinstance(settings.loss, Logistic):
        wrong, rule = ~np.isin(y, (0, 1)) & ~np.isnan(y), "without names of classes labels are 0 or 1 at every site"
    else:
        return np.asarray(y)
    if wrong.any():
        r = int(np.argmax(wrong))
        shown = given[r] if isinstance(given[r], str) else f"{given[r]:g}"
        raise BadSiteError(f"{cell(path, str(columns.target), r + 1)}: {shown}; {rule}, empty where unknown")
    return np.asarray(y)


def _offset(settings: Settings, known: Array) -> Array:
    """What is added to ⟨x, w⟩ of each row."""
    if settings.offset:
        return known
    if not (known > 0).all():
        raise BadSiteError(f"the column {settings.exposure!r} has {known.min():g}; exposures are numbers > 0")
    return np.log(known)


def _loss(config: Mapping[str, Any]) -> Loss:
    name = str(config["loss"])
    if name not in LOSSES:
        raise BadSiteError(f"there is no loss {name!r}; choose one of {', '.join(LOSSES)}")
    try:
        return LOSSES[name](config)
    except ValueError as error:
        raise BadSiteError(f"loss {name!r}: {error}") from None


def _penalty(config: Mapping[str, Any]) -> Penalty:
    try:
        return as_penalty(str(config["penalty"]))
    except ValueError as error:
        raise BadSiteError(str(error)) from None
