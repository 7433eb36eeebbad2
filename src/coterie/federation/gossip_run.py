"""A run without a server, as one site lives it: meet, iterate, certify now and then, stop together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from coterie.engines.arrays import SUM_ERROR
from coterie.engines.base import Travel
from coterie.federation.gossip import Gossip, Neighbourhood, Place
from coterie.federation.loop import FederationError
from coterie.federation.messages import Introduction, ProxReply, ProxRequest
from coterie.federation.site import SITE_GAP, Site
from coterie.federation.spanning_tree import Peers, SpanningTree
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.solver.bound import Bound
from coterie.solver.certificate import FLOOR, REACH
from coterie.solver.solution import Status

CHECK = 20  # iterations between two certificates, which cost two ways through the tree
BALANCED = 640  # iterations after which the balance of steps stays: what converges are steps that do not change
EXACT = 1e-13  # relative gap of a site's solves: with 1e-12 the paper's network got no further than 3e-6


@dataclass(frozen=True)
class Known:
    """Sums over all sites of what each says of itself at the start, and the largest size of weights."""

    sites: int
    mean: float  # of λA_e over all cut edges
    scale: float
    constant: float
    floor: float
    omega: float
    size: float


@dataclass(frozen=True)
class Verdict:
    """What all sites know after a certificate: the objective that ŵ has together, and a bound on the optimum."""

    objective: float
    bound: Bound
    gap: float

    @property
    def status(self) -> Status:
        return Status.OPTIMAL if self.bound.unconditional else Status.CONDITIONAL


@dataclass(eq=False)
class Progress:
    """All that a site must remember to go on after it was killed."""

    place: Place
    anchor: Place  # where it was at the last change of the balance
    number: int = 0  # of the iteration
    omega: float = 1.0
    level: float = np.inf
    reply: ProxReply | None = None  # to this iteration's request: what was said is not computed a second time


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
    """

    def __init__(
        self,
        site: Site,
        hood: Neighbourhood,
        peers: Peers,
        ranks: Mapping[str, int],
        save: Callable[[Progress], None] | None = None,
    ) -> None:
        self.site, self.hood, self.peers = site, hood, peers
        self.save = save or (lambda progress: None)
        self.said = site.introduce(hood.name, np.arange(len(hood.own)))
        self.tree = SpanningTree.found(peers, hood.neighbours, ranks[hood.name], ranks)
        self.known = self._introduce(self.said, len(ranks))
        problem = site.problem
        self.gossip = Gossip.of(hood, problem.penalty, problem.lam, self.known.mean)

    def _introduce(self, said: Introduction, sites: int) -> Known:
        """Add up what sites say of themselves, after neighbours have found that they mean the same edges."""
        c, n, hood = self.site.problem.lam * self.hood.graph.weights, self.site.problem.n_features, self.hood
        edges = {one: {"c": c[hood.shared(one)].reshape(-1, 1)} for one in hood.neighbours}
        self.peers.publish("edges", 0, edges)
        for one, ours in edges.items():
            if not np.array_equal(self.peers.pull(one, "edges", 0, {"c": ours["c"].shape})["c"], ours["c"]):
                raise FederationError(f"the edges between {hood.name!r} and {one!r} have other weights there")
        mine = c[hood.owned]
        first = np.array([1.0, mine.sum(), len(mine), said.scale, said.constant, said.floor, said.size, said.size > 0])
        sums, (size,) = self.tree.total(self.peers, -2, first, np.array([said.size]))
        if round(sums[0]) != sites:
            raise FederationError(f"{sums[0]:.0f} sites can be reached over edges between sites; there are {sites}")
        mean = sums[1] / max(sums[2], 1.0)
        d = Gossip.of(hood, self.site.problem.penalty, self.site.problem.lam, mean).steps.d[hood.own]
        second, _ = self.tree.total(self.peers, -1, np.array([(mine**2).sum(), d.sum()]), np.empty(0))
        typical = sums[6] / max(sums[7], 1.0) or 1.0
        omega = float(np.sqrt(2 * n * second[0] / (second[1] * typical))) or 1.0
        return Known(sites, float(mean), float(sums[3]), float(sums[4]), float(sums[5]), omega, float(np.sqrt(size)))

    def start(self) -> Progress:
        """Begin at zero."""
        n, hood = self.site.problem.n_features, self.hood
        place = Place(np.zeros((len(hood.own), n)), np.zeros((hood.graph.n_edges, n)))
        return Progress(place, place, omega=self.known.omega, level=self._level(np.inf))

    def until(
        self, tol: float, most: int, progress: Progress, see: Callable[[int, Verdict], None]
    ) -> tuple[ProxRequest, Verdict, int]:
        """Iterate until the gap is small or `most` iterations are done; `see` is shown every certificate."""
        gossip, peers, hood = self.gossip, self.peers, self.hood
        while True:
            k, place = progress.number, progress.place
            gossip.steps.omega = progress.omega
            request = gossip.request(place, progress.level)
            if progress.reply is None:
                progress.reply = self._answer(request, certified=k % CHECK == 0)
                self.save(progress)
            reply = progress.reply
            peers.publish("weights", k, {one: gossip.message(place, reply.w, one) for one in hood.neighbours})
            shapes = {one: gossip.shapes(one, place.w.shape[1]) for one in hood.neighbours}
            met = gossip.meet(
                place, reply.w, {one: peers.pull(one, "weights", k, shapes[one]) for one in hood.neighbours}
            )
            after = gossip.step(place, reply.w, met)
            if k % CHECK == 0:
                travel = gossip.travel(progress.anchor, place)
                sums, maxima = gossip.evidence(request, reply, met)
                sums, maxima = self.tree.total(peers, k, np.concatenate([sums, travel]), maxima)
                verdict = self._verdict(sums, maxima)
                see(k, verdict)
                if (verdict.gap <= tol and k > 0) or k >= most:
                    return request, verdict, k
                progress.level = self._level(verdict.objective)
                self._rebalance(progress, k, *np.sqrt(sums[-2:]))
            progress.place, progress.number, progress.reply = after, k + 1, None

    def _answer(self, request: ProxRequest, certified: bool) -> ProxReply:
        quadratic = self.site.problem.f.quadratic is not None  # others take long for so many digits
        self.site.gap = EXACT if certified or quadratic else SITE_GAP
        if certified:
            return self.site.reply(request)
        return without_evidence(self.site.weights(request)[self.site.boundary])

    def _level(self, objective: float) -> float:
        """What this site's own part of the objective can be at an optimum; zero weights reach the scale."""
        others = self.known.floor - self.said.floor if np.isfinite(self.known.floor) else -np.inf
        return min(objective, self.known.scale) - others

    def _rebalance(self, progress: Progress, k: int, primal: float, dual: float) -> None:
        """Change the balance of steps after 20, 40, 80, … iterations: seldom enough for each to show what it brings."""
        times = k // CHECK
        if 0 < k <= BALANCED and times & (times - 1) == 0:
            self.gossip.steps.rebalance(Travel(float(primal), float(dual)))
            progress.omega, progress.anchor = self.gossip.steps.omega, progress.place

    def _verdict(self, sums: Array, maxima: Array) -> Verdict:
        """What the sums prove: the same at every site, so that all stop together; what was proven before is not used.

        A site that was killed has forgotten that, and what it has on disk is no evidence.
        """
        objective, proven, charge, sizes = (float(x) for x in sums[:4])
        reach, largest = (float(x) for x in maxima)
        if not np.isfinite([objective, proven, charge]).all():
            return Verdict(objective, Bound(-np.inf, unconditional=False), np.inf)
        unconditional = bool(np.isfinite(reach))
        reach = max(reach, largest) if unconditional else REACH * max(largest, self.known.size)
        rounding = (SUM_ERROR + 2 * self.known.sites * EPS) * (sizes + reach * charge)
        bound = Bound(proven - reach * charge - rounding, unconditional, reach)
        unit = max(abs(objective), FLOOR * self.known.constant, np.finfo(float).tiny)
        return Verdict(objective, bound, bound.gap(objective, unit))
