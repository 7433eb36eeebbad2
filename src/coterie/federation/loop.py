"""Rounds of questions and answers, until the gap is proven to be small."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coterie.engines.partition import Cut
from coterie.federation.coordinator import Coordinator
from coterie.federation.exchange import Introduction, Question, Sites
from coterie.federation.ledger import Ledger
from coterie.problem.arrays import Array
from coterie.problem.penalties import Penalty
from coterie.solver.solution import Status


class FederationError(RuntimeError):
    """The federation cannot go on; the message names the site and says why."""


@dataclass(frozen=True)
class Round:
    """One line of the history."""

    number: int
    objective: float
    dual_bound: float
    gap: float
    present: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a federation has found.

    Attributes
    ----------
    w : dict of site number to array
        The weights of all nodes of each site that gave them at the end.
    boundary : array of shape (B, n)
        The weights of the boundary nodes.
    objective, dual_bound, gap, unconditional, condition
        As in a :class:`coterie.Solution`. Where sites are held, of the problem in which their weights stay as they are.
    held : tuple of int
        Sites that went away and kept their last weights.
    """

    w: Mapping[int, Array]
    boundary: Array
    objective: float
    dual_bound: float
    gap: float
    unconditional: bool
    condition: str
    status: Status
    held: tuple[int, ...]
    history: tuple[Round, ...]

    @property
    def rounds(self) -> int:
        return len(self.history)


def federate(
    sites: Sites,
    cut: Cut,
    penalty: Penalty,
    lam: float,
    n: int,
    introductions: Sequence[Introduction],
    *,
    tol: float = 1e-6,
    max_rounds: int = 200,
    hold_after: int = 3,
    callback: Callable[[Round], None] | None = None,
) -> Outcome:
    """Ask the sites until the certified relative gap is at most tol.

    A site that misses `hold_after` rounds in a row is held: it keeps its last weights and the others go on.
    """
    began = time.perf_counter()
    coordinator = Coordinator.of(cut, penalty, lam, n, introductions)
    ledger = Ledger.of(cut, penalty, coordinator.c, n, introductions)
    missed = np.zeros(len(introductions), dtype=np.int64)
    history: list[Round] = []
    while len(history) < max_rounds:
        questions = _questions(coordinator, ledger)
        answers = sites.ask(questions)
        ledger.note(questions, answers)
        missed += 1
        missed[list(answers)] = 0
        _hold(coordinator, ledger, missed >= hold_after)
        if not ledger.silent:
            ledger.prove(coordinator.take(ledger.w.copy(), ledger.g.copy()))
        seconds = time.perf_counter() - began
        history.append(Round(len(history) + 1, ledger.objective, ledger.dual_bound, ledger.gap, len(answers), seconds))
        if callback is not None:
            callback(history[-1])
        if ledger.gap <= tol:
            break
    return _outcome(sites, ledger, history, Status.OPTIMAL if ledger.gap <= tol else Status.ITERATION_LIMIT)


def _questions(coordinator: Coordinator, ledger: Ledger) -> dict[int, Question]:
    v, tau = coordinator.v, coordinator.steps.tau
    return {k: Question(v[at], tau[at], ledger.level(k)) for k, at in enumerate(coordinator.sites)}


def _hold(coordinator: Coordinator, ledger: Ledger, away: Array) -> None:
    """Hold the sites that are away, and forget bounds that were proven for another set of them."""
    gone = {int(k) for k in np.flatnonzero(away)}
    lost = gone & set(ledger.silent)
    if lost:
        raise FederationError(f"site {min(lost)} has never answered, so there are no weights to keep for it")
    if gone != ledger.held:
        coordinator.held = ledger.held = gone
        ledger.forget_proof()


def _outcome(sites: Sites, ledger: Ledger, history: Sequence[Round], status: Status) -> Outcome:
    cut = ledger.cut
    best = {
        k: Question(ledger.best_v[cut.of(k)], ledger.best_tau[cut.of(k)], ledger.level(k))
        for k in range(len(ledger.scalars))
        if k not in ledger.held
    }
    return Outcome(
        sites.collect(best),
        ledger.best_w,
        ledger.objective,
        ledger.dual_bound,
        ledger.gap,
        ledger.proof.unconditional,
        ledger.condition,
        status,
        tuple(sorted(ledger.held)),
        tuple(history),
    )
