"""Sites behind Flower's SuperNodes: found by asking, asked again when they are silent.

Where the SuperLink knows keys, a site is its key: its name is that of the key (`roster.py`), whatever it says of
itself, and whoever has no key is not asked. Without keys a site is wherever its last introduction came from: a
SuperNode that is killed loses its messages, and comes back under another id. A request that stays without reply for a
while is sent again, to wherever the site is then.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import pull_objects

from coterie.federation.messages import BadReplyError, Introduction, Late, ProxReply, ProxRequest
from coterie.federation.transport.parcels import ParcelClient
from coterie.federation.transport.pending import Pending
from coterie.federation.transport.records import (
    ANSWER,
    FACTS,
    FINISH,
    INTRODUCE,
    RELEASE,
    SiteError,
    introduce_request,
    prox_request,
    read_introduction,
    read_prox_reply,
    read_weights,
)
from coterie.problem.arrays import Array

POLL = 0.05  # seconds between two looks for replies
FEW = 10  # sites that one looks for that often
TRIES = 3  # how often a silent site is looked for and asked in one round
GLANCE = 5.0  # seconds to look for a site that missed the last round

T = TypeVar("T")


@dataclass(eq=False)
class FlowerSites:
    """Carries requests over a Grid.

    Parameters
    ----------
    grid : Grid
    nodes : sequence of str
        The boundary nodes, as the sites call them.
    timeout : float
        Seconds that a round may take; whoever has not answered by then misses it.
    settings : mapping
        Of the run, as far as sites have to know them; every request has them with it.
    roster : mapping of int to str
        The names of the keys that the SuperLink knows, by the ids of their SuperNodes; empty where it knows none.
    """

    grid: Grid
    nodes: Sequence[str]
    timeout: float
    settings: Mapping[str, Any]
    roster: Mapping[int, str] = field(default_factory=dict)
    address: dict[str, int] = field(default_factory=dict)  # the SuperNode of each site, as last seen
    names: tuple[str, ...] = ()
    away: set[int] = field(default_factory=set)  # sites that missed the last round
    rows: Mapping[int, Sequence[str]] = field(default_factory=dict)  # the boundary nodes of each site
    pending: Pending = field(default_factory=Pending)  # requests that sites are at work on
    introducing: dict[str, int] = field(default_factory=dict)  # SuperNodes that were asked who they are, by message
    own: dict[int, list[str]] = field(default_factory=dict)  # all nodes of each site that shared its weights
    complaints: dict[str, str] = field(default_factory=dict)  # what went wrong, by the name of the site

    def __post_init__(self) -> None:
        grid = sys.modules.get("flwr.superlink.grid.http_grid")
        if grid is not None and isinstance(self.grid, grid.HttpGrid):  # which waits a second for half a reply
            grid.pull_objects = partial(pull_objects, initial_backoff=POLL)  # type: ignore[attr-defined]
            client = ParcelClient(self.grid._runtime_client)
            vars(self.grid)["_client"], grid.push_objects = client, client.push_objects  # type: ignore[attr-defined]

    def meet(self, n_sites: int, wait: float) -> list[Introduction]:
        """Wait until n_sites have introduced themselves, in the order of their names.

        Raises
        ------
        SiteError
            When a site says that it cannot take part, and there is no other in its place.
        TimeoutError
            When some are missing after `wait` seconds; the message says who is there.
        """
        met: dict[str, Introduction] = {}
        deadline = time.monotonic() + wait
        while len(met) < n_sites:
            if time.monotonic() > deadline:
                there = "; ".join([", ".join(sorted(met)) or "none", *self.complaints.values()])
                raise TimeoutError(f"{len(met)} of {n_sites} sites came within {wait:.0f} s ({there})")
            met.update(self._look_for_sites(self._until(deadline), n_sites, met))
        self.names, self.complaints = tuple(sorted(met)), {}
        return [met[name] for name in self.names]

    def ask(self, requests: Mapping[int, ProxRequest]) -> dict[int, ProxReply | BadReplyError | Late]:
        """Ask all that are not at work on an earlier request, and return what has come of any of their requests.

        Slow sites do not stop the others: `pending.py` says how long they are waited for. Where there is silence, the
        same request is sent again, to wherever the site is then; a reply to either counts.
        """
        began, done, went_on = time.monotonic(), {}, False
        self._push({k: request for k, request in requests.items() if k not in self.pending})
        while self.pending.any_of(requests) and time.monotonic() < began + self.timeout:
            for k, question, reply in self._pulled():
                if reply.has_content() and k in requests:
                    answer = _read(reply.content, read_prox_reply)
                    if isinstance(answer, ProxReply) and question is not requests[k]:
                        answer = replace(answer, to=question)
                    done[k] = answer
            went_on = self.pending.may_go_on(done, requests, time.monotonic() - began)
            if went_on:
                break
            if lost := self.pending.silent(self.timeout / TRIES):
                self._look_again(lost, began + self.timeout)
            if self.pending.any_of(requests):
                time.sleep(_pause(len(self.pending.at_work)))
        return {**done, **self.pending.end(requests, went_on)}

    def _push(self, requests: Mapping[int, ProxRequest]) -> None:
        """Send requests to sites whose place is known, and note that they are at work; the others are lost."""
        found = {k: one for k, one in requests.items() if self.names[k] in self.address}
        content = self._requests(found)
        messages = [self._message(ANSWER, content[k], self.address[self.names[k]]) for k in found]
        sent = dict(zip(found, self.grid.push_messages(messages) if messages else (), strict=True))
        for k, request in requests.items():
            self.pending.add(k, request, sent.get(k))

    def _pulled(self) -> Iterable[tuple[int, ProxRequest, Message]]:
        ids = self.pending.ids
        for reply in self.grid.pull_messages(ids) if ids else ():
            found = self.pending.take(reply.metadata.reply_to_message_id, reply.has_content())
            if found is not None:
                yield *found, reply

    def _look_again(self, lost: Mapping[int, ProxRequest], deadline: float) -> None:
        """Find out where silent sites are, and ask them again."""
        for k in lost:
            self.address.pop(self.names[k], None)
        self._look_for_sites(min(GLANCE, self._until(deadline)), len(self.names), {})
        self._push(lost)

    def release(self, requests: Mapping[int, ProxRequest]) -> dict[int, Array | BadReplyError]:
        """Ask all, as above, for noisy boundary weights."""
        return self._round(RELEASE, self._requests(requests), lambda content: read_weights(content)[1])

    def collect(self, requests: Mapping[int, ProxRequest]) -> dict[int, Array]:
        """Tell the sites that this is the end; return the weights of those that share them, and note their nodes.

        Who did not reply, or not with weights of its own nodes, is in `complaints`.
        """
        replies = self._round(FINISH, self._requests(requests), read_weights)
        good: dict[int, tuple[list[str], Array]] = {}
        for k, request in requests.items():
            reply = replies.get(k, "nothing")
            if not isinstance(reply, tuple):
                self._complain(k, f"answered the end of the run with {reply}")
            elif reply[0] and reply[1].shape[1] != request.v.shape[1]:
                self._complain(k, f"shared weights of shape {reply[1].shape}")
            else:
                good[k] = reply
        named = Counter(node for nodes, _ in good.values() for node in nodes)
        at = {node: k for k, nodes in self.rows.items() for node in nodes}
        self.own, shared = {}, {}
        for k, (nodes, w) in good.items():
            mine = np.array([at[node] == k if node in at else named[node] == 1 for node in nodes], dtype=bool)
            if not mine.all():
                other = nodes[int(np.argmin(mine))]
                self._complain(k, f"shared weights of node {other!r}, which another site has; they are left out")
            self.own[k], shared[k] = [node for node, own in zip(nodes, mine, strict=True) if own], w[mine]
        return shared

    def _complain(self, site: int, what: str) -> None:
        self.complaints[self.names[site]] = f"site {self.names[site]!r} {what}"

    def _requests(self, requests: Mapping[int, ProxRequest]) -> dict[int, RecordDict]:
        return {k: prox_request(request, self.rows[k], self.settings) for k, request in requests.items()}

    def _round(
        self, kind: str, requests: Mapping[int, RecordDict], read: Callable[[RecordDict], T]
    ) -> dict[int, T | BadReplyError]:
        deadline = time.monotonic() + self.timeout
        done: dict[int, T | BadReplyError] = {}
        waiting: dict[str, int] = {}
        if self.away:
            self._look_for_sites(min(GLANCE, self._until(deadline)), len(self.names), {})
        asked = [k for k in requests if k not in self.away or self.names[k] in self.address]
        while (missing := [k for k in asked if k not in done]) and time.monotonic() < deadline:
            found = [k for k in missing if self.names[k] in self.address]
            messages = {k: self._message(kind, requests[k], self.address[self.names[k]]) for k in found}
            for k, reply in self._replies(messages, self._until(deadline), waiting):
                if reply.has_content():
                    done[k] = _read(reply.content, read)
            lost = [self.names[k] for k in missing if k not in done]
            for name in lost:
                self.address.pop(name, None)
            if lost:
                self._look_for_sites(self._until(deadline), len(self.names) - len(self.away), {})
        self.away = {k for k in requests if k not in done}
        return done

    def _until(self, deadline: float) -> float:
        """How long to wait for a reply before asking again."""
        return max(min(self.timeout / TRIES, deadline - time.monotonic()), POLL)

    def _look_for_sites(self, seconds: float, n_sites: int, met: Mapping[str, Introduction]) -> dict[str, Introduction]:
        """Ask every SuperNode whose site is unknown who it is."""
        busy = set(self.address.values())
        known = [int(node) for node in self.grid.get_node_ids() if not self.roster or int(node) in self.roster]
        request = introduce_request(self.nodes, self.settings)
        messages = {node: self._message(INTRODUCE, request, node) for node in known if node not in busy}
        self.introducing = {one: node for one, node in self.introducing.items() if node in messages}
        found: dict[str, Introduction] = {}
        if not messages:
            time.sleep(min(POLL, seconds))
        for node, reply in self._replies(messages, seconds, self.introducing):
            if not reply.has_content():
                continue
            one = self._introduction(node, reply.content, instead=len(known) > n_sites)
            if one is None:
                continue
            if one.name in self.address and one.name in {*met, *found}:
                self.complaints[one.name] = f"two SuperNodes say that they are site {one.name!r}; give each its own key"
            found[one.name], self.address[one.name] = one, node
            if len(self.address) >= n_sites:
                break
        return found

    def _introduction(self, node: int, content: RecordDict, instead: bool) -> Introduction | None:
        """What a SuperNode says of its site, under its key's name; None: nonsense, and there are others instead."""
        claimed = content.config_records.get(FACTS, {}).get("site", "?")
        name = self.roster.get(node, str(claimed))
        try:
            return replace(read_introduction(content, len(self.nodes)), name=name)
        except (SiteError, BadReplyError) as error:
            what = "sent " if isinstance(error, BadReplyError) else ""
            self.complaints[name] = f"site {name!r} {what}{error}"
            if not instead:
                raise SiteError(self.complaints[name]) from None
        return None

    def _replies(
        self, messages: Mapping[int, Message], seconds: float, waiting: dict[str, int]
    ) -> Iterable[tuple[int, Message]]:
        """Push messages and yield replies, with the keys of the messages that they answer, as they come.

        `waiting` has the keys of messages that were pushed before, by their ids: a late reply to one of these counts.
        """
        if not messages:
            return
        ids = list(self.grid.push_messages(messages.values()))
        waiting |= {reply_to: key for reply_to, key in zip(ids, messages, strict=True) if reply_to}
        missing = set(messages) & set(waiting.values())
        deadline = time.monotonic() + seconds
        while missing and (began := time.monotonic()) < deadline:
            for reply in self.grid.pull_messages(list(waiting)):
                key = waiting.pop(reply.metadata.reply_to_message_id, None)
                if key is None:
                    continue
                if reply.has_content():
                    for other in [one for one, of in waiting.items() if of == key]:
                        del waiting[other]
                if key not in waiting.values():
                    missing.discard(key)
                yield key, reply
            if missing:
                time.sleep(max(_pause(len(missing)) - (time.monotonic() - began), 0.0))

    def _message(self, kind: str, content: RecordDict, node: int) -> Message:
        return Message(content, dst_node_id=node, message_type=kind, ttl=2 * self.timeout)  # late replies count


def _pause(waiting: int) -> float:
    """Seconds until the next look, which is about all replies that are still to come: many take longer."""
    return POLL * max(1.0, waiting / FEW)


def _read(content: RecordDict, read: Callable[[RecordDict], T]) -> T | BadReplyError:
    try:
        return read(content)
    except BadReplyError as error:
        return error
    except SiteError as error:
        return BadReplyError(f"an error: it {error}")
