"""Do the answers of a site agree with each other?

Whatever convex F_s a site has, each of its replies (ŵ_j, g_j) bounds it from below, for every w. At the boundary
weights ŵ_i of another reply F_s gets as low as value_i, with no weight above some R_i. So, for all i and j,

    value_i ≥ bound_j + ⟨g_j, ŵ_i⟩ − left_j R_i,

and F_s(0), which the site said at the start, is a value like any other. Rows cost nothing less than the floor, and
the best constant model no more than zero weights. And zero weights are no better an answer than ŵ_i,

    ‖ŵ_i − v_i‖²/(2τ_i) ≤ F_s(0) − floor + ‖v_i‖²/(2τ_i),

so that no site sends the others on a journey; where weights are rounded to the nearest multiple of something, which is
at most twice as large, 26 times as much is allowed. A site that breaks one of these does not speak of one convex
function. A site that keeps them all speaks of *some* data, and nobody else can tell whether these are its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from coterie.federation.messages import Introduction, ProxReply, ProxRequest
from coterie.problem.arrays import Array
from coterie.solver.certificate import REACH

PAST = 20  # replies of each site that a new one is held against
SLACK = 1e-10  # of the sizes of the terms: rounding leaves less than 1e-13
FAR = 100.0  # times what an exact answer is allowed; 26 would do for a rounded one
WHY = "it does not answer truthfully, or its data changed during the run"


class Claims(NamedTuple):
    """What replies say of F_s, one row per reply: a value at ŵ, with weights up to R, and a bound everywhere else."""

    w: Array
    g: Array
    value: Array
    bound: Array
    left: Array
    R: Array

    def with_latest(self, other: Claims) -> Claims:
        """Return these and others after them; of all, the latest."""
        return Claims(*(np.concatenate([mine, new])[-PAST:] for mine, new in zip(self, other, strict=True)))


@dataclass(eq=False)
class Consistency:
    """The latest claims of every site, and what each said of itself at the start."""

    introductions: Sequence[Introduction]
    claims: dict[int, Claims] = field(default_factory=dict)

    def contradiction(self, site: int, request: ProxRequest, reply: ProxReply) -> str | None:
        """Return how a reply contradicts what the site said before, or itself; note it where it does not."""
        one = self.introductions[site]
        new = _claims(request, reply, one.size)
        known = self.claims[site].with_latest(new) if site in self.claims else new
        excess = max(_excess(new, known), _excess(known, new), _broken_start(one, reply))
        if _is_far(one, request, reply):
            return f"weights that are further away than any answer can be: {WHY}"
        if excess > 0:
            return f"an answer that contradicts its others by {excess:.1e}: {WHY}"
        self.claims[site] = known
        return None


def _claims(request: ProxRequest, reply: ProxReply, size: float) -> Claims:
    largest = float(np.abs(reply.w).max(initial=0.0))
    known = reply.value <= request.level and np.isfinite(reply.reach)
    R = max(reply.reach, largest) if known else REACH * max(largest, float(np.sqrt(size)))
    g = (request.v - reply.w) / request.tau[:, None]
    scalars = (np.array([x]) for x in (reply.value, reply.bound, reply.left, R))
    return Claims(reply.w.reshape(1, -1), g.reshape(1, -1), *scalars)


def _excess(at: Claims, bounds: Claims) -> float:
    """By how much what some claims prove exceeds the values that others have reached; 0 where none does."""
    pull, size = at.w @ bounds.g.T, np.abs(at.w) @ np.abs(bounds.g.T)
    slack = SLACK * (np.abs(at.value)[:, None] + np.abs(bounds.bound) + size)
    return max(0.0, float((bounds.bound + pull - at.R[:, None] * bounds.left - at.value[:, None] - slack).max()))


def _is_far(one: Introduction, request: ProxRequest, reply: ProxReply) -> bool:
    """Whether zero weights would have been a far better answer."""
    each = 0.5 / request.tau[:, None]
    journey, at_zero = float((each * (reply.w - request.v) ** 2).sum()), float((each * request.v**2).sum())
    return journey > FAR * (abs(one.scale - one.floor) + at_zero)


def _broken_start(one: Introduction, reply: ProxReply) -> float:
    """By how much a reply, or the introduction itself, breaks what was said at the start: 0 where it does not."""
    slack = SLACK * (abs(one.scale) + abs(one.constant) + abs(reply.bound) + abs(reply.value))
    broken = (reply.bound - one.scale, one.floor - reply.value, one.constant - one.scale)
    return max(0.0, max(broken) - slack)
