"""What Coterie has promised to reach beside its peers, and whether it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.results import Findings

PDLP = ("PDLP (primal)", "PDLP (dual)")
CLARABEL = ("CVXPY + Clarabel",)


class Verdict(NamedTuple):
    """A promise, what was measured, and whether it was kept; None: it could not be measured.

    `margin` is what was measured, in units of what was promised: 1 is just kept.
    """

    family: str
    promise: str
    measured: str
    kept: bool | None
    margin: float = 0.0


@dataclass(frozen=True)
class Ratio:
    """Coterie to 1e-6 in at most 1/`times` of the seconds of the fastest of `peers`."""

    family: str
    peers: tuple[str, ...]
    times: float
    stretch: bool = False

    def judge(self, findings: Findings) -> Verdict:
        results, optima = findings.results, findings.optima
        names = " or ".join(self.peers)
        speed = "as fast as" if self.times == 1 else f"{self.times:g} × as fast as"
        promise = f"{'stretch: ' if self.stretch else ''}{speed} {names}, to 1e-6"
        own = results[self.family, "Coterie"].seconds_to(1e-6, optima[self.family])
        theirs = [
            (seconds, result)
            for peer in self.peers
            if (result := results.get((self.family, peer))) is not None
            and (seconds := result.at_least(1e-6, optima[self.family])) is not None
        ]
        if own is None:
            return Verdict(self.family, promise, "no certificate in time", False)
        if not theirs:
            return Verdict(self.family, promise, "no such solver ran", None)
        seconds, fastest = min(theirs, key=lambda pair: pair[0])
        unfinished = fastest.seconds_to(1e-6, optima[self.family]) is None
        measured = f"{'more than ' if unfinished else ''}{seconds / own:.3g} × ({fastest.peer})"
        kept = seconds >= self.times * own
        margin = seconds / (self.times * own)
        return Verdict(self.family, promise, measured, None if unfinished and not kept else kept, margin)


@dataclass(frozen=True)
class Limit:
    """Coterie to a target within so many seconds or iterations."""

    family: str
    target: float
    most: float
    unit: str

    def judge(self, findings: Findings) -> Verdict:
        results, optima = findings.results, findings.optima
        promise = f"a certified {self.target:g} within {self.most:g} {self.unit}"
        run = results[self.family, "Coterie"].run_to(self.target, optima[self.family])
        if run is None:
            return Verdict(self.family, promise, "no certificate in time", False)
        value = run.n_iter if self.unit == "iterations" else run.seconds
        return Verdict(
            self.family, promise, f"{value:.3g} {self.unit}", value <= self.most, self.most / max(value, 1e-9)
        )


BARS = (
    Ratio("a", ("pycut_pursuit",), 1),
    Limit("a", 1e-6, 150, "iterations"),
    Ratio("b", PDLP, 20),
    Ratio("b", PDLP, 50, stretch=True),
    Ratio("b2", PDLP, 50),
    Ratio("c", ("CVXPY + PIQP",), 15),
    Ratio("d", ("pycut_pursuit", "proxTV"), 3),
    Ratio("d2", ("pycut_pursuit", "proxTV"), 4),
    Limit("e", 1e-8, 0.1, "s"),
    *(Ratio(f"{family}-{loss}", CLARABEL, 10) for family in "bc" for loss in ("lasso", "logistic")),
)


def judge(draws: Sequence[Findings]) -> list[Verdict]:
    """The verdicts on all families that were measured: that of the middle draw, which also names the worst."""
    return [_over(bar, draws) for bar in BARS if (bar.family, "Coterie") in draws[0].results]


def _over(bar: Ratio | Limit, draws: Sequence[Findings]) -> Verdict:
    verdicts = sorted((bar.judge(findings) for findings in draws), key=lambda verdict: verdict.margin)
    middle, worst = verdicts[(len(verdicts) - 1) // 2], verdicts[0]
    if len(verdicts) == 1:
        return middle
    return middle._replace(measured=f"{middle.measured}; worst {worst.measured}")
