"""All that a server and a site ever say to each other.

The weights, centres and forces of boundary nodes have shape (b, n), b boundary nodes of the site in the order of the
request; everything else is a scalar. Nothing else leaves a site: no row, no label, no XᵀX, no inner edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from coterie.problem.arrays import Array

HUGE = 1e150  # numbers of real problems are smaller, and their squares are numbers: sums of larger ones prove nothing


@dataclass(frozen=True, eq=False)
class Introduction:
    """What a site says of itself at the start.

    Attributes
    ----------
    name : str
    hosts : array of int
        Which of the boundary nodes that were asked for live here: places in the list that was sent.
    columns : tuple of str
        The names of the features, then of the label: the schema.
    floor : float
        No weights of the site's nodes have a smaller loss.
    scale : float
        The loss of zero weights, which every federation can reach.
    constant : float
        The loss of the site's best constant model: what gaps are relative to where the optimum is 0.
    size : float
        ‖v‖² of the one weight vector v that suits all rows of the site best: the scale of the weights.
    digest : str
        Of all that the site has, a few digits: a checkpoint of a run with other data is not gone on from.

    With differential privacy the last five are not said: they have the same values for every site.
    """

    name: str
    hosts: Array
    columns: tuple[str, ...]
    floor: float = -np.inf
    scale: float = 0.0
    constant: float = 0.0
    size: float = 0.0
    digest: str = ""


@dataclass(frozen=True, eq=False)
class ProxRequest:
    """Asks for the weights that minimise F_s(w) + Σ_b ‖w_b − v_b‖²/(2τ_b), a proximal map of F_s.

    F_s is the site's own part of the objective: losses and inner edges. `level` bounds what F_s can be at an optimum.
    """

    v: Array
    tau: Array
    level: float

    def asks_the_same(self, other: ProxRequest) -> bool:
        """Whether the same weights answer both."""
        return np.array_equal(self.v, other.v) and np.array_equal(self.tau, other.tau)


@dataclass(frozen=True, eq=False)
class ProxReply:
    """ŵ at the boundary, and scalars for the certificate.

    Attributes
    ----------
    w : array of shape (b, n)
    value : float
        F_s(ŵ).
    bound, left : float
        F_s(w) − ⟨g, w⟩ ≥ bound − left·max|w| for every w, with g = (v − ŵ)/τ; at ŵ both sides are nearly equal.
    reach : float
        The largest |weight| of a labelled node of the site wherever F_s ≤ level; infinite when unknown.
    to : ProxRequest, optional
        The request that it answers, where that is not the latest one: replies may be late.
    """

    w: Array
    value: float
    bound: float
    left: float
    reach: float
    to: ProxRequest | None = field(default=None, kw_only=True)


class Late(Enum):
    """Instead of a reply: the site is still at work on an earlier request."""

    LATE = "late"


LATE = Late.LATE


class BadReplyError(ValueError):
    """A site replied something that cannot be; the message says what."""


class Sites(Protocol):
    """Whoever carries requests to sites and brings back replies; sites that stay silent are left out."""

    def ask(self, requests: Mapping[int, ProxRequest]) -> Mapping[int, ProxReply | BadReplyError | Late]:
        """Send a request to each of these sites, by number, and return what came back.

        A site that is at work on an earlier request need not get this one; its reply says what it answers.
        """

    def collect(self, requests: Mapping[int, ProxRequest]) -> Mapping[int, Array]:
        """Ask for the weights of all nodes of each site that answer these requests."""


def validate(request: ProxRequest, reply: ProxReply) -> BadReplyError | None:
    """Return what is wrong with a reply: its shape, or numbers that cannot be; None when nothing is."""
    wrong = validate_weights(request, reply.w)
    if wrong is not None:
        return wrong
    for name in ("value", "bound", "left"):
        if not abs(getattr(reply, name)) < HUGE:
            return BadReplyError(f"a {name} of {getattr(reply, name)}")
    if reply.left < 0 or not reply.reach >= 0:
        return BadReplyError(f"left = {reply.left} and reach = {reply.reach}; neither can be negative")
    return None


def validate_weights(request: ProxRequest, w: Array) -> BadReplyError | None:
    """Return what is wrong with boundary weights that a site sent; None when nothing is."""
    if np.shape(w) != np.shape(request.v):
        return BadReplyError(f"weights of shape {np.shape(w)} instead of {np.shape(request.v)}")
    return None if (np.abs(w) < HUGE).all() else BadReplyError("weights that are not finite, or as large as no weight")
