"""One solver on one problem, in a process of its own. Prints one line of JSON for each run that ended.

The time of a run is the CPU time of the whole process between the solver's start and its answer. Every solver first
solves a tiny problem of the same family, so that imports and compilation are not counted. A short run is repeated, and
the mean without the first counts: clocks of CPU time can be as coarse as 10 ms. When a run reaches the CPU limit, the
system ends the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from typing import Any

import coterie as ct
from benchmarks.families import FAMILIES, Family
from benchmarks.machine import peak_mb
from benchmarks.peers import PEERS, Answer, Peer, coterie, ingredients

TINY, SHORT, REPEATS = 0.02, 0.5, 50


def timed_run(peer: Peer, problem: ct.Problem, setting: float, limit: float) -> tuple[Answer, float]:
    """Run a solver; return its answer and the CPU seconds that it took."""
    answer, first = once(peer, problem, setting, limit)
    again = min(int(SHORT / max(first, SHORT / REPEATS)), REPEATS)
    if again < 2:
        return answer, first
    return answer, sum(once(peer, problem, setting, limit)[1] for _ in range(again)) / again


def once(peer: Peer, problem: ct.Problem, setting: float, limit: float) -> tuple[Answer, float]:
    """One run with its CPU seconds."""
    model = peer.prepare(problem)
    began = time.process_time()
    allow(began + limit)
    answer = peer.run(model, setting)
    seconds = time.process_time() - began
    allow(None)
    return answer, seconds


def allow(seconds: float | None) -> None:
    """Let this process use so much CPU time in all."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = hard if seconds is None else int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def more_and_more(peer: Peer, problem: ct.Problem, goal: float, limit: float) -> Iterator[dict[str, Any]]:
    """Run with one setting after the other until the objective reaches the goal."""
    for setting in peer.settings:
        answer, seconds = timed_run(peer, problem, setting, limit)
        line = report(problem, answer, seconds, setting)
        yield line
        if line["objective"] <= goal:
            return


def certified(peer: Peer, problem: ct.Problem, family: Family, limit: float) -> Iterator[dict[str, Any]]:
    """Run Coterie once for each target: the certificate itself says when it is reached."""
    for target in family.targets:
        answer, seconds = timed_run(peer, problem, target, limit)
        yield report(problem, answer, seconds, target)


def watched(peer: Peer, problem: ct.Problem, goals: list[float], limit: float) -> list[dict[str, Any]]:
    """Run Algorithm 1 once, and look at its objective now and then, off the clock."""
    lines: list[dict[str, Any]] = []
    look, off_clock = 10, 0.0
    goals = sorted(goals)
    parts = peer.prepare(problem)
    began = time.process_time()

    def callback(k: int, w: Any, u: Any) -> None:
        nonlocal look, off_clock
        if k < look:
            return
        now = time.process_time()
        line = report(problem, Answer(w, k), now - began - off_clock, k)
        if line["objective"] <= goals[-1]:
            lines.append(line)
            while goals and line["objective"] <= goals[-1]:
                goals.pop()
        if not goals:
            raise StopIteration  # Algorithm 1 has no stopping criterion of its own
        if line["seconds"] > limit:
            lines.append({"trouble": f"over {limit:g} s"})
            raise StopIteration
        look = max(k + 10, int(1.02 * k))
        off_clock += time.process_time() - now

    try:
        peer.run(parts, 1e9, callback)
    except StopIteration:
        return lines
    raise AssertionError("Algorithm 1 does not end by itself")


def report(problem: ct.Problem, answer: Answer, seconds: float, setting: float) -> dict[str, Any]:
    """Say what came out of a run."""
    return {
        "setting": setting,
        "seconds": seconds,
        "objective": problem.objective(answer.w),
        "n_iter": answer.n_iter,
        "gap": answer.gap,
        "peak_mb": peak_mb(),
    }


def reference(problem: ct.Problem, limit: float) -> dict[str, Any]:
    """The best objective that Coterie finds in a good while, with its certificate."""
    answer = coterie(ingredients(problem), 1e-9, time_limit=3 * limit)
    return report(problem, answer, 0.0, 1e-9)


def work(family: Family, peer: Peer, problem: ct.Problem, optimum: float, limit: float) -> Iterator[dict[str, Any]]:
    """All runs of one solver on one problem."""
    goals = [optimum + target * abs(optimum) for target in family.targets[:2]]
    if peer.name == "Coterie":
        yield from certified(peer, problem, family, limit)
    elif peer.name == "Algorithm 1":
        yield from watched(peer, problem, goals, limit)
    else:
        yield from more_and_more(peer, problem, goals[-1], limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("peer", choices=[*PEERS, "reference"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=180.0)
    parser.add_argument("--optimum", type=float, default=float("-inf"))
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    family = FAMILIES[given.family]
    problem = family.build(given.scale, given.seed)
    peer = PEERS["Coterie" if given.peer == "reference" else given.peer]
    refusal = peer.refuses(problem) if peer.installed else "not installed"
    if refusal:
        print(json.dumps({"trouble": refusal}))
        return
    peer(family.build(min(TINY, given.scale), given.seed))
    if given.peer == "reference":
        print(json.dumps(reference(problem, given.limit)))
        return
    for line in work(family, peer, problem, given.optimum, given.limit):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
