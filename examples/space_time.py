"""Highs from lows at weather stations, with models that vary from place to place and from week to week.

    python examples/space_time.py fmi_daily.csv [--folds 5]

194 stations of the Finnish Meteorological Institute, 40 days of a winter (weather.py says where they come from).
The data are not part of the project.
The high of a day is predicted from its low, with a model for every station in every week. Prints, for each question
that folds can ask, the root mean squared error in °C of the network beside that of each station and week alone, of one
model for all, and of the other baselines of coterie.compare_baselines; and the strengths that were chosen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import coterie as ct

QUESTIONS = {
    "rows": "other days of a station's week",
    "places": "a new station",
    "times": "the weeks to come",
    "blocks": "a new station in the weeks to come",
}


def read_weeks(path: Path) -> tuple[pd.DataFrame, ct.EmpiricalGraph]:
    """Return one row per station and day, with its week, and the nearest neighbours of the stations."""
    table = pd.read_csv(path, parse_dates=["day"]).dropna(subset=["tmax", "tmin"])
    table["week"] = (table["day"] - table["day"].min()).dt.days // 7
    places = table.groupby("station")[["lat", "lon"]].first()
    return table, ct.knn_graph(places[["lat", "lon"]], k=5, ids=places.index)


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folds", type=int, default=5)
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        parser.error(f"there is no file {arguments.data}. It is not part of the project; see weather.py")
    table, space = read_weeks(arguments.data)
    both = (space, ct.time_graph(table["week"]))
    X, y, pairs = table[["tmin"]], table["tmax"], table[["station", "week"]]
    print(f"{len(table)} rows, {space.n_nodes} stations, {table['week'].nunique()} weeks")
    for over, question in QUESTIONS.items():
        model = ct.NetworkedLinearRegressionCV(both, n_lams=10, cv=arguments.folds, over=over, random_state=0, tol=1e-4)
        model.fit(X, y, groups=pairs)
        found = ct.compare_baselines(model, X, y, pairs, cv=arguments.folds, over=over)
        listed = ", ".join(f"{name} {error:.2f}" for name, error in zip(found.methods, found.mean, strict=True))
        print(f"{over} ({question}): {listed}; λ {model.lam_:.3g}, {model.time_strength_:g} times that in time")


if __name__ == "__main__":
    main()
