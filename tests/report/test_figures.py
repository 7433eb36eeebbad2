import sys

import pytest

from coterie.io.files import MissingExtraError
from coterie.report.figures import new_figure, save_figure


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"coterie\[plot\]"):
        new_figure(1, 1)


def test_a_picture_carries_no_metadata(tmp_path):
    save_figure(new_figure(1, 1), tmp_path / "x.png")
    content = (tmp_path / "x.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert b"Software" not in content
