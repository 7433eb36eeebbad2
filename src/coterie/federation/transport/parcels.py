"""A message with all its parts in one call, each way: Flower has a call for each part, and one more to say thanks.

Parts travel as a field that Flower's messages do not have, which whoever does not know it leaves alone. So a resident
site also works with a stock SuperLink, and a stock SuperNode with this server, as if there were no parcels. Like
`superlink.py` this is for one version of Flower.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from flwr.proto.fleet_pb2 import PullMessagesRequest, PullMessagesResponse, PushMessagesRequest, PushMessagesResponse
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    ConfirmMessageReceivedResponse,
    PullObjectRequest,
    PullObjectResponse,
    PushObjectRequest,
    PushObjectResponse,
)
from flwr.proto.runtime_pb2 import PullAppMessagesRequest, PullAppMessagesResponse
from flwr.server.superlink.linkstate import LinkState
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

MOST = 1 << 24  # bytes of parts that go together
FIELD = 1000
TAG = b"\xc2\x3e"  # of that field, with bytes in it


def attach(message: Message, parts: Mapping[str, bytes]) -> None:
    """Put parts into a message; none at all asks for parts."""
    asked = [PushObjectRequest(object_id=name, object_content=part) for name, part in parts.items()]
    for content in [one.SerializeToString() for one in asked] or [b""]:
        message.MergeFromString(TAG + _varint(len(content)) + content)


def light(parts: Mapping[str, bytes]) -> dict[str, bytes]:
    """As many of these parts as may go together."""
    sizes = itertools.accumulate(map(len, parts.values()))
    return {name: part for (name, part), size in zip(parts.items(), sizes, strict=True) if size <= MOST}


def attached(message: Message) -> dict[str, bytes] | None:
    """The parts that are in a message; None: whoever has sent it knows no parcels."""
    found = [field.data for field in UnknownFieldSet(message) if field.field_number == FIELD]
    parts = [PushObjectRequest.FromString(content) for content in found if content]
    return {one.object_id: one.object_content for one in parts} if found else None


def with_parts(state: LinkState, request: Message, response: Any) -> Any:
    """Add the parts of messages that are pulled, and forget these, if whoever pulls asks for that and all are there."""
    if attached(request) is None:
        return response
    for message, tree in zip(response.messages_list, response.message_object_trees, strict=True):
        about = message.metadata
        parts = {one.object_id: state.get_object(about.run_id, one.object_id) for one in iterate_object_tree(tree)}
        if all(parts.values()):  # an empty one is still to come
            attach(response, parts)
            state.object_store.delete(about.message_id)
    return response


def stored(state: LinkState, request: PushMessagesRequest, response: PushMessagesResponse) -> PushMessagesResponse:
    """Store the parts that came with a reply; those that did not are still asked for."""
    parts = attached(request)
    if not parts or not request.messages_list:
        return response
    run_id, session = request.messages_list[0].metadata.run_id, response.session_id
    missing = [
        name
        for name in response.objects_to_push
        if name not in parts or not state.store_object(run_id, session, name, parts[name])
    ]
    del response.objects_to_push[:]
    response.objects_to_push.extend(missing)
    return response


def stored_together(state: LinkState, request: PushObjectRequest, response: PushObjectResponse) -> PushObjectResponse:
    """Store the parts that came with another one, and say so."""
    parts = attached(request)
    if parts and all(state.store_object(request.run_id, request.session_id, *part) for part in parts.items()):
        attach(response, {})
    return response


def handled(state: LinkState, path: str, body: bytes, answer: bytes) -> bytes:
    """What to answer to a call that Flower has answered well: its answer, with parcels, if whoever calls knows them."""
    add, request, response = CALLS[path]
    return bytes(add(state, request.FromString(body), response.FromString(answer)).SerializeToString())


class ParcelClient:
    """A client of the Runtime API, as a Grid has it, that pulls messages with their parts and pushes parts together."""

    def __init__(self, client: Any) -> None:
        self.client, self.parts = client, dict[str, bytes]()
        self.others: dict[str, bytes] = {}  # parts that go with the next one

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def PullMessages(self, request: PullAppMessagesRequest) -> PullAppMessagesResponse:
        """Pull, and keep parts that come along until they are asked for."""
        attach(request, {})
        response = self.client.PullMessages(request)
        self.parts = attached(response) or {}
        return response

    def PullObject(self, request: PullObjectRequest) -> PullObjectResponse:
        """A part that came along, or one that did not."""
        part = self.parts.get(request.object_id)
        if part is None:
            return self.client.PullObject(request)
        return PullObjectResponse(object_found=True, object_available=True, object_content=part)

    def push_objects(
        self, objects: Mapping[str, Any], push_object_fn: Callable[[str, bytes], None], object_ids_to_push: set[str]
    ) -> None:
        """Push all at once, in the place of Flower's function of this name."""
        left = {name: one.deflate() for name, one in objects.items() if name in object_ids_to_push}
        while left:
            name = next(iter(left))
            content, self.others = left.pop(name), light(left)
            together = set(self.others)
            push_object_fn(name, content)
            if not self.others:
                left = {name: part for name, part in left.items() if name not in together}

    def PushObject(self, request: PushObjectRequest) -> PushObjectResponse:
        """Push a part, and all others with it; where that is not understood, they go one by one."""
        attach(request, self.others)
        response = self.client.PushObject(request)
        if attached(response) is not None:
            self.others = {}
        return response

    def ConfirmMessageReceived(self, request: ConfirmMessageReceivedRequest) -> ConfirmMessageReceivedResponse:
        """Say thanks, where that was not understood."""
        if request.message_object_id in self.parts:
            return ConfirmMessageReceivedResponse()
        return self.client.ConfirmMessageReceived(request)


PULL, PUSH = "/v1/fleet/pull-messages", "/v1/fleet/push-messages"
CALLS: dict[str, tuple[Callable[..., Message], Any, Any]] = {  # what parcels go with, and how
    PULL: (with_parts, PullMessagesRequest, PullMessagesResponse),
    PUSH: (stored, PushMessagesRequest, PushMessagesResponse),
    "/v1/runtime/pull-messages": (with_parts, PullAppMessagesRequest, PullAppMessagesResponse),
    "/v1/runtime/push-object": (stored_together, PushObjectRequest, PushObjectResponse),
}


def _varint(x: int) -> bytes:
    out = b""
    while x > 127:
        out, x = out + bytes([x & 127 | 128]), x >> 7
    return out + bytes([x])
