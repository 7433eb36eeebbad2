import numpy as np
import pytest

from coterie.experiments import paper
from coterie.experiments.curves import boundary_curve, weight_curves
from coterie.experiments.table import Spread

TINY = paper.Plan(seeds=1, lams=(1e-3,), p_outs=(1e-3, 0.4), lams_at_boundary=(1e-3, 1e-2))


def quiet(what: str) -> None:
    pass


@pytest.mark.slow
def test_writes_page_and_figures(tmp_path):
    said = []
    out = tmp_path / "deep" / "result"
    results = paper.run_paper(TINY, out, said.append, "coterie paper --seeds 1")
    assert len(said) == TINY.n_steps
    for name in (paper.FIGURE_1, paper.FIGURE_2):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
        assert f"]({name})" in (out / paper.PAGE).read_text(encoding="utf-8")
    page = (out / paper.PAGE).read_text(encoding="utf-8")
    assert "coterie paper --seeds 1" in page
    assert "| as printed | certified optimum |" in page
    assert len(results.lines) == 8
    assert [p.name for p in out.parent.iterdir()] == ["result"]


def test_nothing_is_left_after_a_failure(tmp_path, monkeypatch):
    def fail(results, folder):
        (folder / paper.FIGURE_1).write_bytes(b"half a picture")
        raise RuntimeError("out of luck")

    for name in ("run_table", "weight_curves", "boundary_curve"):
        monkeypatch.setattr(paper, name, lambda *_: [])
    monkeypatch.setattr(paper, "_draw", fail)
    with pytest.raises(RuntimeError, match="out of luck"):
        paper.run_paper(TINY, tmp_path / "result", quiet)
    assert not list(tmp_path.iterdir())


def test_figure_1_falls_as_the_papers_does():
    authors, printed = weight_curves((1e-3,), 1, quiet)
    assert authors.at(1) == pytest.approx(3.8, abs=0.1)
    assert authors.at(50) == pytest.approx(2.2, abs=0.15)
    assert authors.at(100) == pytest.approx(1.25, abs=0.15)
    assert authors.at(200) == pytest.approx(0.23, abs=0.1)
    assert printed.at(500) > 3.3


@pytest.mark.slow
def test_figure_2_rises_with_edges_across():
    curve = boundary_curve((1e-3, 0.2, 0.4), (1e-3, 3e-3), 1, quiet)
    assert curve.at(1e-3) < 1e-4
    assert 0.05 < curve.at(0.2) < 1
    assert 3 < curve.at(0.4) < 5


def test_spread():
    assert Spread.of([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert str(Spread.of([3.0, 1.0, 2.0])) == "2 (1 … 3)"
    assert str(Spread.of([1.5])) == "1.5"
    assert str(Spread.of([np.nan])) == "–"


def test_the_quick_plan_is_a_part_of_the_full_one():
    full, quick = paper.Plan(), paper.Plan.quick()
    assert quick.seeds == 2
    assert full.seeds == 10
    assert quick.n_steps < full.n_steps
    for name in ("lams", "p_outs", "lams_at_boundary"):
        assert set(getattr(quick, name)) <= set(getattr(full, name))
