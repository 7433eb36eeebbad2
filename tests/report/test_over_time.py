"""The network at several times, and lines of places."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from chromium import CHROMIUM, Browser

import coterie as ct
from coterie.report.over_time import MOST_SLICES, MOST_TICKS, OverTime
from coterie.report.page import render

PLACES = ["a", "b", "<i>c</i>", "d"]


def fitted(times=range(8), notes=None, **parameters):
    """Four places whose slopes change in the middle of the times."""
    times, rng = list(times), np.random.default_rng(0)
    pairs = [(place, time) for place in PLACES for time in times for _ in range(3)]
    X = rng.standard_normal((len(pairs), 2))
    late = np.array([times.index(time) >= len(times) / 2 for _, time in pairs])
    y = np.where(late, 2.0, -1.0) * X[:, 0] + 0.1 * rng.standard_normal(len(pairs))
    space = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=PLACES)
    kind = ct.NetworkedLinearRegressionCV if "lams" in parameters else ct.NetworkedLinearRegression
    model = kind((space, ct.time_graph(times)), engine="numpy", **parameters).fit(X, y, groups=pairs)
    model.notes_ = notes or {}
    return model


def test_what_is_drawn() -> None:
    found = OverTime.of(fitted(lam=0.01))
    assert found.columns == ["x0", "x1", "intercept"]
    assert found.w.shape == (3, 8, 4)
    assert len(found.labels) == MOST_SLICES
    assert (found.labels[0], found.labels[-1]) == ("0", "7")
    assert found.w[0, 0] == pytest.approx([-1] * 4, abs=0.2)
    assert found.w[0, -1] == pytest.approx([2] * 4, abs=0.2)
    assert all(low < high for low, high in found.ends)
    assert OverTime.of(ct.NetworkedLinearRegression([("a", "b")]).fit([[1.0]], [1.0], groups=["a"])) is None


def test_the_page_has_a_section_on_time() -> None:
    times = [date(2025, month, 1) for month in range(1, 9)]
    places = {"names": ["lat", "lon"], "values": [[60, 20], [61, 20], None, [62, 20]]}
    page = render(fitted(times, {"coordinates": places}, lams=[0.1, 0.01], cv=2, over="times"))
    assert "Over time" in page
    assert "6 of 8 times are shown" in page
    assert "Shown is the last time, 2025-08-01." in page
    assert "1 node without coordinates" in page
    assert "4 places at 8 times: 32 nodes" in page
    assert "times that in time" in page
    assert "The nodes, one by one, at the last time" in " ".join(page.split())
    assert "<i>c</i>" not in page


@pytest.mark.parametrize(
    ("times", "across"),
    [
        (
            [f"2025-{month}" for month in range(1, 4)],
            ["2025-01-01T00:00:00", "2025-02-01T00:00:00", "2025-03-01T00:00:00"],
        ),
        (["9", "10", "11"], [9.0, 10.0, 11.0]),
        (np.array(["2025-01", "2025-03"], dtype="datetime64[M]"), ["2025-01-01T00:00:00", "2025-03-01T00:00:00"]),
        (["2025-Q1", "2025-Q2"], ["2025-01-01T00:00:00", "2025-04-01T00:00:00"]),
        ([f"2025-S{k}" for k in range(1, 5)], [f"2025-S{k}" for k in range(1, 5)]),
    ],
    ids=["months", "numbers", "datetime64", "quarters", "text"],
)
def test_an_axis_of_time_is_one(times, across) -> None:
    assert OverTime.of(fitted(times, lam=0.01)).across == across


def test_many_times_in_text_have_few_ticks() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    drawn = ct.plot.over_time(fitted([f"week {k:02d}" for k in range(20)], lam=0.01))
    assert len(drawn.get_xticks()) == MOST_TICKS


def test_without_times_there_is_no_such_section() -> None:
    page = render(ct.NetworkedLinearRegression([("a", "b")]).fit([[1.0]], [1.0], groups=["a"]))
    assert "h-time" not in page


def test_lines_on_axes() -> None:
    model = fitted(lam=0.01)
    ax = ct.plot.over_time(model, by="x0")
    assert len(ax.get_lines()) == 4
    assert ax.get_ylabel() == "x0"
    with pytest.raises(ValueError, match="no coefficient 'z'"):
        ct.plot.over_time(model, by="z")
    alone = ct.NetworkedLinearRegression([("a", "b")]).fit([[1.0]], [1.0], groups=["a"])
    with pytest.raises(ValueError, match="not places at several times"):
        ct.plot.over_time(alone)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")
@pytest.mark.parametrize("width", [1280, 400])
def test_another_coefficient_recolours_all_times(tmp_path, width) -> None:
    ct.write_report(fitted(["2025-01", "2025-02", "2025-03"], lam=0.01), tmp_path / "page.html")
    with Browser() as browser:
        browser.open(tmp_path / "page.html", width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        shown = "[0, 1, 2].map(k => [...document.getElementById(`slice-${k}`)._fullData[1].marker.color])"
        before = browser.run(shown)
        assert before[0] == pytest.approx([-1] * 4, abs=0.2)
        assert before[2] == pytest.approx([2] * 4, abs=0.2)
        browser.run(
            "(e => { e.value = '1'; e.dispatchEvent(new Event('change')); })(document.getElementById('coefficient'))"
        )
        assert browser.run(shown) != before
        assert browser.run("document.getElementById('lines')._fullData.length") == 4
        assert browser.run("document.getElementById('lines')._fullLayout.yaxis.title.text") == "x1"
        assert browser.complaints() == []
