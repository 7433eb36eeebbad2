"""The page in a real browser, from disk."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest
from chromium import CHROMIUM, Browser
from fitted_models import NASTY, large, with_everything
from scipy.spatial import cKDTree

import coterie as ct

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")
NETWORK = "document.getElementById('network')"
PLOTS = {"convergence", "gap", "network", "coefficients", "choice", "baselines", "predictions"}
SPOT = """(() => {{
    const gd = {network}, look = gd._fullLayout, box = gd.getBoundingClientRect(), nodes = gd._fullData[2];
    const x = look.xaxis.l2p(nodes.x[{k}]), y = look.yaxis.l2p(nodes.y[{k}]);
    return [box.left + look.xaxis._offset + x, box.top + look.yaxis._offset + y];
}})()"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, model in (("everything", with_everything()), ("large", large())):
        ct.write_report(model, folder / f"{name}.html")
    return folder


def hover(browser: Browser, k: int) -> str:
    """Move the mouse to a node and return what is shown."""
    browser.run(f"{NETWORK}.scrollIntoView({{block: 'center'}})")
    x, y = browser.run(SPOT.format(network=NETWORK, k=k))
    browser.move_mouse(x, y)
    text = f"{NETWORK}.querySelector('.hoverlayer .hovertext')?.textContent"
    return browser.until(f"{NETWORK}._hoverdata?.[0].pointNumber === {k} && {text}")


def loneliest(browser: Browser) -> int:
    """The node that is farthest from all others, which no other hides."""
    x = browser.run(f"[0, 1].map(k => Array.from({NETWORK}._fullData[2]['xy'[k]]))")
    return int(cKDTree(np.transpose(x)).query(np.transpose(x), k=2)[0][:, 1].argmax())


def colours(browser: Browser) -> list:
    return browser.run(f"[...{NETWORK}._fullData[2].marker.color]")


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_loads_from_disk_alone(browser, pages, dark, width):
    browser.open(pages / "everything.html", width, dark=dark)
    drawn = browser.run("[...document.querySelectorAll('.plot')].filter(e => e._fullLayout).map(e => e.id)")
    assert set(drawn) == PLOTS
    assert browser.complaints() == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests())
    assert browser.run("document.documentElement.scrollWidth") <= width  # nothing sticks out
    ink = browser.run(f"{NETWORK}._fullLayout.font.color")
    assert ink == ("#e4e7eb" if dark else "#1c2026")


def test_hovering_shows_a_node_letter_by_letter(browser, pages):
    browser.open(pages / "everything.html")
    text = hover(browser, 0)
    assert text.startswith(NASTY)
    for part in (
        "cluster",
        "labelled rows m: 4",
        "error, held out: ",
        "error, training: ",
        "neighbours: ",
        "node 5",
        f"{NASTY}: ",
    ):
        assert part in text
    assert "no label reaches it" in hover(browser, 12)
    assert browser.run("document.querySelectorAll('b').length") == 0


def test_the_control_switches_the_coordinate(browser, pages):
    browser.open(pages / "everything.html")
    options = browser.run("[...document.getElementById('colour').options].map(o => o.text)")
    facts = ["error on held-out labels", "training error", "labelled rows"]
    assert options == ["cluster", *facts, NASTY, "speed & <u>", "intercept"]
    before = colours(browser)
    browser.run("document.getElementById('colour').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowDown", code="ArrowDown", windowsVirtualKeyCode=40)
    browser.until("document.getElementById('colour').value === '1'")
    after = colours(browser)
    assert before != after
    assert len(set(after)) >= 2
    assert browser.run(f"{NETWORK}._fullData[2].marker.showscale")
    assert browser.run("document.getElementById('legend').hidden")
    assert browser.complaints() == []


NAMES = "[...document.querySelectorAll('#nodes tbody th')].map(e => e.textContent)"


def typed(browser: Browser, field: str, text: str) -> None:
    browser.run(f"document.getElementById('{field}').focus()")
    browser.call("Input.insertText", text=text)


def column(browser: Browser, k: int) -> list[str]:
    return browser.run(f"[...document.querySelectorAll('#nodes tbody tr')].map(e => e.cells[{k}].textContent)")


