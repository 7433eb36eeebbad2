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
do not count. Runs shorter than a quarter of a second are repeated and the mean counts. The peak is the memory of the
whole process, Python and the problem included. PDLP is given the problem in two forms, as it is and its dual; promises
are judged by the faster.
"""


def rows(findings: Findings) -> list[tuple[str, ...]]:
    """One row for each pair that says something."""
    return [_row(result, findings.optima[result.family]) for result in findings.results.values() if result.applies]


def _row(result: Result, optimum: float) -> tuple[str, ...]:
    peak = max((run.peak_mb for run in result.runs), default=None)
    return (
        result.family,
        result.peer,
        _seconds(result, 1e-4, optimum),
        _seconds(result, 1e-6, optimum),
        "–" if peak is None else f"{peak:.0f}",
        _note(result, optimum),
    )


def _seconds(result: Result, target: float, optimum: float) -> str:
    seconds = result.seconds_to(target, optimum)
    if seconds is not None:
        return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
    return f"> {result.limit:g}" if result.out_of_time else "not reached"


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


def left_out(findings: Findings) -> list[str]:
    """Why some pairs have no row."""
    reasons: dict[str, list[str]] = {}
    for result in findings.results.values():
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


def page(findings: Findings, verdicts: Sequence[Verdict], about: list[str], f: str) -> str:
    """docs/benchmarks.md."""
    families = "\n".join(
        f"* **{name}**: {FAMILIES[name].what}; optimum {optimum:.7g}, certified to {findings.gaps[name]:.0e}"
        for name, optimum in findings.optima.items()
    )
    skipped = "".join(f"* {line}\n" for line in left_out(findings))
    parts = [
        "# Benchmarks\n",
        "Written by `make bench ARGS='--large --out docs/benchmarks.md'`; "
        "[benchmarks/](../benchmarks/README.md) says how to run and extend it.\n",
        "".join(f"{line}  \n" for line in about),
        families + "\n",
        markdown_table(HEAD, rows(findings)) + "\n",
        f"Left out:\n\n{skipped}" if skipped else "",
        "## What is counted\n",
        COUNTED,
        "## Promises\n",
        markdown_table(PROMISES, verdict_rows(verdicts)) + "\n",
        f,
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"
