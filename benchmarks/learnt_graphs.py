"""Graphs from places and from the data, as given and with weights that are learnt, on two public tables.

    python -m benchmarks.learnt_graphs fmi_daily.csv sacramento.csv [--over rows nodes]

Weather: the high of a day from its low, one node per station (194). Houses: the logarithm of the price from beds,
baths and area, one node per zip code with at least four sales. Printed are the error of the rows held out by three
folds, each with the λ and k that the other folds choose, its standard error, the clusters, and CPU seconds. The folds
make and learn their graphs from their own training rows.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import polars as pl

import coterie as ct

K = (3, 5, 10, 20)


def weather(path: str) -> tuple[np.ndarray, np.ndarray, list[str], ct.EmpiricalGraph]:
    """Lows, highs, stations, and the five nearest neighbours of each."""
    table = pl.read_csv(path).drop_nulls(["tmin", "tmax"])
    places = table.group_by("station", maintain_order=True).agg(pl.col("lat", "lon").first())
    graph = ct.knn_graph(places.select("lat", "lon").to_numpy(), 5, ids=places["station"].to_list())
    return table.select("tmin").to_numpy(), table["tmax"].to_numpy(), table["station"].to_list(), graph


def houses(path: str) -> tuple[np.ndarray, np.ndarray, list[int], ct.EmpiricalGraph]:
    """Beds, baths and area, logarithms of prices, zip codes, and the five nearest neighbours of each."""
    table = pl.read_csv(path).filter((pl.col("sq__ft") > 0) & (pl.col("price") > 10_000))
    table = table.filter(pl.len().over("zip") >= 4)
    places = table.group_by("zip", maintain_order=True).agg(pl.col("latitude", "longitude").mean())
    graph = ct.knn_graph(places.select("latitude", "longitude").to_numpy(), 5, ids=places["zip"].to_list())
    X = table.select("beds", "baths", pl.col("sq__ft").log()).to_numpy()
    return X, np.log(table["price"].to_numpy()), table["zip"].to_list(), graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weather")
    parser.add_argument("houses")
    parser.add_argument("--over", nargs="+", default=["rows"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, (X, y, nodes, near) in (("weather", weather(arguments.weather)), ("houses", houses(arguments.houses))):
        for over in arguments.over:
            print(f"{name}, {len(y)} rows at {near.n_nodes} nodes, folds over {over}", flush=True)
            for what, graph in (("places", near), ("data", ct.SimilarityGraph(k=K))):
                for way in ({}, {"adaptive": True}, {"learn_graph": True}):
                    report(
                        what,
                        way,
                        ct.NetworkedLinearRegressionCV(
                            graph, n_lams=12, cv=3, over=over, random_state=0, tol=1e-4, **way
                        ),
                        X,
                        y,
                        nodes,
                    )


def report(what: str, way: dict[str, bool], model: ct.NetworkedLinearRegressionCV, X, y, nodes) -> None:
    """Fit, and print a line."""
    began = time.process_time()
    model.fit(X, y, groups=nodes)
    seconds, found = time.process_time() - began, model.held_out_
    k = f", k = {model.n_neighbours_}" if hasattr(model, "n_neighbours_") else ""
    print(
        f"  graph from {what}{k}, {next(iter(way), 'one fit')}: {found.error:.4f} ± {found.standard_error:.4f}, "
        f"{model.clusters_.max() + 1} clusters, {seconds:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
