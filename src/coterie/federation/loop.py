"""Rounds of requests and replies, until the gap is proven to be small."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coterie.federation.consistency import Consistency
from coterie.federation.coordinator import Coordinator
from coterie.federation.federated_certificate import FederatedCertificate
from coterie.federation.messages import LATE, BadReplyError, Introduction, Late, ProxReply, ProxRequest, Sites, validate
from coterie.federation.partition import Cut
from coterie.problem.arrays import Array
from coterie.problem.penalties import Penalty
from coterie.solver.solution import Status

CONTRADICTED = (
    "what the sites answered proves a bound above an objective that they reached: at least one does not answer "
    "truthfully, and which one cannot be told from what the server knows"
)


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
    certificate: FederatedCertificate
    consistency: Consistency
    history: list[Round] = field(default_factory=list)
    set_aside: dict[int, str] = field(default_factory=dict)

    @classmethod
    def first(
        cls,
        cut: Cut,
        penalty: Penalty,
        lam: float,
        n: int,
        introductions: Sequence[Introduction],
        blocks: NDArray[np.int64] | None = None,
    ) -> State:
        """Begin with what the sites said of themselves; `blocks` as a Coordinator has them."""
        coordinator = Coordinator.of(cut, penalty, lam, n, introductions, blocks)
        certificate = FederatedCertificate.of(cut, penalty, coordinator.c, n, introductions)
        return cls(tuple(one.name for one in introductions), coordinator, certificate, Consistency(introductions))


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
    coordinator, certificate = state.coordinator, state.certificate
    missed = np.zeros(len(state.names), dtype=np.int64)
    before = len(state.history)
    while (len(state.history) < rules.max_rounds or certificate.silent) and (
        certificate.gap > rules.tol or _levels_are_new(state, before)
    ):
        requests = _requests(coordinator, certificate)
        heard = sites.ask(requests)
        replies = _checked(state, requests, heard, rules)
        certificate.note(requests, replies)
        missed += 1
        missed[[k for k, reply in heard.items() if k in replies or reply is LATE]] = 0
        _hold(state, {int(k) for k in np.flatnonzero(missed >= rules.hold_after)} | state.set_aside.keys())
        if not certificate.silent:
            now = np.isin(certificate.cut.part, [k for k, reply in replies.items() if reply.to is None])
            certificate.prove(coordinator.take(certificate.w.copy(), certificate.g.copy(), now))
            if certificate.is_contradicted:
                raise FederationError(CONTRADICTED)
        seconds = time.perf_counter() - began
        number = len(state.history) + 1
        state.history.append(
            Round(number, certificate.objective, certificate.dual_bound, certificate.gap, len(replies), seconds)
        )
        if callback is not None:
            callback(state)
    proven = Status.OPTIMAL if certificate.proof.unconditional else Status.CONDITIONAL
    return _outcome(sites, state, proven if certificate.gap <= rules.tol else Status.ITERATION_LIMIT)


def _levels_are_new(state: State, before: int) -> bool:
    """After the first round, whose requests could name no objective that was reached: sites may prove more now."""
    return len(state.history) == before + 1 and not state.certificate.proof.unconditional


def _checked(
    state: State,
    requests: Mapping[int, ProxRequest],
    replies: Mapping[int, ProxReply | BadReplyError | Late],
    rules: Rules,
) -> dict[int, ProxReply]:
    """Leave out what cannot be, and whoever said such a thing before."""
    good = {}
    for k, reply in replies.items():
        if k in state.set_aside or reply is LATE:
            continue
        wrong = reply if isinstance(reply, BadReplyError) else _wrong(state, k, reply.to or requests[k], reply)
        if wrong is not None:
            what = f"site {state.names[k]!r} answered with {wrong}"
            if not rules.set_aside or k in state.certificate.silent:
                raise FederationError(what)
            state.set_aside[k] = what
        elif isinstance(reply, ProxReply):
            good[k] = reply
    return good


def _wrong(state: State, k: int, request: ProxRequest, reply: ProxReply) -> BadReplyError | str | None:
    """What is wrong with a reply: as such, or beside what its site said before."""
    return validate(request, reply) or state.consistency.contradiction(k, request, reply)


def _requests(coordinator: Coordinator, certificate: FederatedCertificate) -> dict[int, ProxRequest]:
    v, tau, level = coordinator.v, coordinator.steps.tau, certificate.levels
    return {k: ProxRequest(v[at], tau[at], float(level[k])) for k, at in enumerate(coordinator.sites)}


def _hold(state: State, gone: set[int]) -> None:
    """Hold the sites that are away, and no others."""
    certificate = state.certificate
    lost = gone & set(certificate.silent)
    if lost:
        raise FederationError(
            f"site {state.names[min(lost)]!r} has never answered, so there are no weights to keep for it"
        )
    if gone != certificate.held:
        state.coordinator.hold(gone)
        certificate.hold(gone)


def _outcome(sites: Sites, state: State, status: Status) -> Outcome:
    certificate = state.certificate
    cut, level = certificate.cut, certificate.levels
    best = {
        k: ProxRequest(certificate.best_v[cut.of(k)], certificate.best_tau[cut.of(k)], float(level[k]))
        for k in range(len(state.names))
        if k not in certificate.held
    }
    return Outcome(
        sites.collect(best),
        certificate.best_w[: len(cut.nodes)],
        certificate.objective,
        certificate.dual_bound,
        certificate.gap,
        certificate.proof.unconditional,
        certificate.condition,
        status,
        tuple(state.names[k] for k in sorted(certificate.held)),
        tuple(state.set_aside.values()),
        tuple(state.history),
    )
