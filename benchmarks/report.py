"""The results as a table, for a terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bars import Verdict
from benchmarks.families import FAMILIES
from benchmarks.results import Findings, Result

HEAD = ("family", "solver", "CPU s to 1e-4", "to 1e-6", "peak MB", "note")
PROMISES = ("family", "promise", "measured", "kept")

COUNTED = """\
Relative suboptimality is (P − P*)/P*, with the best objective of the whole run for P*. Coterie's time ends with its
certificate: it is the time of `solve(problem, tol)` from the arrays of the problem, presolve, the loss's
factorisations and the proof included. The others prove nothing (or only inside their own model); each is run with
ever smaller tolerances, and the first run whose weights are close enough counts, alone. Their time is that of the
solver's call; what comes before it, such as building matrices or CVXPY's expressions, is not counted, while CVXPY's
own translation, which is part of `Problem.solve`, is. Algorithm 1 is watched from outside, off the clock. Times are
CPU seconds of the process, one thread, after a tiny problem of the same kind has been solved: imports and compilation
do not count. Every family is drawn several times; the middle one counts, and the worst stands in brackets (optima and
notes: of the first and of the middle draw). Runs shorter than a quarter of a second are repeated and the mean counts.
The peak is the memory of the whole process, Python and the problem included. PDLP is given the problem in two forms,
as it is and its dual; promises are judged by the faster.
"""


def rows(draws: Sequence[Findings]) -> list[tuple[str, ...]]:
    """One row for each pair that says something."""
    return [_row(pair, draws) for pair, result in draws[0].results.items() if result.applies]


def _row(pair: tuple[str, str], draws: Sequence[Findings]) -> tuple[str, ...]:
    family, peer = pair
    drawn = [(findings.results[pair], findings.optima[family]) for findings in draws]
    peak = max((run.peak_mb for result, _ in drawn for run in result.runs), default=None)
    return (
        family,
        peer,
        _seconds(drawn, 1e-4),
        _seconds(drawn, 1e-6),
        "–" if peak is None else f"{peak:.0f}",
        _note(*_middle(drawn)),
    )


def _middle(drawn: list[tuple[Result, float]]) -> tuple[Result, float]:
    """The result of the middle draw, by its seconds to 1e-6."""
    return sorted(drawn, key=lambda pair: _order(pair[0].seconds_to(1e-6, pair[1])))[(len(drawn) - 1) // 2]


def _order(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds


def _seconds(drawn: list[tuple[Result, float]], target: float) -> str:
    """The middle draw; where there are several, the worst in brackets."""
    times = sorted(_order(result.seconds_to(target, optimum)) for result, optimum in drawn)
    missing = [result for result, optimum in drawn if result.seconds_to(target, optimum) is None]
    missed = next((f"> {result.limit:g}" for result in missing if result.out_of_time), "not reached")

    def words(seconds: float) -> str:
        return missed if seconds == float("inf") else f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"

    middle, worst = words(times[(len(times) - 1) // 2]), words(times[-1])
    return middle if len(times) == 1 else f"{middle} ({worst})"


def _note(result: Result, optimum: float) -> str:
    notes = []
    run = result.run_to(1e-6, optimum) or (result.runs[-1] if result.runs else None)
    if run is not None and run.n_iter is not None:
        notes.append(f"{run.n_iter} iterations")
    if run is not None and run.gap is not None:
        notes.append(f"certified {run.gap:.1e}")
    if result.trouble and not result.out_of_time:
        notes.append(result.trouble)
    return ", ".join(notes)


def left_out(draws: Sequence[Findings]) -> list[str]:
    """Why some pairs have no row."""
    reasons: dict[str, list[str]] = {}
    for result in draws[0].results.values():
        if not result.applies:
            reasons.setdefault(f"{result.peer}: {result.trouble or 'no answer'}", []).append(result.family)
    return [f"{reason} ({', '.join(families)})" for reason, families in reasons.items()]


def verdict_rows(verdicts: Sequence[Verdict]) -> list[tuple[str, ...]]:
    words = {True: "yes", False: "no", None: "not measured"}
    return [(v.family, v.promise, v.measured, words[v.kept]) for v in verdicts]


def text_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Columns for a terminal."""
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = [head, ["─" * width for width in widths], *body]
    return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Columns for the documentation."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(draws: Sequence[Findings], verdicts: Sequence[Verdict], about: list[str], f: str) -> str:
    """docs/benchmarks.md."""
    families = "\n".join(
        f"* **{name}**: {FAMILIES[name].what}; optimum {optimum:.7g}, certified to {draws[0].gaps[name]:.0e}"
        for name, optimum in draws[0].optima.items()
    )
    skipped = "".join(f"* {line}\n" for line in left_out(draws))
    parts = [
        "# Benchmarks\n",
        "Written by `make bench ARGS='--large --out docs/benchmarks.md'`; "
        "[benchmarks/](../benchmarks/README.md) says how to run and extend it.\n",
        "".join(f"{line}  \n" for line in about),
        families + "\n",
        markdown_table(HEAD, rows(draws)) + "\n",
        f"Left out:\n\n{skipped}" if skipped else "",
        "## What is counted\n",
        COUNTED,
        "## Promises\n",
        markdown_table(PROMISES, verdict_rows(verdicts)) + "\n",
        f,
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"
