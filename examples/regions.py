"""Regions of weather stations: so many groups as you ask for, by their weather and by the models of their rows.

    python examples/regions.py fmi_daily.csv [--clusters 4]

194 stations of the Finnish Meteorological Institute, 40 days of a winter (weather.py says where they come from).
The data are not part of the project.
Prints groups of stations by convex clustering of place, mean low and mean high, and groups that share a regression of
a day's high on its low, each with its size, its middle and what it has in common.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import coterie as ct


def read_stations(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows, and one row per station: where it is, and its mean low and high."""
    table = pd.read_csv(path).dropna(subset=["tmax", "tmin"])
    return table, table.groupby("station")[["lat", "lon", "tmin", "tmax"]].mean()


def show(stations: pd.DataFrame, labels: object) -> None:
    """Print a line for each group, the largest first."""
    groups = stations.groupby(labels)
    lines = groups.mean().assign(stations=groups.size()).sort_values("stations", ascending=False)
    print(lines.round(2).to_string(index=False), end="\n\n")


def main() -> None:
    """Find groups in two ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--clusters", type=int, default=4)
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        parser.error(f"there is no file {arguments.data}. It is not part of the project; see weather.py")
    table, stations = read_stations(arguments.data)
    scaled = (stations - stations.mean()) / stations.std()
    weather = ct.ConvexClustering(arguments.clusters).fit(scaled)
    print(f"by place and weather, λ = {weather.lam_:.3g}, gap {weather.solution_.gap:.0e}:")
    show(stations, weather.labels_)
    graph = ct.knn_graph(stations[["lat", "lon"]], k=5)
    model = ct.NetworkedLinearRegression(graph, n_clusters=arguments.clusters, penalty="l2")
    model.fit(table[["station", "tmin"]], table["tmax"], groups="station")
    print(f"by the regression of highs on lows, λ = {model.lam_:.3g}, gap {model.gap_:.0e}:")
    models = model.coef_frame().set_index("node")[["tmin", "intercept"]].add_prefix("model ")
    show(stations.join(models), model.clusters_)


if __name__ == "__main__":
    main()
