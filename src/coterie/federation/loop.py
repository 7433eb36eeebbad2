"""Rounds of questions and answers, until the gap is proven to be small."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie.federation.coordinator import Coordinator
from coterie.federation.ledger import Ledger
from coterie.federation.messages import Answer, BadAnswerError, Introduction, Question, Sites, wrong_with
from coterie.federation.partition import Cut
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


@dataclass(eq=False)
class State:
    """All that a server must remember between two rounds; sites are numbered in the order of their names."""

    names: tuple[str, ...]
    coordinator: Coordinator
    ledger: Ledger
    history: list[Round] = field(default_factory=list)
    set_aside: dict[int, str] = field(default_factory=dict)

    @classmethod
    def first(cls, cut: Cut, penalty: Penalty, lam: float, n: int, introductions: Sequence[Introduction]) -> State:
        """Begin with what the sites said of themselves."""
        coordinator = Coordinator.of(cut, penalty, lam, n, introductions)
        ledger = Ledger.of(cut, penalty, coordinator.c, n, introductions)
        return cls(tuple(one.name for one in introductions), coordinator, ledger)


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
    held : tuple of str
        Sites that went away, or were set aside, and kept their last weights.
    complaints : tuple of str
        What the sites that were set aside had answered.
    """

    w: Mapping[int, Array]
    boundary: Array
    objective: float
    dual_bound: float
    gap: float
    unconditional: bool
    condition: str
    status: Status
    held: tuple[str, ...]
    complaints: tuple[str, ...]
    history: tuple[Round, ...]

    @property
    def rounds(self) -> int:
        return len(self.history)


@dataclass(frozen=True)
class Rules:
    """When to stop, and what to do about sites that do not play their part.

    Attributes
    ----------
    tol : float
        The certified relative gap to reach.
    max_rounds : int
    hold_after : int
        A site that misses so many rounds in a row is held: it keeps its last weights and the others go on.
    set_aside : bool
        Whether a site that answers nonsense is set aside, that is, held for good; otherwise it ends the run.
    """

    tol: float = 1e-6
    max_rounds: int = 200
    hold_after: int = 3
    set_aside: bool = False


USUAL = Rules()


def federate(
    sites: Sites,
    state: State,
    rules: Rules = USUAL,
    callback: Callable[[State], None] | None = None,
) -> Outcome:
    """Ask the sites until the certified gap is small enough; `callback` sees the state after every round."""
    began = time.perf_counter()
    coordinator, ledger = state.coordinator, state.ledger
    missed = np.zeros(len(state.names), dtype=np.int64)
    while len(state.history) < rules.max_rounds and (ledger.gap > rules.tol or _levels_are_new(state)):
        questions = _questions(coordinator, ledger)
        answers = _checked(state, questions, sites.ask(questions), rules)
        ledger.note(questions, answers)
        missed += 1
        missed[list(answers)] = 0
        _hold(state, {int(k) for k in np.flatnonzero(missed >= rules.hold_after)} | state.set_aside.keys())
        if not ledger.silent:
            ledger.prove(coordinator.take(ledger.w.copy(), ledger.g.copy()))
        seconds = time.perf_counter() - began
        number = len(state.history) + 1
        state.history.append(Round(number, ledger.objective, ledger.dual_bound, ledger.gap, len(answers), seconds))
        if callback is not None:
            callback(state)
    proven = Status.OPTIMAL if ledger.proof.unconditional else Status.CONDITIONAL
    return _outcome(sites, state, proven if ledger.gap <= rules.tol else Status.ITERATION_LIMIT)


def _levels_are_new(state: State) -> bool:
    """After the first round, whose questions could name no objective that was reached: sites may prove more now."""
    return len(state.history) == 1 and not state.ledger.proof.unconditional


def _checked(
    state: State, questions: Mapping[int, Question], answers: Mapping[int, Answer | BadAnswerError], rules: Rules
) -> dict[int, Answer]:
    """Leave out what cannot be, and whoever said such a thing before."""
    good = {}
    for k, answer in answers.items():
        if k in state.set_aside:
            continue
        wrong = answer if isinstance(answer, BadAnswerError) else wrong_with(questions[k], answer)
        if wrong is not None:
            what = f"site {state.names[k]!r} answered with {wrong}"
            if not rules.set_aside or k in state.ledger.silent:
                raise FederationError(what)
            state.set_aside[k] = what
        elif isinstance(answer, Answer):
            good[k] = answer
    return good


def _questions(coordinator: Coordinator, ledger: Ledger) -> dict[int, Question]:
    v, tau = coordinator.v, coordinator.steps.tau
    return {k: Question(v[at], tau[at], ledger.level(k)) for k, at in enumerate(coordinator.sites)}


def _hold(state: State, gone: set[int]) -> None:
    """Hold the sites that are away, and no others."""
    ledger = state.ledger
    lost = gone & set(ledger.silent)
    if lost:
        raise FederationError(
            f"site {state.names[min(lost)]!r} has never answered, so there are no weights to keep for it"
        )
    if gone != ledger.held:
        state.coordinator.hold(gone)
        ledger.hold(gone)


def _outcome(sites: Sites, state: State, status: Status) -> Outcome:
    ledger = state.ledger
    cut = ledger.cut
    best = {
        k: Question(ledger.best_v[cut.of(k)], ledger.best_tau[cut.of(k)], ledger.level(k))
        for k in range(len(state.names))
        if k not in ledger.held
    }
    return Outcome(
        sites.collect(best),
        ledger.best_w[: len(cut.nodes)],
        ledger.objective,
        ledger.dual_bound,
        ledger.gap,
        ledger.proof.unconditional,
        ledger.condition,
        status,
        tuple(state.names[k] for k in sorted(ledger.held)),
        tuple(state.set_aside.values()),
        tuple(state.history),
    )
