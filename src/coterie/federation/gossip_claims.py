"""Neighbours look for contradictions in what a site proves, as a server does (`consistency.py`).

With every certificate a site tells each neighbour its whole question and answer: centres, steps and weights of all its
boundary nodes, and its scalars. The nodes that both share come first, so that these weights can be compared with those
that the iteration is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coterie.federation.consistency import Consistency
from coterie.federation.gossip import Neighbourhood
from coterie.federation.loop import FederationError
from coterie.federation.messages import Introduction, ProxReply, ProxRequest, validate
from coterie.federation.spanning_tree import Peers
from coterie.problem.arrays import Array

ABOUT = (1, 5)  # boundary nodes, floor, scale, constant, size
SCALARS = (1, 5)  # level, value, bound, left, reach


@dataclass(eq=False)
class Claims:
    """What neighbours have claimed in this life of a site: their functions do not change when others come or go."""

    hood: Neighbourhood
    n: int
    introductions: dict[str, Introduction] = field(default_factory=dict)
    past: dict[str, Consistency] = field(default_factory=dict)

    def introduce(self, peers: Peers, near: list[str], said: Introduction) -> None:
        """Tell neighbours what a site says of itself, and note what they say."""
        facts = np.array([facts_of(said)])
        peers.publish("about", 0, {one: {"facts": facts} for one in near})
        for one in near:
            size, floor, scale, constant, norm = peers.pull(one, "about", 0, {"facts": ABOUT})["facts"][0].tolist()
            new = Introduction(one, np.arange(size), (), floor, scale, constant, norm)
            if one not in self.past or facts_of(self.introductions[one]) != facts_of(new):
                self.introductions[one], self.past[one] = new, Consistency([new])

    def tell(self, peers: Peers, near: list[str], number: int, request: ProxRequest, reply: ProxReply) -> None:
        """Claim something."""
        scalars = np.array([[request.level, reply.value, reply.bound, reply.left, reply.reach]])
        messages = {}
        for one in near:
            rows = self._shared_first(one)
            arrays = {"v": request.v[rows], "tau": request.tau[rows, None], "w": reply.w[rows], "scalars": scalars}
            messages[one] = arrays
        peers.publish("claims", number, messages)

    def check(self, peers: Peers, number: int, said: Mapping[str, Mapping[str, Array]]) -> None:
        """Hold what neighbours claim against what they have said of the shared nodes, and have claimed before.

        Raises
        ------
        FederationError
            With the name of the neighbour that contradicts itself.
        """
        for one, arrays in said.items():
            b = len(self.introductions[one].hosts)
            shapes = {"v": (b, self.n), "tau": (b, 1), "w": (b, self.n), "scalars": SCALARS}
            claim = peers.pull(one, "claims", number, shapes)
            level, *scalars = claim["scalars"][0].tolist()
            if not np.isfinite(scalars[0]):
                continue  # after a restart a site claims nothing for once
            request, reply = ProxRequest(claim["v"], claim["tau"][:, 0], level), ProxReply(claim["w"], *scalars)
            if not np.array_equal(claim["w"][: len(arrays["w"])], arrays["w"]):
                raise FederationError(f"site {one!r} claims other weights than it has told")
            wrong = validate(request, reply) or self.past[one].contradiction(0, request, reply)
            if wrong is not None:
                raise FederationError(f"site {one!r} answered with {wrong}")

    def _shared_first(self, neighbour: str) -> NDArray[np.int64]:
        shared = self.hood.rows(neighbour)
        return np.concatenate([shared, np.setdiff1d(np.arange(len(self.hood.own)), shared)])


def facts_of(one: Introduction) -> list[float]:
    """What neighbours are told of a site: `ABOUT`."""
    return [len(one.hosts), one.floor, one.scale, one.constant, one.size]
