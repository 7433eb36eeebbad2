"""Neighbours against sorting all distances, weights against their formulas."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.graphs import knn

SACRAMENTO = Path(__file__).parents[3] / "shared" / "data" / "sacramento.csv"
FINLAND = np.array([[60.2, 24.9], [61.5, 23.8], [65.0, 25.5], [60.5, 22.3], [62.2, 25.7], [68.4, 27.4]])


def haversine(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Kilometres between places in degrees, by the cosine rule of the sphere, a second formula."""
    (a, b), (c, d) = np.radians(p).T, np.radians(q).T
    cosine = np.sin(a) * np.sin(c) + np.cos(a) * np.cos(c) * np.cos(b - d)
    return 6371.0088 * np.arccos(np.clip(cosine, -1, 1))


def naive_edges(distances: np.ndarray, k: int) -> set[tuple[int, int]]:
    edges = set()
    for i, row in enumerate(distances):
        others = [j for j in np.argsort(row, kind="stable") if j != i]
        edges |= {(min(i, int(j)), max(i, int(j))) for j in others[:k]}
    return edges


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_either_is_among_the_others_nearest(seed: int, k: int) -> None:
    points = np.random.default_rng(seed).normal(size=(12, 3))
    graph = ct.knn_graph(points, k, metric="euclidean")
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert set(map(tuple, graph.edges.tolist())) == naive_edges(distances, k)
    d = distances[tuple(graph.edges.T)]
    np.testing.assert_allclose(graph.weights, 1 / (d + np.median(d) / 10), rtol=1e-9)


def test_haversine_is_in_kilometres() -> None:
    graph = ct.knn_graph(FINLAND, 2, weight=lambda km: km)
    d = haversine(FINLAND[:, None].repeat(6, 1).reshape(-1, 2), np.tile(FINLAND, (6, 1))).reshape(6, 6)
    assert set(map(tuple, graph.edges.tolist())) == naive_edges(d, 2)
    np.testing.assert_allclose(graph.weights, d[tuple(graph.edges.T)], rtol=1e-6)


def test_the_date_line_is_no_border() -> None:
    graph = ct.knn_graph([[0, 179.9], [0, -179.9], [0, 179.0]], 1, weight=lambda km: km)
    assert graph.edges.tolist() == [[0, 1], [0, 2]]
    assert graph.weights[0] == pytest.approx(0.2 * np.pi / 180 * 6371.0088)


def test_gaussian_weights_are_never_zero() -> None:
    points = np.array([[0.0], [1.0], [2.0], [3.0], [1e6]])
    graph = ct.knn_graph(points, 1, weight="gaussian", metric="euclidean")
    np.testing.assert_allclose(graph.weights, [np.exp(-0.5)] * 3 + [1e-6])


@pytest.mark.parametrize("weight", ["inverse", "gaussian"])
def test_coincident_points_have_finite_weights(weight: str) -> None:
    graph = ct.knn_graph([[0.0], [0.0], [0.0], [2.0]], 2, weight=weight, metric="euclidean")
    assert np.isfinite(graph.weights).all()
    together = (graph.edges < 3).all(axis=1)
    assert graph.weights[together].tolist() == ([5.0] * 3 if weight == "inverse" else [1.0] * 3)
    same = ct.knn_graph(np.zeros((4, 1)), 1, weight=weight, metric="euclidean")
    assert (same.weights > 0).all()
    assert (same.degrees > 0).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_ids(frame: Any) -> None:
    places = frame({"lat": FINLAND[:, 0], "lon": FINLAND[:, 1]})
    graph = ct.knn_graph(places, 2, ids=frame({"name": list("abcdef")})["name"])
    assert graph.ids == tuple("abcdef")
    np.testing.assert_array_equal(graph.weights, ct.knn_graph(FINLAND, 2).weights)


