from __future__ import annotations

import pytest

from benchmarks import bars, kernel, machine, report, table
from benchmarks.results import Findings, Result, Run


def result(peer: str, *runs: tuple[float, float, float], trouble: str = "", family: str = "b") -> Result:
    """Runs of (setting, seconds, objective); a certified gap as large as the setting."""
    made = tuple(Run(s, t, objective, 100, s if peer == "Coterie" else None, 200.0) for s, t, objective in runs)
    return Result(family, peer, made, trouble, limit=180.0)


COTERIE = result("Coterie", (1e-4, 0.5, 1.00001), (1e-6, 1.0, 1.0000001))
PRIMAL = result("PDLP (primal)", (1e-4, 20.0, 1.001), (1e-5, 30.0, 1.00005), (1e-6, 40.0, 1.0000005))
SLOW = result("PDLP (dual)", (1e-4, 100.0, 1.00001), trouble="over 180 s")
ABSENT = result("proxTV", trouble="images only")


def findings(*results: Result) -> Findings:
    made = Findings()
    made.add("b", Run(1e-9, 1.0, 1.0, 100, 1e-9, 200.0), list(results))
    return made


ALL = findings(COTERIE, PRIMAL, SLOW, ABSENT)


def test_the_first_run_that_is_close_enough_counts():
    assert PRIMAL.seconds_to(1e-4, 1.0) == 30.0
    assert PRIMAL.seconds_to(1e-6, 1.0) == 40.0
    assert SLOW.seconds_to(1e-6, 1.0) is None
    assert SLOW.at_least(1e-6, 1.0) == 180.0
    assert ABSENT.at_least(1e-6, 1.0) is None


def test_coterie_counts_by_its_certificate_alone():
    uncertified = Result("b", "Coterie", (Run(1e-6, 1.0, 1.0, 100, 1e-3, 200.0),))
    assert uncertified.seconds_to(1e-6, 1.0) is None


def test_promises():
    kept, stretch = bars.judge([ALL])
    assert kept.kept is True
    assert kept.measured == "40 × (PDLP (primal))"
    assert stretch.kept is False


def test_a_peer_that_ran_out_of_time_decides_only_what_it_can():
    def kept(coterie: Result) -> list[bool | None]:
        return [verdict.kept for verdict in bars.judge([findings(coterie, SLOW)])]

    assert kept(COTERIE) == [True, True]
    assert kept(result("Coterie", (1e-6, 20.0, 1.0))) == [None, None]
    assert kept(result("Coterie")) == [False, False]


def test_the_table():
    lines = report.text_table(report.HEAD, report.rows([ALL])).splitlines()
    assert lines[2].split() == ["b", "Coterie", "0.5", "1", "200", "100", "iterations,", "certified", "1.0e-06"]
    assert "> 180" in lines[4]
    assert len(lines) == 5
    assert report.left_out([ALL]) == ["proxTV: images only (b)"]


def test_of_several_draws_the_middle_and_the_worst_are_told():
    def draw(seconds: float) -> Findings:
        return findings(result("Coterie", (1e-4, 0.1, 1.0), (1e-6, seconds, 1.0)), PRIMAL, SLOW)

    draws = [draw(1.0), draw(4.0), draw(0.5)]
    own, _, slow = report.rows(draws)
    assert own[2:4] == ("0.1 (0.1)", "1 (4)")
    assert slow[3] == "> 180 (> 180)"
    kept, stretch = bars.judge(draws)
    assert kept.measured == "40 × (PDLP (primal)); worst 10 × (PDLP (primal))"
    assert (kept.kept, stretch.kept) == (True, False)


def test_the_page():
    page = report.page([ALL], bars.judge([ALL]), ["today"], "## Family f\n")
    assert "| b | PDLP (primal) | 30 | 40 | 200 | 100 iterations |" in page
    assert "| b | 20 × as fast as PDLP (primal) or PDLP (dual), to 1e-6 | 40 × (PDLP (primal)) | yes |" in page
    assert page.index("Left out") < page.index("## What is counted") < page.index("## Family f")


@pytest.mark.slow
def test_the_whole_run(tmp_path, capsys):
    out = tmp_path / "page.md"
    table.main(["--families", "e", "--solvers", "Algorithm 1", "--scale", "0.02", "--draws", "2", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "Algorithm 1" in printed
    assert "a certified 1e-08 within 0.1 s" in printed
    assert "| e | Coterie |" in out.read_text(encoding="utf-8")


def test_the_machine_is_described_without_names():
    import platform

    text = " ".join(machine.describe())
    assert "cores" in text
    assert "numpy" in text
    assert platform.node() not in text


@pytest.mark.slow
def test_the_kernel_report():
    bandwidths, best = kernel.measure(side=30, rounds=1)
    text = kernel.report(bandwidths, best, 2 * 30 * 29 * kernel.N)
    assert "edge pass, one thread" in text
    assert set(best) == {(what, threads) for what in ("edge pass", "iteration") for threads in (1, 2)}
