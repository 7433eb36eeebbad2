"""A run without a server, as one site lives it: meet, iterate, certify now and then, stop together.

Where a neighbour goes or comes back, all sites begin anew from where they are, with whoever takes part then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from coterie.engines.base import Travel
from coterie.federation.gossip import Gossip, Meeting, Neighbourhood, Place
from coterie.federation.gossip_certificate import Known, Verdict
from coterie.federation.gossip_claims import Claims
from coterie.federation.loop import FederationError
from coterie.federation.messages import ProxReply, ProxRequest
from coterie.federation.site import SITE_GAP, Site
from coterie.federation.spanning_tree import ChangedError, LeftBehindError, Peers, SpanningTree
from coterie.problem.arrays import Array

CHECK = 20  # iterations between two certificates, which cost two ways through the tree
BALANCED = 640  # iterations after which the balance of steps stays: what converges are steps that do not change
LEFT = "the others could not reach this site and go on without it; the same command takes part again"
EXACT = 1e-13  # relative gap of a site's solves: with 1e-12 the paper's network got no further than 3e-6


@dataclass(eq=False)
class Progress:
    """All that a site must remember to go on after it was killed."""

    place: Place
    anchor: Place  # where it was at the last change of the balance
    far: Array  # the latest weights at the far ends of cut edges; nan where nothing was said
    number: int = 0  # of the iteration
    omega: float = 0.0  # 0: not known yet
    level: float = np.inf
    reply: ProxReply | None = None  # to this iteration's request: what was said is not computed a second time

    def begin_anew(self) -> None:
        """Stay where the site is, with others."""
        self.anchor, self.number, self.level, self.reply = self.place, 0, np.inf, None


def without_evidence(w: Array) -> ProxReply:
    """Weights, and no claim about them: no certificate comes of a sum that has this in it."""
    return ProxReply(w, np.inf, -np.inf, np.inf, np.inf)


class GossipRun:
    """One site's run.

    Parameters
    ----------
    site : Site
        Asked about the boundary nodes in the order of the neighbourhood.
    hood : Neighbourhood
    peers : Peers
    ranks : mapping of str to int
        The place of each site in the order of all names.
    save : callable
        Is given the progress before anything of an iteration is told to anyone.
    checked : bool
        Whether neighbours tell each other all that they claim, and look for contradictions.
    """

    def __init__(
        self,
        site: Site,
        hood: Neighbourhood,
        peers: Peers,
        ranks: Mapping[str, int],
        save: Callable[[Progress], None] | None = None,
        checked: bool = True,
    ) -> None:
        self.site, self.hood, self.peers, self.ranks = site, hood, peers, ranks
        self.save = save or (lambda progress: None)
        self.said = site.introduce(hood.name, np.arange(len(hood.own)))
        self.claims = Claims(hood, site.problem.n_features) if checked else None
        self.lived = False  # whether this process has taken part

    def start(self) -> Progress:
        """Begin at zero."""
        n, hood = self.site.problem.n_features, self.hood
        place = Place(np.zeros((len(hood.own), n)), np.zeros((hood.graph.n_edges, n)))
        return Progress(place, place, np.full((len(hood.nodes), n), np.nan))

    def until(
        self, tol: float, most: int, progress: Progress, see: Callable[[int, Verdict], None]
    ) -> tuple[ProxRequest, Verdict, int]:
        """Iterate until the gap is small or `most` iterations are done; `see` is shown every certificate."""
        while True:
            try:
                self._meet(progress)
                while True:
                    request, verdict = self._iterate(progress, see)
                    self.lived = True
                    if verdict is not None and (
                        (verdict.gap <= tol and progress.number > 0) or progress.number >= most
                    ):
                        return request, verdict, progress.number
                    progress.number, progress.reply = progress.number + 1, None
            except ChangedError:
                if not self.peers.begin_anew(may_return=not self.lived):
                    raise LeftBehindError(LEFT) from None
                progress.begin_anew()

    def _meet(self, progress: Progress) -> None:
        """Find out who is there and what they say of themselves."""
        hood, away = self.hood, self.peers.away
        held = tuple(one for one in hood.neighbours if one in away)
        for one in held:
            if np.isnan(progress.far[hood.sites == one]).any():
                raise FederationError(f"site {one!r} has never answered, so there are no weights to keep for it")
        self.near = [one for one in hood.neighbours if one not in away]
        self.peers.may_be_held = {one for one in self.near if not np.isnan(progress.far[hood.sites == one]).any()}
        self.tree = SpanningTree.found(self.peers, self.near, self.ranks[hood.name], self.ranks)
        problem = self.site.problem
        self.known = self._introduce(progress.omega)
        self.gossip = Gossip.of(hood, problem.penalty, problem.lam, self.known.mean, held)
        if progress.number == 0 and progress.reply is None:
            progress.omega = self.known.omega
        progress.level = self.known.level(np.inf, self.said.floor)

    def _introduce(self, omega: float) -> Known:
        """Add up what sites say of themselves, after neighbours have found that they mean the same edges."""
        said, hood, problem = self.said, self.hood, self.site.problem
        c, away = problem.lam * hood.graph.weights, tuple(sorted(self.peers.away))
        edges = {one: {"c": c[hood.shared(one)].reshape(-1, 1)} for one in self.near}
        self.peers.publish("edges", 0, edges)
        for one, ours in edges.items():
            if not np.array_equal(self.peers.pull(one, "edges", 0, {"c": ours["c"].shape})["c"], ours["c"]):
                raise FederationError(f"the edges between {hood.name!r} and {one!r} have other weights there")
        if self.claims is not None:
            self.claims.introduce(self.peers, self.near, said)
        mine = c[hood.owned]
        first = np.array([1.0, mine.sum(), len(mine), said.scale, said.constant, said.floor, said.size, said.size > 0])
        sums, (size,) = self.tree.total(self.peers, -2, first, np.array([said.size]))
        if round(sums[0]) != len(self.ranks) and not away:
            raise FederationError(
                f"{sums[0]:.0f} sites can be reached over edges between sites; there are {len(self.ranks)}"
            )
        mean = float(sums[1] / max(sums[2], 1.0)) or float(c.mean() if len(c) else 1.0)
        d = Gossip.of(hood, problem.penalty, problem.lam, mean).steps.d[hood.own]
        squares = np.array([(mine**2).sum(), d.sum()])
        second, (before,) = self.tree.total(self.peers, -1, squares, np.array([omega]))
        typical = sums[6] / max(sums[7], 1.0) or 1.0
        first_omega = float(np.sqrt(2 * problem.n_features * second[0] / (second[1] * typical))) or 1.0
        totals = (float(sums[3]), float(sums[4]), float(sums[5]), float(before) or first_omega, float(np.sqrt(size)))
        return Known(round(sums[0]), mean, *totals, away)

    def _iterate(self, progress: Progress, see: Callable[[int, Verdict], None]) -> tuple[ProxRequest, Verdict | None]:
        """One iteration: the own answer, that of the neighbours, the next place; now and then a certificate."""
        gossip, k, place = self.gossip, progress.number, progress.place
        gossip.steps.omega = progress.omega
        request = gossip.request(place, progress.level)
        if progress.reply is None:
            progress.reply = self._answer(request, certified=k % CHECK == 0)
            self.save(progress)
        reply = progress.reply
        met = self._exchange(progress, request, reply)
        after, verdict = gossip.step(place, reply.w, met), None
        if k % CHECK == 0:
            travel = gossip.travel(progress.anchor, place)
            sums, maxima = gossip.evidence(request, reply, met)
            sums, maxima = self.tree.total(self.peers, k, np.concatenate([sums, travel]), maxima)
            verdict = self.known.verdict(sums, maxima)
            see(k, verdict)
            progress.level = self.known.level(verdict.objective, self.said.floor)
            self._rebalance(progress, k, *np.sqrt(sums[-2:]))
        progress.place = after
        return request, verdict

    def _exchange(self, progress: Progress, request: ProxRequest, reply: ProxReply) -> Meeting:
        """Tell neighbours the answer, and hear theirs."""
        gossip, peers, k = self.gossip, self.peers, progress.number
        peers.publish("weights", k, {one: gossip.message(progress.place, reply.w, one) for one in self.near})
        claims = self.claims if k % CHECK == 0 else None
        if claims is not None:
            claims.tell(peers, self.near, k, request, reply)
        n = self.site.problem.n_features
        said = {one: peers.pull(one, "weights", k, gossip.shapes(one, n)) for one in self.near}
        if claims is not None:
            claims.check(peers, k, said)
        for one, arrays in said.items():
            progress.far[self.hood.sites == one] = arrays["w"]
        peers.may_be_held |= set(said)
        return gossip.meet(progress.place, reply.w, said, progress.far)

    def _answer(self, request: ProxRequest, certified: bool) -> ProxReply:
        quadratic = self.site.problem.f.quadratic is not None  # others take long for so many digits
        self.site.gap = EXACT if certified or quadratic else SITE_GAP
        if certified:
            return self.site.reply(request)
        return without_evidence(self.site.weights(request)[self.site.boundary])

    def _rebalance(self, progress: Progress, k: int, primal: float, dual: float) -> None:
        """Change the balance of steps after 20, 40, 80, … iterations: seldom enough for each to show what it brings."""
        times = k // CHECK
        if 0 < k <= BALANCED and times & (times - 1) == 0:
            self.gossip.steps.rebalance(Travel(float(primal), float(dual)))
            progress.omega, progress.anchor = self.gossip.steps.omega, progress.place
