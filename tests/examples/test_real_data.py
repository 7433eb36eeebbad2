"""The examples on real data, which are not part of the project: COTERIE_DATA names the folder that holds them."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import coterie as ct

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("COTERIE_DATA", ROOT.parent / "shared" / "data"))


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not in {DATA}; set COTERIE_DATA to the folder that holds it")
    return DATA / name


@pytest.mark.slow
def test_neighbours_help_to_price_a_house(tmp_path: Path) -> None:
    sacramento = example("sacramento")
    houses = sacramento.read_houses(data("sacramento.csv"))
    assert len(houses) == 985
    np.testing.assert_allclose(houses["price"].std(), 1.0)
    error, model = sacramento.one_split(houses, seed=0)
    assert max(error["networked, ℓ1"], error["networked, ℓ2"]) < 0.85 * error["neighbours' mean"]
    assert error["neighbours' mean"] < error["pooled"] < error["global mean"]
    assert model.gap_ <= 1e-4
    sacramento.draw_map(tmp_path / "map.png", houses, model)
    assert (tmp_path / "map.png").stat().st_size > 10_000


@pytest.mark.slow
def test_temperatures_of_stations_that_gave_no_data() -> None:
    weather = example("weather")
    rows, places = weather.read_days(data("fmi_daily.csv"))
    graph = ct.knn_graph(places, 5, ids=places.index.tolist())
    lines = weather.errors(rows, graph, n_labelled=20, n_days=10, at_random=True, seed=0)
    unseen = {line["method"]: line["unseen stations"] for line in lines}
    assert set(unseen) == set(weather.METHODS)
    assert unseen["networked, folds over stations"] < unseen["local only"]
    assert all(0 < error < 100 for error in unseen.values())


@pytest.mark.slow
def test_regions_of_stations(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    regions = example("regions")
    monkeypatch.setattr("sys.argv", ["regions.py", str(data("fmi_daily.csv")), "--clusters", "3"])
    regions.main()
    weather, regression = capsys.readouterr().out.strip().split("\n\n")
    for said, columns in ((weather, 5), (regression, 7)):
        title, _, *groups = said.splitlines()
        assert "gap" in title
        assert len(groups) == 3
        assert {len(line.split()) for line in groups} == {columns}
        assert sum(int(line.split()[-1]) for line in groups) == 194


@pytest.mark.parametrize("name", ["sacramento", "weather", "space_time", "regions"])
def test_an_example_without_its_data_says_where_they_are(name: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", [f"{name}.py", "nowhere.csv"])
    module = example(name)
    with pytest.raises(SystemExit):
        module.main()
    assert "there is no file nowhere.csv" in capsys.readouterr().err
    assert "The data are not part of the project" in module.__doc__