LATITUDE = "give latitude, then longitude, in degrees; are the columns swapped"
BAD = {
    "k too large": ({"k": 6}, ValueError, "k must lie between 1 and 5, the number of other nodes; got 6"),
    "k zero": ({"k": 0}, ValueError, "between 1 and 5"),
    "half a k": ({"k": 1.5}, TypeError, "k must be a whole number"),
    "swapped": ({"coordinates": [[-121.4, 38.6], [0, 0]]}, ValueError, f"latitude -121.4: {LATITUDE}"),
    "swapped names": (
        {"coordinates": pd.DataFrame({"Longitude": [1.0, 2.0], "lat": [1.0, 2.0]})},
        ValueError,
        f"'Longitude': {LATITUDE}",
    ),
    "far longitude": ({"coordinates": [[0, 400.0], [0, 0]]}, ValueError, "has the longitude 400"),
    "three columns": ({"coordinates": np.zeros((4, 3))}, ValueError, 'two columns.*metric="euclidean"'),
    "one dimension": ({"coordinates": [1.0, 2.0]}, ValueError, r"must have shape \(rows, columns\)"),
    "words": ({"coordinates": [["a", "b"]]}, TypeError, "coordinates must hold numbers only"),
    "words in a column": (
        {"coordinates": pl.DataFrame({"lat": ["x", "y"], "lon": [1.0, 2.0]})},
        TypeError,
        "column 'lat' of coordinates must hold numbers only",
    ),
    "no columns": ({"coordinates": pd.DataFrame()}, ValueError, "coordinates has no columns"),
    "nan": ({"coordinates": [[1, 2], [np.nan, 3]], "ids": ["a", "b"]}, ValueError, r"row 1 .*node 'b'.* is nan"),
    "same id": ({"ids": list("abcdea")}, ValueError, "the node id 'a' is listed twice"),
    "few ids": ({"ids": ["a"]}, ValueError, "6 rows, but there are 1 ids"),
    "weight": ({"weight": "invers"}, ValueError, 'weight must be "inverse", "gaussian" or a function.*\'invers\''),
    "zero": ({"weight": lambda d: 0 * d, "ids": list("abcdef")}, ValueError, "gives 0.0 for the distance .*nodes 'a'"),
    "negative": ({"weight": lambda d: -d}, ValueError, "weights must be positive and finite"),
    "shape": ({"weight": lambda d: d[1:]}, ValueError, "must return as many weights"),
    "scalar": ({"weight": lambda d: 1.0}, ValueError, r"it returned shape \(\)"),
    "metric": ({"metric": "crow"}, ValueError, "metric"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_refused(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ct.knn_graph(**{"coordinates": FINLAND, "k": 1, **arguments})


@pytest.mark.skipif(not SACRAMENTO.exists(), reason="the file is not part of the project")
def test_the_sacramento_protocol() -> None:
    places = pd.read_csv(SACRAMENTO)[["latitude", "longitude"]].to_numpy()
    graph = ct.knn_graph(places, 5, weight=lambda km: 1 / (km / 1.609344 + 0.1))
    p, q = places[graph.edges[:, 0]], places[graph.edges[:, 1]]
    lat = np.sin(np.radians(p - q)[:, 0] / 2) ** 2
    lon = np.cos(np.radians(p[:, 0])) * np.cos(np.radians(q[:, 0])) * np.sin(np.radians(p - q)[:, 1] / 2) ** 2
    miles = 2 * 6371.0088 / 1.609344 * np.arcsin(np.sqrt(lat + lon))
    np.testing.assert_allclose(graph.weights, 1 / (miles + 0.1), rtol=1e-9)
    assert graph.degrees.min() >= 5


class TestManyNodes:
    """The quick search, on few nodes."""

    @pytest.fixture(autouse=True)
    def _few_are_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(knn, "MANY", 100)

    points = np.random.default_rng(0).normal(size=(400, 6))

    distances = np.linalg.norm(points[:, None] - points[None], axis=2)

    def test_it_is_asked_for_one_neighbour_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Since every point is its own nearest."""

        def search(points: np.ndarray, metric: str, n_neighbors: int, random_state: int) -> SimpleNamespace:
            found = np.argsort(self.distances, axis=1)[:, :n_neighbors].astype(np.int32)
            return SimpleNamespace(neighbor_graph=(found, np.take_along_axis(self.distances, found, 1)))

        monkeypatch.setitem(sys.modules, "pynndescent", SimpleNamespace(NNDescent=search))
        quick = ct.knn_graph(self.points, 5, metric="euclidean")
        assert set(map(tuple, quick.edges.tolist())) == naive_edges(self.distances, 5)

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore")
    def test_it_finds_nearly_all_neighbours(self) -> None:
        pytest.importorskip("pynndescent")
        found = set(map(tuple, ct.knn_graph(self.points, 5, metric="euclidean").edges.tolist()))
        wanted = naive_edges(self.distances, 5)
        assert len(found & wanted) > 0.97 * len(wanted)

    def test_without_the_extra_the_search_is_exact(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pynndescent", None)
        graph = ct.knn_graph(self.points, 5, metric="euclidean")
        assert set(map(tuple, graph.edges.tolist())) == naive_edges(self.distances, 5)

    def test_a_point_that_is_not_in_its_own_list(self) -> None:
        """As happens where many points coincide."""
        found, distances = knn._without_self(np.array([[0, 1, 2], [2, 3, 0]]), np.arange(6.0).reshape(2, 3))
        assert found.tolist() == [[1, 2], [2, 3]]
        assert distances.tolist() == [[1, 2], [3, 4]]
