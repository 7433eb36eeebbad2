"""The door of a SuperLink: lets through what sites say, and lets those who look for messages wait for one.

Sites reach it at the public port, all else at the control port, which is on loopback (`superlink.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any

from flwr.proto.fleet_pb2 import PushMessagesRequest
from google.protobuf.message import DecodeError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from coterie.federation.transport.parcels import CALLS, PULL, PUSH

LOOPBACK = "127.0.0.1"
FLEET, RUNTIME = "/v1/fleet", "/v1/runtime"
PUBLIC = {  # what a site calls; it registers by file, never by itself
    *(PULL, PUSH),
    *(f"{FLEET}/{name}" for name in ("activate-node", "deactivate-node", "send-node-heartbeat")),
    *(f"{FLEET}/{name}" for name in ("pull-object", "push-object", "confirm-message-received", "get-run", "get-fab")),
}
LOOK, PART = "pull-messages", "push-object"  # what both sides call, sites and the ServerApp
OTHER = {FLEET: RUNTIME, RUNTIME: FLEET}
HOLD, MANY = 1.0, 10_000  # seconds that a look may wait; connections that are remembered
LARGEST = 1 << 28  # bytes of a reply
OK, UNSIGNED, UNKNOWN = 200, 401, 404

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Parcels = Callable[[str, bytes, bytes], bytes]


class Door:
    """Passes what comes to the control port on loopback, and the calls of sites to any other; of Fleet only these.

    `signed` says by the headers of such a call whether a site has signed it: of all others nothing more is read. A look
    for messages waits here until there may be one, so that nobody has to look often. `messages` is the way to Fleet and
    Runtime, where it is another than that to the rest; `parcels` makes of a call, its body and its answer one with all
    parts (`parcels.py`).
    """

    def __init__(
        self,
        app: App,
        control_port: int,
        signed: Callable[[Mapping[str, str]], bool],
        messages: App | None = None,
        parcels: Parcels | None = None,
    ) -> None:
        self.app, self.control, self.messages, self.parcels = app, (LOOPBACK, control_port), messages, parcels
        self.signed = signed
        self.bells = {side: Bell() for side in OTHER}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        at_control = scope["type"] == "http" and tuple(scope.get("server") or ()) == self.control
        if not at_control or scope["path"].startswith(FLEET):
            if not _is_of_a_site(scope):
                await _refuse(scope, send)
                return
            if not self.signed(Headers(scope=scope)):
                await _refuse(scope, send, UNSIGNED)
                return
            body = await _admitted(scope, receive)
            if body is None:
                await _refuse(scope, send)
                return
            receive = body
        side, _, what = scope["path"].rpartition("/")
        if side in OTHER and what == LOOK:
            self.bells[OTHER[side]].ring_if_fresh()
            await self.bells[side].wait(tuple(scope.get("client") or ()))
        app = self.app if self.messages is None or side not in OTHER else self.messages
        if self.parcels is not None and scope["path"] in CALLS:
            await _with_parcels(app, partial(self.parcels, scope["path"]), scope, receive, send)
        else:
            await app(scope, receive, send)
        if (side in OTHER and what == PART) or scope["path"] == PUSH:
            self.bells[OTHER[side]].fresh = True


class Bell:
    """Lets those wait who have looked since it rang last.

    It rings when the other side, having sent all parts of its messages, begins to look for what comes back.
    """

    def __init__(self) -> None:
        self.count, self.rung, self.fresh = 0, asyncio.Event(), False
        self.looked: dict[tuple[Any, ...], int] = {}

    async def wait(self, who: tuple[Any, ...]) -> None:
        """Wait for the next ring, for a while, if `who` has looked after the last one."""
        if self.looked.get(who) == self.count:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.rung.wait(), HOLD)
        if len(self.looked) > MANY:
            self.looked.clear()
        self.looked[who] = self.count

    def ring_if_fresh(self) -> None:
        """Ring if something has come since it rang last."""
        if self.fresh:
            self.count, self.fresh = self.count + 1, False
            self.rung.set()
            self.rung = asyncio.Event()


def _is_of_a_site(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in PUBLIC


async def _admitted(scope: Scope, receive: Receive) -> Receive | None:
    """What a site may say to Flower, as it is to be received; None: nothing."""
    if scope["path"] != PUSH:
        return receive
    body = await _body(receive)
    return None if body is None or not _replies_for_itself(body) else _again(body)


def _replies_for_itself(body: bytes) -> bool:
    """Whether all messages are replies, from the site that sends them: it asks nobody and speaks for nobody else."""
    try:
        request = PushMessagesRequest.FromString(body)
    except DecodeError:
        return False
    about = [message.metadata for message in request.messages_list]
    return all(one.reply_to_message_id and one.src_node_id == request.node.node_id for one in about)


async def _with_parcels(
    app: App, parcels: Callable[[bytes, bytes], bytes], scope: Scope, receive: Receive, send: Send
) -> None:
    """Call the app, and send what `parcels` makes of the body and of a good answer."""
    body = await _body(receive)
    if body is None:
        await _refuse(scope, send)
        return
    events: list[Event] = []

    async def note(event: Event) -> None:
        events.append(event)

    await app(scope, _again(body), note)
    start, *rest = events
    answer = b"".join(event.get("body", b"") for event in rest)
    if start["status"] == OK:
        answer = await run_in_threadpool(parcels, body, answer)
        kept = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        start = {**start, "headers": [*kept, (b"content-length", str(len(answer)).encode())]}
    await send(start)
    await send({"type": "http.response.body", "body": answer})


async def _body(receive: Receive) -> bytes | None:
    body = bytearray()
    while len(body) <= LARGEST:
        event = await receive()
        if event["type"] != "http.request":
            return None
        body += event.get("body", b"")
        if not event.get("more_body", False):
            return bytes(body)
    return None


def _again(body: bytes) -> Receive:
    """What has been received, to be received once more."""
    events: list[Event] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Event:
        return events.pop() if events else {"type": "http.disconnect"}

    return receive


async def _refuse(scope: Scope, send: Send, status: int = UNKNOWN) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
