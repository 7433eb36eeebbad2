"""Do the answers of a site agree with each other?

Whatever convex F_s a site has, each of its replies (ŵ_j, g_j) bounds it from below, for every w. At the boundary
weights ŵ_i of another reply F_s gets as low as value_i, with no weight above some R_i. So, for all i and j,

    value_i ≥ bound_j + ⟨g_j, ŵ_i⟩ − left_j R_i,

and F_s(0), which the site said at the start, is a value like any other. Rows cost nothing less than the floor, and
the best constant model no more than zero weights. A site that breaks one of these does not speak of one convex
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
WHY = "it does not answer truthfully, or its data changed during the run"


class Claim(NamedTuple):
    """What a reply says of F_s: a value at ŵ, with weights up to R, and a bound everywhere else."""

    w: Array
    g: Array
    value: float
    bound: float
    left: float
    R: float


@dataclass(eq=False)
class Consistency:
    """The latest claims of every site, and what each said of itself at the start."""

    introductions: Sequence[Introduction]
    claims: dict[int, list[Claim]] = field(default_factory=dict)

    def contradiction(self, site: int, request: ProxRequest, reply: ProxReply) -> str | None:
        """Return how a reply contradicts what the site said before, or itself; note it where it does not."""
        one = self.introductions[site]
        claim = _claim(request, reply, one.size)
        past = self.claims.setdefault(site, [])
        excess = max([_excess(claim, claim), _broken_start(one, claim)])
        if past:
            excess = max(excess, _excess(claim, *past), *(_excess(other, claim) for other in past))
        if excess > 0:
            return f"an answer that contradicts its others by {excess:.1e}: {WHY}"
        self.claims[site] = [*past, claim][-PAST:]
        return None


def _claim(request: ProxRequest, reply: ProxReply, size: float) -> Claim:
    largest = float(np.abs(reply.w).max(initial=0.0))
    known = reply.value <= request.level and np.isfinite(reply.reach)
    R = max(reply.reach, largest) if known else REACH * max(largest, float(np.sqrt(size)))
    g = (request.v - reply.w) / request.tau[:, None]
    return Claim(reply.w, g, reply.value, reply.bound, reply.left, R)


def _excess(at: Claim, *bounds: Claim) -> float:
    """By how much what these claims prove exceeds the value that another one has reached; 0 where none does."""
    excess = 0.0
    for one in bounds:
        terms = one.g * at.w
        slack = SLACK * (abs(at.value) + abs(one.bound) + float(np.abs(terms).sum()))
        excess = max(excess, one.bound + float(terms.sum()) - one.left * at.R - at.value - slack)
    return excess


def _broken_start(one: Introduction, claim: Claim) -> float:
    """By how much a claim, or the introduction itself, breaks what was said at the start: 0 where it does not."""
    slack = SLACK * (abs(one.scale) + abs(one.constant) + abs(claim.bound) + abs(claim.value))
    broken = (claim.bound - one.scale, one.floor - claim.value, one.constant - one.scale)
    return max(0.0, max(broken) - slack)
