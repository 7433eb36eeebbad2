"""Rounds with differential privacy: a fixed number, plain steps, and no certificate.

What sites release is noisy, so there is nothing to be learnt of how they answer, and no bound to be proven: a bound
would tell about rows. The server iterates the primal-dual operator of `coordinator.py` as it stands; the last half of
its points are averaged, and at the average each site finds the weights of its own nodes, which it keeps to itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from coterie.federation.coordinator import Coordinator
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.loop import FederationError, Outcome, Round, State
from coterie.federation.messages import BadReplyError, ProxRequest, validate_weights
from coterie.problem.arrays import Array
from coterie.solver.solution import Status

NO_CERTIFICATE = "no certificate: with differential privacy the sites send nothing that could prove how good this is"


class PrivateSites(Protocol):
    """Whoever carries requests to sites and brings back noisy replies; sites that stay silent are left out."""

    def release(self, requests: Mapping[int, ProxRequest]) -> Mapping[int, Array | BadReplyError]:
        """Send a request to each of these sites, and return the noisy boundary weights that came back."""

    def collect(self, requests: Mapping[int, ProxRequest]) -> Mapping[int, Array]:
        """Tell the sites where to find the weights of their own nodes; the server gets none."""


def federate_privately(
    sites: PrivateSites, state: State, privacy: Privacy, callback: Callable[[State], None] | None = None
) -> Outcome:
    """Ask the sites as often as the privacy allows; a site that misses a round is taken to agree with its centres."""
    began = time.perf_counter()
    coordinator = state.coordinator
    averaged = privacy.rounds - privacy.rounds // 2
    v, w = np.zeros_like(coordinator.w), np.zeros_like(coordinator.w)
    for number in range(1, privacy.rounds + 1):
        requests = _requests(coordinator, coordinator.v)
        released = _checked(state, requests, sites.release(requests))
        w_hat = coordinator.v
        for k, reply in released.items():
            w_hat[coordinator.cut.of(k)] = reply
        if number > privacy.rounds - averaged:
            v, w = v + coordinator.v / averaged, w + w_hat / averaged
        coordinator.step(w_hat)
        seconds = time.perf_counter() - began
        state.history.append(Round(number, np.nan, np.nan, np.nan, len(released), seconds))
        if callback is not None:
            callback(state)
    return Outcome(
        sites.collect(_requests(coordinator, v)),
        w[: len(coordinator.cut.nodes)],
        np.nan,
        np.nan,
        np.nan,
        False,
        NO_CERTIFICATE,
        Status.ITERATIONS_DONE,
        (),
        (),
        tuple(state.history),
    )


def _requests(coordinator: Coordinator, v: Array) -> dict[int, ProxRequest]:
    tau = coordinator.steps.tau
    return {k: ProxRequest(v[at], tau[at], np.inf) for k, at in enumerate(coordinator.sites)}


def _checked(
    state: State, requests: Mapping[int, ProxRequest], released: Mapping[int, Array | BadReplyError]
) -> dict[int, Array]:
    """What the sites released, if it can be; a site that sends something else ends the run."""
    good = {}
    for k, reply in released.items():
        wrong = reply if isinstance(reply, BadReplyError) else validate_weights(requests[k], reply)
        if wrong is not None or isinstance(reply, BadReplyError):
            raise FederationError(f"site {state.names[k]!r} answered with {wrong}")
        good[k] = reply
    return good
