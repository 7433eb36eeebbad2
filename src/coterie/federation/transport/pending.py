"""Requests that sites are at work on, and how long the others wait for them.

Sites of one speed answer together, and a round waits for all. A site that takes longer than PATIENCE times what the
median site took is *late*: the round goes on without it, and it gets no further request until it has answered. After
STALE such rounds it is waited for, so that no answer is older than that: bounded staleness. A site that has never
answered is always waited for, and one that was waited for GONE times in vain no more, until it answers.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from coterie.federation.messages import LATE, Late, ProxRequest

PATIENCE = 3.0  # times what the median site took
LEAST = 1.0  # seconds that everybody gets: less is noise of a busy machine
GONE = 3  # times that the whole time of a round was spent on waiting
STALE = 4  # rounds; with a site 20 times slower than the others, more rounds without it brought nothing


@dataclass(eq=False)
class _One:
    """A request, the messages that carried it, when the last was sent, rounds that went on since, and waits in vain."""

    request: ProxRequest
    ids: list[str]
    sent: float
    rounds: int = 0
    in_vain: int = 0


@dataclass(eq=False)
class Pending:
    """What each site is at work on; one request at a time."""

    at_work: dict[int, _One] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)  # sites that have answered before
    took: list[float] = field(default_factory=list)  # seconds of the replies of this round

    def __contains__(self, site: int) -> bool:
        return site in self.at_work

    def any_of(self, sites: Iterable[int]) -> bool:
        """Whether one of these sites is at work."""
        return any(k in self.at_work for k in sites)

    @property
    def ids(self) -> list[str]:
        """The messages that an answer may still come to."""
        return [one for pending in self.at_work.values() for one in pending.ids]

    def add(self, site: int, request: ProxRequest, message: str | None) -> None:
        """Note that a request was sent, perhaps again; without a message, that nobody knows where to."""
        one = self.at_work.setdefault(site, _One(request, [], 0.0))
        one.sent = time.monotonic()
        if message:
            one.ids.append(message)

    def take(self, message: str, answered: bool) -> tuple[int, ProxRequest] | None:
        """Return the site and the request that a reply is about; None where nobody waits for it any more."""
        for site, one in self.at_work.items():
            if message in one.ids:
                one.ids.remove(message)
                if answered:
                    del self.at_work[site]
                    self.known.add(site)
                return site, one.request
        return None

    def may_go_on(self, done: Collection[int], asked: Collection[int], seconds: float) -> bool:
        """Whether the round can do without those that are still at work."""
        if len(self.took) < len(done):
            self.took += [seconds] * (len(done) - len(self.took))
        behind = {k: self.at_work[k] for k in asked if k in self.at_work and self.at_work[k].in_vain < GONE}
        if not behind:
            return True
        if 2 * len(done) < len(asked) or not self.known.issuperset(behind):
            return False
        median = self.took[(len(asked) - 1) // 2]
        return seconds > max(LEAST, PATIENCE * median) and all(one.rounds < STALE for one in behind.values())

    def silent(self, seconds: float) -> dict[int, ProxRequest]:
        """Requests that were sent so many seconds ago; of those that reached nobody, a second ago."""
        now = time.monotonic()
        return {k: one.request for k, one in self.at_work.items() if now - one.sent > (seconds if one.ids else LEAST)}

    def end(self, asked: Collection[int], went_on: bool) -> dict[int, Late]:
        """End a round: sites that it went on without are late; where it did not, they were waited for in vain."""
        self.took.clear()
        behind = {k: self.at_work[k] for k in asked if k in self.at_work}
        for one in behind.values():
            one.rounds += went_on
            one.in_vain += not went_on
        return {k: LATE for k, one in behind.items() if went_on and one.in_vain < GONE}
