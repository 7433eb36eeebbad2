"""What the apps at both ends need: the configuration, and a site's files.

A site is a folder with `data.parquet` or `data.csv` (rows with the id of their node, the same columns everywhere) and,
if its nodes have edges among themselves, `edges.parquet` or `edges.csv` (two nodes a row, and perhaps a weight).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.federation.site import Site
from coterie.io.sources import import_polars
from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.losses import Lasso, Logistic, Loss, SquaredError
from coterie.problem.penalties import Penalty, as_penalty

LOSSES = ("squared", "lasso", "logistic")


class BadSiteError(ValueError):
    """A file or setting that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Settings:
    """What all sites agree on, from the app's configuration."""

    node: str
    label: str
    loss: Loss
    penalty: Penalty
    lam: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """Read the run configuration of a Flower app."""
        return cls(str(config["node"]), str(config["label"]), _loss(config), _penalty(config), float(config["lam"]))


@dataclass(frozen=True, eq=False)
class SiteFiles:
    """A site's folder, read: the ids of its nodes in the order of its problem, its schema, and its problem."""

    folder: Path
    nodes: list[str]
    columns: tuple[str, ...]
    problem: Problem

    @classmethod
    def read(cls, folder: Path, settings: Settings) -> SiteFiles:
        """Read and check a folder; what is wrong is said with the name of the site."""
        try:
            return cls._read(folder, settings)
        except (TypeError, ValueError) as error:
            raise BadSiteError(f"{folder.name}: {error}") from None

    @classmethod
    def _read(cls, folder: Path, settings: Settings) -> SiteFiles:
        path = find_table(folder, "data")
        if path is None:
            raise BadSiteError("there is neither data.parquet nor data.csv")
        data = _table(path)
        for name in (settings.node, settings.label):
            if name not in data.columns:
                raise BadSiteError(f"there is no column {name!r}; the columns are {data.columns}")
        features = [name for name in data.columns if name not in (settings.node, settings.label)]
        of_rows = _ids(data, settings.node)
        inner = find_table(folder, "edges")
        ends, weights = ([], np.empty(0)) if inner is None else read_edges(inner)
        nodes = sorted({*of_rows, *(node for pair in ends for node in pair)})
        number = {node: k for k, node in enumerate(nodes)}
        pairs = np.array([[number[a], number[b]] for a, b in ends], dtype=np.int64).reshape(-1, 2)
        graph = EmpiricalGraph.from_edges(pairs, weights, n_nodes=len(nodes))
        X = np.stack([_numbers(data, name) for name in features], axis=1)
        rows = LocalDatasets.from_rows(X, _numbers(data, settings.label), [number[n] for n in of_rows], len(nodes))
        problem = Problem(graph, rows, settings.loss, settings.penalty, settings.lam)
        return cls(folder, nodes, (*features, settings.label), problem)

    def site(self, boundary: Sequence[str]) -> Site:
        """Return the site, asked about these nodes of its own."""
        number = {node: k for k, node in enumerate(self.nodes)}
        unknown = [node for node in boundary if node not in number]
        if unknown:
            raise BadSiteError(f"{self.folder.name} does not host node {unknown[0]!r}")
        return Site(self.problem, np.array([number[node] for node in boundary], dtype=np.int64))

    def hosted(self, nodes: Sequence[str]) -> NDArray[np.int64]:
        """Which of these nodes live here."""
        return np.flatnonzero(np.isin(np.array(nodes, dtype=object), self.nodes)) if nodes else np.empty(0, np.int64)


def read_edges(path: Path) -> tuple[list[tuple[str, str]], NDArray[np.float64]]:
    """Read two columns of node ids and perhaps a third of weights."""
    table = _table(path)
    if len(table.columns) not in (2, 3):
        raise BadSiteError(
            f"{path.name} must have two columns of nodes and perhaps one of weights; got {table.columns}"
        )
    a, b = (_ids(table, name) for name in table.columns[:2])
    weights = _numbers(table, table.columns[2]) if len(table.columns) == 3 else np.ones(len(a))
    return list(zip(a, b, strict=True)), weights


def find_table(folder: Path, stem: str) -> Path | None:
    """Return the table of that name, whichever kind there is."""
    return next((folder / f"{stem}{end}" for end in (".parquet", ".csv") if (folder / f"{stem}{end}").exists()), None)


def _table(path: Path) -> Any:
    pl = import_polars()
    try:
        return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadSiteError(f"{path.name} cannot be read: {error}") from None


def _ids(table: Any, name: str) -> list[str]:
    """A column of node ids as text."""
    ids = table[name].to_list()
    if None in ids:
        raise BadSiteError(f"column {name!r} has no node id in row {ids.index(None) + 1}; fill or drop the row")
    return [str(node) for node in ids]


def _numbers(table: Any, name: str) -> NDArray[np.float64]:
    """A column as floats, with nan where it is empty."""
    try:
        values = [np.nan if value is None else float(value) for value in table[name].to_list()]
    except (TypeError, ValueError) as error:
        raise BadSiteError(f"column {name!r} must hold numbers ({error})") from None
    return np.array(values, dtype=np.float64)


def _loss(config: Mapping[str, Any]) -> Loss:
    name = str(config["loss"])
    if name not in LOSSES:
        raise BadSiteError(f"there is no loss {name!r}; choose one of {', '.join(LOSSES)}")
    if name == "lasso":
        return Lasso(float(config["alpha"]))
    ridge = float(config["ridge"])
    return SquaredError(ridge=ridge) if name == "squared" else Logistic(ridge=ridge)


def _penalty(config: Mapping[str, Any]) -> Penalty:
    try:
        return as_penalty(str(config["penalty"]))
    except ValueError as error:
        raise BadSiteError(str(error)) from None
