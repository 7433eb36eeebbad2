"""The page in a real browser, from disk."""

from __future__ import annotations

import numpy as np
import pytest
from chromium import CHROMIUM, Browser
from fitted_models import NASTY, large, with_everything
from scipy.spatial import cKDTree

import coterie as ct

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")
NETWORK = "document.getElementById('network')"
PLOTS = {"convergence", "gap", "network", "coefficients", "choice", "baselines"}
SPOT = """(() => {{
    const gd = {network}, look = gd._fullLayout, box = gd.getBoundingClientRect(), nodes = gd._fullData[2];
    const x = look.xaxis.l2p(nodes.x[{k}]), y = look.yaxis.l2p(nodes.y[{k}]);
    return [box.left + look._size.l + x, box.top + look._size.t + y];
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
    for part in ("cluster", "labelled rows m: 4", "squared error", "neighbours: ", "node 5", f"{NASTY}: "):
        assert part in text
    assert "no label reaches it" in hover(browser, 12)
    assert browser.run("document.querySelectorAll('b').length") == 0


def test_the_control_switches_the_coordinate(browser, pages):
    browser.open(pages / "everything.html")
    options = browser.run("[...document.getElementById('colour').options].map(o => o.text)")
    assert options == ["cluster", NASTY, "speed & <u>", "intercept"]
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


def test_a_large_network_is_drawn_with_webgl(browser, pages):
    browser.open(pages / "large.html")
    assert browser.run(f"{NETWORK}._fullData.map(t => t.type)") == ["scattergl"] * 3
    assert browser.complaints() == []
    assert "neighbours" in hover(browser, loneliest(browser))
