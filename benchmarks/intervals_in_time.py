"""How many labels do intervals cover at times to come, and at new places? Times are not exchangeable: it is measured.

    python -m benchmarks.intervals_in_time [--data FOLDER] [--draws 24] [--coverage 0.9] [--threads 1]

Drawn: 48 places in three regions, 20 times, three rows at each; the last two times have no labels, and so has every
fourth place. "steady": regions keep their coefficients; "walk": these walk at random; "shocks": each time has a level
of its own; "break": the coefficients are drawn anew for the times to come. With `--data` also daily highs from lows at
Finnish stations, as of nine days from the twentieth on, each time the next two days; the strengths are those that
folds over times choose for the first twenty days, and every fourth station has no labels. FOLDER as for
benchmarks.weighting.

Prints the share of labels covered one and two times ahead, and at the new places at the times that have labels, with
its standard error over the draws (days), the smallest share of a draw, and the mean width of the intervals relative to
the middle 90 % of all labels. "times, next": folds of one time each, so that residuals tell of the next time alone.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import coterie as ct

PLACES, REGIONS, TIMES, AHEAD, ROWS = 48, 3, 20, 2, 3
FIELDS = ("steady", "walk", "shocks", "break")
BOTH = ["place", "time"]
LAMS = {"drawn": np.geomspace(0.003, 10, 8), "days": np.geomspace(10, 10_000, 8)}
HOW: dict[str, Any] = {"tol": 1e-4, "engine": "numba"}
TIMES_NEXT = "times, next"
WAYS: dict[str, dict[str, Any]] = {
    "rows": {"by": "rows"},
    "places": {"by": "places"},
    "times": {"by": "times"},
    TIMES_NEXT: {"by": "times", "cv": TIMES},  # as many folds as can be
}
FMI = tuple(way for way in WAYS if way != TIMES_NEXT)  # which takes many fits


def drawn(field: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, ct.EmpiricalGraph]:
    """Rows of places at times with their labels, and the graph of the places."""
    rng = np.random.default_rng(seed)
    at = rng.random((PLACES, 2))
    region = np.linalg.norm(at[:, None] - rng.random((REGIONS, 2)), axis=2).argmin(axis=1)
    truth = np.repeat(rng.standard_normal((1, REGIONS, 2)), TIMES, axis=0)  # slope and level
    if field == "walk":
        truth = truth + np.cumsum(0.25 * rng.standard_normal((TIMES, REGIONS, 2)), axis=0)
    if field == "shocks":
        truth[:, :, 1] += 0.5 * rng.standard_normal((TIMES, 1))
    if field == "break":
        truth[TIMES - AHEAD :] = rng.standard_normal((REGIONS, 2))
    place, time = (part.ravel() for part in np.meshgrid(*map(np.arange, (PLACES, TIMES, ROWS)), indexing="ij")[:2])
    x = rng.standard_normal(len(place))
    own = truth[time, region[place]]
    y = own[:, 0] * x + own[:, 1] + 0.5 * rng.standard_normal(len(x))
    frame = pd.DataFrame({"place": place, "time": time, "x": x})
    return frame, y, ct.knn_graph(at, 4, metric="euclidean")


def shares(
    model: Any, known: np.ndarray, frame: pd.DataFrame, y: np.ndarray, coverage: float, ways: Any = WAYS, seed: int = 0
) -> dict:
    """The share covered and the width, for each way to calibrate, of all rows of a kind that had no labels."""
    places, last = frame["place"][known].unique(), frame["time"][known].max()
    seen, ahead = frame["place"].isin(places).to_numpy(), (frame["time"] - last).to_numpy()
    asked = {f"{step} ahead": seen & (ahead == step) for step in range(1, AHEAD + 1)} | {
        "new places": ~seen & (ahead <= 0)
    }
    low, high = np.quantile(y[known], [0.05, 0.95])
    found = {}
    for name in ways:
        model.calibrate(**WAYS[name], random_state=seed)
        for what, rows in asked.items():
            if name == "rows" or (name == "places") == (what == "new places"):
                ends = model.predict_interval(frame[rows], coverage=coverage)
                inside = (ends[:, 0] <= y[rows]) & (y[rows] <= ends[:, 1])
                found[what, name] = inside.mean(), np.diff(ends).mean() / (high - low)
    return found


def of_a_draw(field: str, seed: int, coverage: float, threads: int) -> dict:
    """The shares of one draw of a field."""
    frame, y, space = drawn(field, seed)
    known = ((frame["time"] < TIMES - AHEAD) & (frame["place"] % 4 != 0)).to_numpy()
    graphs = space, ct.time_graph(range(TIMES - AHEAD))
    options: dict[str, Any] = {"lams": LAMS["drawn"], "cv": 3, "over": "times", "threads": threads} | HOW
    model = ct.NetworkedLinearRegressionCV(graphs, **options).fit(frame[known], y[known], groups=BOTH)
    return shares(model, known, frame, y, coverage, seed=seed)


def of_days(folder: Path, coverage: float, threads: int) -> list[dict]:
    """The shares as of several days, of daily highs from lows."""
    table = pd.read_csv(folder / "fmi_daily.csv", parse_dates=["day"]).dropna(subset=["tmax", "tmin"])
    where = table.groupby("station")[["lat", "lon"]].first()
    space = ct.knn_graph(where, k=5, ids=where.index)
    frame = pd.DataFrame({"place": table["station"], "time": (table["day"] - table["day"].min()).dt.days})
    frame["x"], y = table["tmin"], table["tmax"].to_numpy()
    away, found = np.isin(frame["place"], where.index[::4]), []
    first, options = (frame["time"] < 20).to_numpy() & ~away, {"threads": threads} | HOW
    graphs = space, ct.time_graph(range(20))
    chosen = ct.NetworkedLinearRegressionCV(graphs, lams=LAMS["days"], cv=3, over="times", **options)
    chosen.fit(frame[first], y[first], groups=BOTH)
    options |= {"lam": chosen.lam_, "time_strength": chosen.time_strength_}
    for day in range(20, 38, 2):
        known = (frame["time"] < day).to_numpy() & ~away
        model = ct.NetworkedLinearRegression((space, ct.time_graph(range(day))), **options)
        found.append(shares(model.fit(frame[known], y[known], groups=BOTH), known, frame, y, coverage, FMI))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| field | asked for | calibrated by | draws | covered | least | width |\n|---|---|---|---|---|---|---|")
    how = arguments.coverage, arguments.threads
    for field in FIELDS:
        tell(field, [of_a_draw(field, seed, *how) for seed in range(arguments.draws)])
    if arguments.data is not None:
        tell("days", of_days(arguments.data, *how))


def tell(field: str, runs: list[dict]) -> None:
    """Print the means over the draws."""
    together = defaultdict(list)
    for run in runs:
        for key, one in run.items():
            together[key].append(one)
    for (what, name), values in sorted(together.items()):
        (share, width), count = np.mean(values, axis=0), len(values)
        of = np.array(values)[:, 0]
        error = of.std(ddof=1) / np.sqrt(count) if count > 1 else np.nan
        print(
            f"| {field} | {what} | {name} | {count} | {share:.3f} ± {error:.3f} | {of.min():.3f} | {width:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
