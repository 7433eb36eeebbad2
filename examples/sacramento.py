"""House prices in Sacramento: what a house sells for where it stands.

    python examples/sacramento.py sacramento.csv [--splits 20] [--map prices.png]

985 houses sold in May 2008 (Hallac, Leskovec and Boyd, KDD 2015). Every house is a node with one row: beds, baths, area
and price. Of each random split, 200 houses are unseen; λ is chosen by cross-validation on the others. An unseen house
takes its model from the five nearest seen ones. Prints the mean squared error of unseen houses' prices.

The data are not part of the project. They are five days of sales that the Sacramento Bee reported; the table of 985
rows is copied in many places, mostly as Sacramentorealestatetransactions.csv. The columns beds, baths, sq__ft (0 where
it is not known), price, latitude and longitude are used.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.neighbors import BallTree

import coterie as ct

FEATURES = ["beds", "baths", "sq__ft"]
MILE = 1.609344
EARTH = 6371.0088
N_TEST, K, RIDGE = 200, 5, 0.5
WHERE = "It is not part of the project; the first lines of this script say where it comes from"
METHODS = ("networked, ℓ2", "networked, ℓ1", "neighbours' mean", "pooled", "local only", "global mean")


def read_houses(path: Path) -> pd.DataFrame:
    """Return features and price with zero mean and unit variance; what is missing (0) becomes the mean."""
    houses = pd.read_csv(path)
    columns = houses[FEATURES].astype(float).replace(0.0, np.nan)
    for name in FEATURES:
        known = columns[name]
        houses[name] = ((known - known.mean()) / known.std()).fillna(0.0)
    houses["price"] = (houses["price"] - houses["price"].mean()) / houses["price"].std()
    return houses


def weight(km: np.ndarray) -> np.ndarray:
    """Of an edge of this length."""
    return 1.0 / (km / MILE + 0.1)


def nearest_seen(unseen: pd.DataFrame, seen: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of the five nearest seen houses of every unseen one, and the weights of the edges to them."""
    places = np.radians(seen[["latitude", "longitude"]].to_numpy())
    distance, which = BallTree(places, metric="haversine").query(
        np.radians(unseen[["latitude", "longitude"]].to_numpy()), K
    )
    return seen.index.to_numpy()[which], weight(distance * EARTH)


def prices(model: Any, unseen: pd.DataFrame, ids: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Predict each unseen house with the model that its neighbours give it."""
    local = [model.weights_for(dict(zip(i.tolist(), a.tolist(), strict=True))) for i, a in zip(ids, A, strict=True)]
    coef, intercept = np.array([m.coef for m in local]), np.array([m.intercept for m in local])
    return (unseen[FEATURES].to_numpy() * coef).sum(axis=1) + intercept


def one_split(houses: pd.DataFrame, seed: int) -> tuple[dict[str, float], Any]:
    """Return the error of every method on 200 houses that it has not seen, and the ℓ2 model."""
    test = np.random.default_rng(seed).permutation(len(houses))[:N_TEST]
    unseen, seen = houses.iloc[test], houses.drop(houses.index[test])
    graph = ct.knn_graph(seen[["latitude", "longitude"]], K, weight=weight, ids=seen.index.tolist())
    ids, A = nearest_seen(unseen, seen)
    X, y, truth = seen[FEATURES], seen["price"], unseen["price"].to_numpy()
    options: dict[str, Any] = {"ridge": RIDGE, "tol": 1e-4, "random_state": seed, "standardize": False}
    l2 = ct.NetworkedLinearRegressionCV(graph, penalty="l2", **options).fit(X, y, groups=seen.index)
    l1 = ct.NetworkedLinearRegressionCV(graph, penalty="l1", **options).fit(X, y, groups=seen.index)
    alone = ct.NetworkedLinearRegression(graph, 0.0, penalty="l2", ridge=RIDGE, standardize=False)
    alone.fit(X, y, groups=seen.index)
    predictions = {
        "networked, ℓ2": prices(l2, unseen, ids, A),
        "networked, ℓ1": prices(l1, unseen, ids, A),
        "neighbours' mean": seen["price"].loc[ids.ravel()].to_numpy().reshape(ids.shape).mean(axis=1),
        "pooled": Ridge(RIDGE * len(seen)).fit(X, y).predict(unseen[FEATURES]),
        "local only": prices(alone, unseen, ids, A),
        "global mean": np.full(N_TEST, y.mean()),
    }
    return {name: float(((truth - p) ** 2).mean()) for name, p in predictions.items()}, l2


def draw_map(path: Path, houses: pd.DataFrame, model: Any) -> None:
    """Draw where an average house is worth more: the intercept of every seen house."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    ax = figure.subplots()
    seen = houses.loc[model.nodes_]
    limit = float(np.abs(model.intercept_).max())
    dots = ax.scatter(
        seen["longitude"], seen["latitude"], c=model.intercept_, s=14, cmap="PuOr_r", vmin=-limit, vmax=limit
    )
    ax.set_aspect(1 / np.cos(np.radians(seen["latitude"].mean())))
    ax.set(xlabel="longitude", ylabel="latitude", title="Price of an average house, in standard deviations")
    figure.colorbar(dots, ax=ax, shrink=0.8)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run the splits and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--map", type=Path)
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        parser.error(f"there is no file {arguments.data}. {WHERE}")
    houses = read_houses(arguments.data)
    errors, chosen = [], []
    for seed in range(arguments.splits):
        error, model = one_split(houses, seed)
        errors.append(error)
        chosen.append(model.lam_)
        print(
            f"split {seed}: λ {model.lam_:.3g}  " + "  ".join(f"{name} {error[name]:.3f}" for name in METHODS),
            flush=True,
        )
    table = pd.DataFrame(errors)[list(METHODS)]
    print(f"\nmean over {len(table)} splits (standard error); λ {min(chosen):.2g} to {max(chosen):.2g}")
    for name in METHODS:
        print(f"  {name:18s} {table[name].mean():.3f}  ({table[name].std(ddof=1) / np.sqrt(len(table)):.3f})")
    if arguments.map:
        draw_map(arguments.map, houses, model)


if __name__ == "__main__":
    main()
