"""The script behind docs/resolvability.md, for one network."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "resolvability.py"


def test_the_margin_tells_the_error() -> None:
    names = runpy.run_path(str(EXAMPLE))
    ratio, margin, error, _ = names["measure"](0.3, 0)
    assert ratio == margin == 2
    assert error < 1e-5
    _, margin, error, _ = names["measure"](2.0, 0)
    assert margin < 1
    assert error > 1


def test_advice_needs_fewer_labels_than_chance() -> None:
    needed = runpy.run_path(str(EXAMPLE))["labels_needed"]
    assert needed(True, 0) < needed(False, 0)
