"""Networks whose nodes have very different numbers of rows, drawn or made of public tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import coterie as ct

BLOCKS, FEATURES = 3, 3


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of the nodes of a graph; y is 0 or 1 where it holds classes."""

    graph: ct.EmpiricalGraph
    X: np.ndarray
    y: np.ndarray
    nodes: np.ndarray

    def part(self, keep: np.ndarray) -> Table:
        """Some of the rows."""
        return replace(self, X=self.X[keep], y=self.y[keep], nodes=self.nodes[keep])


def drawn(seed: int, classes: bool, n_nodes: int = 60, signal: float = 1.0, more: int = 0) -> tuple[Table, Table]:
    """Return a table, and another of the same truth with `more` times its rows.

    Three blocks, each with a model of its own, from which that of a node differs a little. Numbers of rows are
    log-normal: a median of 4 or 5, 1 to 300.
    """
    rng = np.random.default_rng(seed)
    block = rng.permutation(np.arange(n_nodes) % BLOCKS)
    likely = np.where(block[:, None] == block, 0.3, 0.02)
    joined = np.argwhere(np.triu(rng.random((n_nodes, n_nodes)) < likely, 1))
    truth = signal * rng.standard_normal((BLOCKS, FEATURES + 1))[block] + 0.15 * rng.standard_normal(
        (n_nodes, FEATURES + 1)
    )
    m = np.clip(np.round(np.exp(1.5 + 1.5 * rng.standard_normal(n_nodes))), 1, 300).astype(int)
    graph = ct.EmpiricalGraph.from_edges(joined, n_nodes=n_nodes)

    def rows(m: np.ndarray) -> Table:
        nodes = np.repeat(np.arange(n_nodes), m)
        X = rng.standard_normal((len(nodes), FEATURES))
        z = (X * truth[nodes, :FEATURES]).sum(axis=1) + truth[nodes, FEATURES]
        noisy = z + (rng.logistic(size=len(z)) if classes else rng.standard_normal(len(z)))
        return Table(graph, X, (noisy > 0).astype(float) if classes else noisy, nodes)

    return rows(m), rows(more * m)


def houses(folder: Path, seed: int) -> Table:
    """Sales in Sacramento: a node per zip code, of 1 to 61 sales; the price from beds, baths and area."""
    import polars as pl

    table = pl.read_csv(folder / "sacramento.csv").filter((pl.col("sq__ft") > 0) & (pl.col("beds") > 0))
    return _joined(table, "zip", ["latitude", "longitude"], ["beds", "baths", "sq__ft"], "price")


def days(folder: Path, seed: int) -> Table:
    """Daily highs of Finnish stations from the day before, of which each station has kept a log-normal number."""
    import polars as pl

    table = pl.read_csv(folder / "fmi_daily.csv").sort("station", "day")
    before = [pl.col(name).shift(1).over("station").alias(f"{name} before") for name in ("tmax", "tmin")]
    table = table.with_columns(before).drop_nulls()
    table = _thinned(table, "station", seed)
    return _joined(table, "station", ["lat", "lon"], ["tmax before", "tmin before"], "tmax")


def hours(folder: Path, seed: int) -> Table:
    """Hourly temperatures of Finnish stations from the hour of the week, of which each has kept a log-normal number."""
    import polars as pl

    table = pl.read_csv(folder / "fmi_temperature.csv.gz", try_parse_dates=True).drop_nulls()
    hour = pl.col("Timestamp").dt.hour() * (np.pi / 12)
    day = (pl.col("Timestamp") - pl.col("Timestamp").min()).dt.total_hours() / 24
    table = table.with_columns(hour.sin().alias("sin"), hour.cos().alias("cos"), day.alias("day"))
    table = _thinned(table, "name", seed)
    return _joined(table, "name", ["Latitude", "Longitude"], ["sin", "cos", "day"], "temp")


def _thinned(table: Any, node: str, seed: int) -> Any:
    """Keep a log-normal number of rows of each node, at least one."""
    import polars as pl

    rng = np.random.default_rng(seed)
    keep = []
    for part in table.with_row_index("row").partition_by(node, maintain_order=True):
        m = int(np.clip(np.round(np.exp(1.5 + 1.5 * rng.standard_normal())), 1, len(part)))
        keep.append(rng.choice(part["row"].to_numpy(), m, replace=False))
    return table.with_row_index("row").filter(pl.col("row").is_in(np.concatenate(keep).tolist())).drop("row")


def _joined(table: Any, node: str, places: list[str], features: list[str], target: str) -> Table:
    """Join each node to its five nearest."""
    from sklearn.neighbors import NearestNeighbors

    names, nodes = np.unique(table[node].to_numpy(), return_inverse=True)
    at = np.array([table.select(places).to_numpy()[nodes == k].mean(axis=0) for k in range(len(names))])
    at[:, 1] *= np.cos(np.radians(at[:, 0].mean()))
    near = NearestNeighbors(n_neighbors=6).fit(at).kneighbors(at, return_distance=False)
    pairs = {(min(i, int(j)), max(i, int(j))) for i, row in enumerate(near) for j in row if i != j}
    graph = ct.EmpiricalGraph.from_edges(sorted(pairs), n_nodes=len(names))
    X, y = table.select(features).to_numpy().astype(float), table[target].to_numpy().astype(float)
    return Table(graph, X, y, nodes)
