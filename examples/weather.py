"""Tomorrow's highest temperature at every weather station, learnt at a few stations in a few days.

    python examples/weather.py fmi_daily.csv [--draws 10] [--days 10] [--random] [--figure weather.png]

194 stations of the Finnish Meteorological Institute, daily highs and lows of 40 days of a winter. Features: highs and
lows of the last three days. A few stations, drawn at random, give a few days for training, the first ones or days
drawn at random; what counts are the other days, at the stations that gave nothing and at those that did. λ is chosen by
cross-validation over the days, and over the labelled stations. Prints the mean squared error in °C² of the network, of
each station alone (one without data takes the median of its neighbours' models), of one model for all, and of saying
"as today".

The data are not part of the project. They are open data of the Finnish Meteorological Institute
(https://en.ilmatieteenlaitos.fi/open-data; download service http://opendata.fmi.fi/wfs): daily observations from 22
January to 2 March 2026, as a table with one row per station and day, and the columns station, lat, lon, day, tmax and
tmin (°C).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold

import coterie as ct

LAGS = (1, 2, 3)
FEATURES = [f"{what}, {lag} days ago" for lag in LAGS for what in ("high", "low")]
METHODS = ("networked, folds over days", "networked, folds over stations", "local only", "pooled", "as today")
LABELLED = (5, 10, 20, 40, 80, 160)
WHERE = "It is not part of the project; the first lines of this script say where it comes from"
SCALE = 10.0  # °C: features and labels of about unit size
RIDGE = 0.01


def read_days(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row for every station and day with three days before it, and the places of the stations."""
    table = pd.read_csv(path, parse_dates=["day"])
    days = pd.date_range(table["day"].min(), table["day"].max())
    high = table.pivot(index="day", columns="station", values="tmax").reindex(days)
    low = table.pivot(index="day", columns="station", values="tmin").reindex(days)
    columns = [frame.shift(lag) for lag in LAGS for frame in (high, low)]
    rows = pd.concat([c.stack() for c in [*columns, high]], axis=1, keys=[*FEATURES, "tomorrow"]).dropna().reset_index()
    rows.columns = ["day", "station", *FEATURES, "tomorrow"]
    rows[[*FEATURES, "tomorrow"]] /= SCALE
    places = table.groupby("station")[["lat", "lon"]].first()
    return rows, places


def errors(
    rows: pd.DataFrame, graph: Any, n_labelled: int, n_days: int, at_random: bool, seed: int
) -> list[dict[str, Any]]:
    """Return the error of each method on the other days, at stations that gave labels and at the rest."""
    rng, days = np.random.default_rng(seed), np.sort(rows["day"].unique())
    chosen = rng.choice(np.array(graph.names), n_labelled, replace=False)
    given = rng.choice(days, n_days, replace=False) if at_random else days[:n_days]
    early, known = rows["day"].isin(given), rows["station"].isin(chosen)
    train, later = rows[early & known], rows[~early]
    X, y, groups = train[FEATURES], train["tomorrow"], train["station"]
    options: dict[str, Any] = {"ridge": RIDGE, "tol": 1e-5, "standardize": False}
    days_out = list(GroupKFold(5).split(X, groups=train["day"]))
    by_day = ct.NetworkedLinearRegressionCV(graph, cv=days_out, **options).fit(X, y, groups=groups)
    folds = min(5, n_labelled)
    by_station = ct.NetworkedLinearRegressionCV(graph, cv=folds, over="nodes", random_state=seed, **options)
    by_station.fit(X, y, groups=groups)
    smallest = 1e-6 * by_day.lam_choice_.lams[0]
    alone = ct.NetworkedLinearRegression(graph, smallest, **options).fit(X, y, groups=groups)
    pooled = ct.NetworkedLinearRegression(ridge=RIDGE, standardize=False).fit(X, y)
    predictions = {
        "networked, folds over days": by_day.predict(later[FEATURES], groups=later["station"]),
        "networked, folds over stations": by_station.predict(later[FEATURES], groups=later["station"]),
        "local only": alone.predict(later[FEATURES], groups=later["station"]),
        "pooled": pooled.predict(later[FEATURES]),
        "as today": later[FEATURES[0]].to_numpy(),
    }
    truth, seen = later["tomorrow"].to_numpy(), later["station"].isin(chosen).to_numpy()
    return [
        {
            "labelled": n_labelled,
            "seed": seed,
            "method": name,
            "unseen stations": float(SCALE**2 * ((truth - p)[~seen] ** 2).mean()),
            "labelled stations": float(SCALE**2 * ((truth - p)[seen] ** 2).mean()),
        }
        for name, p in predictions.items()
    ]


def draw(path: Path, table: pd.DataFrame) -> None:
    """Draw error against the number of labelled stations."""
    from matplotlib.figure import Figure

    from coterie.report.figures import draw_curves

    figure = Figure(figsize=(9, 4), layout="constrained")
    for ax, where in zip(figure.subplots(1, 2, sharey=True), ("unseen stations", "labelled stations"), strict=True):
        curves = []
        for name in METHODS:
            errors = table[table["method"] == name].pivot(index="seed", columns="labelled", values=where)
            curves.append((name, errors.columns.to_numpy(), errors.to_numpy()))
        draw_curves(ax, curves, "labelled stations", "squared error, °C²")
        ax.set_xscale("log")
        ax.set_title(f"other days at {where}")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run all draws and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--random", action="store_true", help="train on days drawn at random, not on the first ones")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        parser.error(f"there is no file {arguments.data}. {WHERE}")
    rows, places = read_days(arguments.data)
    graph = ct.knn_graph(places, 5, ids=places.index.tolist())
    which = "days drawn at random" if arguments.random else "first days"
    print(f"{len(rows)} station-days, {graph}; training on {arguments.days} {which}")
    found = [
        line
        for n_labelled in LABELLED
        for seed in range(arguments.draws)
        for line in errors(rows, graph, n_labelled, arguments.days, arguments.random, seed)
    ]
    table = pd.DataFrame(found)
    for where in ("unseen stations", "labelled stations"):
        means = table.pivot_table(index="labelled", columns="method", values=where, aggfunc="median")[list(METHODS)]
        print(f"\nmedian squared error in °C² on the other days at {where}\n{means.round(2).to_string()}")
    if arguments.figure:
        draw(arguments.figure, table)


if __name__ == "__main__":
    main()