def test_the_table_of_nodes_sorts(browser, pages):
    browser.open(pages / "everything.html")
    assert len(browser.run(NAMES)) == 14
    heads = browser.run("[...document.querySelectorAll('#nodes thead th')].map(e => e.textContent)")
    k = heads.index("error on held-out labels")
    for sign in (1, -1):  # a second click turns it round; what is not known stays at the end
        browser.run(f"document.querySelectorAll('#nodes thead button')[{k}].click()")
        cells = column(browser, k)
        known = [sign * float(cell) for cell in cells if cell]
        assert known == sorted(known)
        assert cells == [*(cell for cell in cells if cell), *(cell for cell in cells if not cell)]
    assert browser.run(f"document.querySelectorAll('#nodes thead th')[{k}].ariaSort") == "descending"


def test_the_table_of_nodes_searches_and_says_what_it_leaves_out(browser, pages):
    browser.open(pages / "everything.html")
    typed(browser, "search", "NODE 1")
    assert browser.run(NAMES) == ["node 10", "node 11", "node 12", "node 13"]
    browser.open(pages / "large.html")
    assert len(browser.run(NAMES)) == 25
    assert browser.run("document.getElementById('more').textContent") == "… 1,975 more."
    assert browser.complaints() == []


def test_the_table_of_nodes_downloads_as_csv(browser, pages, tmp_path):
    browser.open(pages / "everything.html")
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.run("document.getElementById('download').click()")
    deadline = time.monotonic() + 60
    while not (tmp_path / "nodes.csv").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with (tmp_path / "nodes.csv").open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    assert head[-3:] == [NASTY, "speed & <u>", "intercept"]
    assert [line[0] for line in lines[:3]] == [NASTY, "<i>b</i>", "node 2"]
    assert [line[head.index("labelled rows")] for line in lines[:3]] == ["4", "4", "0"]


@pytest.mark.parametrize("page", ["everything", "large"])
def test_a_node_is_found_by_its_name(browser, pages, page):
    browser.open(pages / f"{page}.html")
    name = browser.run(NAMES)[3]
    typed(browser, "find", name)
    browser.until(f"{NETWORK}._fullData[3].x?.length > 0")
    at, ring = (browser.run(f"{NETWORK}._fullData[{k}].x[{i}]") for k, i in ((2, 3), (3, 0)))
    assert ring == pytest.approx(at)
    assert browser.run("document.getElementById('found').textContent").endswith(" found")
    browser.run("document.querySelectorAll('#nodes tbody th button')[0].click()")
    first = browser.run(f"{NETWORK}._fullData[3].x[0] === {NETWORK}._fullData[2].x[0]")
    assert first
    assert browser.complaints() == []


def test_the_map_ends_where_the_nodes_do(browser, pages):
    browser.open(pages / "everything.html")
    for axis in "xy":
        low, high = browser.run(f"{NETWORK}._fullLayout.{axis}axis.range")
        values = browser.run(f"Array.from({NETWORK}._fullData[2].{axis})")
        extent = max(values) - min(values)
        assert min(values) - 0.1 * extent <= low < min(values)
        assert max(values) < high <= max(values) + 0.1 * extent


def test_the_theme_can_change_while_the_page_is_open(browser, pages):
    browser.open(pages / "everything.html")
    theme = {"name": "prefers-color-scheme", "value": "dark"}
    browser.call("Emulation.setEmulatedMedia", features=[theme])
    browser.until(f"{NETWORK}._fullLayout.font.color === '#e4e7eb'")


def test_no_button_sends_anything_away(browser, pages):
    browser.open(pages / "everything.html")
    buttons = browser.run("[...document.querySelectorAll('.modebar-btn')].map(e => e.dataset.title)")
    assert buttons == ["Download plot as a PNG", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"]
    assert browser.run("document.querySelectorAll('a[href]').length") == 0


def test_a_picture_can_be_downloaded(browser, pages):
    browser.open(pages / "everything.html")
    start = browser.run("Plotly.toImage('network', {format: 'png'}).then(url => url.slice(0, 22))")
    assert start == "data:image/png;base64,"
    assert browser.complaints() == []


def test_nothing_can_be_fetched_even_on_demand(browser, pages):
    browser.open(pages / "everything.html")
    refused = "fetch('http://127.0.0.1:9/').then(() => false, () => true)"
    assert browser.run(refused)
    assert any("Content Security Policy" in e["entry"]["text"] for e in browser.of("Log.entryAdded"))


@pytest.mark.slow
def test_a_large_network_is_drawn_with_webgl(browser, pages):
    browser.open(pages / "large.html")
    assert browser.run(f"{NETWORK}._fullData.map(t => t.type)") == ["scattergl"] * 4
    assert browser.complaints() == []
    assert "neighbours" in hover(browser, loneliest(browser))
