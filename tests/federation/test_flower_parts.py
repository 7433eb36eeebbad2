"""Flower's inner parts that Coterie uses, as they are in the version that is pinned: if one fails, read what changed.

`transport/` has the only files to adapt: fleet, superlink, door, server_apps, parcels, registered_keys, control_token.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import queue
import tomllib
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.cli.utils import load_cli_auth_plugin_from_connection
from flwr.common.constant import NOOP_FLWR_AID, TIMESTAMP_HEADER
from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.credential_store import file_credential_store
from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.supercore.protobuf.translation import PROTOBUF_REQUEST_TYPES
from flwr.supercore.version import package_version
from flwr.superlink.config_loader import SuperLinkLifespanConfig
from flwr.superlink.grid import http_grid
from flwr.superlink.main import create_app
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from coterie.federation.transport import door, fleet, parcels, superlink
from coterie.federation.transport.control_token import ControlToken
from coterie.federation.transport.door import PUBLIC, Bell, Door
from coterie.federation.transport.keys import write_keys
from coterie.federation.transport.registered_keys import RegisteredKeys

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
CONTROL = 8001
PUSHED = "/v1/fleet/push-messages"


def test_the_version_is_the_one_that_was_read() -> None:
    assert package_version.startswith(fleet.FLWR)
    pinned = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["flower"]
    assert f"flwr>={fleet.FLWR[:-1]},<1.42" in pinned


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (fleet_pb2.ActivateNodeRequest, {"public_key": 1, "heartbeat_interval": 2}),
        (fleet_pb2.ActivateNodeResponse, {"node_id": 1}),
        (fleet_pb2.RegisterNodeFleetRequest, {"public_key": 1}),
        (fleet_pb2.DeactivateNodeRequest, {"node_id": 1}),
        (fleet_pb2.PullMessagesRequest, {"node": 1, "message_ids": 2}),
        (fleet_pb2.PullMessagesResponse, {"reconnect": 1, "messages_list": 2, "message_object_trees": 3}),
        (
            fleet_pb2.PushMessagesRequest,
            {"node": 1, "messages_list": 2, "message_object_trees": 3, "clientapp_runtime_list": 4},
        ),
        (
            fleet_pb2.PushMessagesResponse,
            {"reconnect": 1, "results": 2, "objects_to_push": 3, "session_id": 4},
        ),
        (heartbeat_pb2.SendNodeHeartbeatRequest, {"node": 1, "heartbeat_interval": 2}),
        (message_pb2.ConfirmMessageReceivedRequest, {"node": 1, "run_id": 2, "message_object_id": 3}),
    ],
)
def test_messages_of_the_fleet_api_are_as_they_were(message: Any, expected: dict[str, int]) -> None:
    assert {field.name: field.number for field in message.DESCRIPTOR.fields} == expected


def test_the_fleet_api_has_the_calls_that_it_had() -> None:
    """A new one is closed to sites until somebody has read what it does."""
    calls = {path for _, path in PROTOBUF_REQUEST_TYPES if path.startswith("/v1/fleet/")}
    assert calls == PUBLIC | {"/v1/fleet/register-node", "/v1/fleet/unregister-node"}


def test_the_superlink_is_made_of_the_parts_that_it_was() -> None:
    given = set(inspect.getsource(superlink._config).split("SuperLinkLifespanConfig(")[1].split()) & {
        f"{field.name}={value}" for field in fields(SuperLinkLifespanConfig) for value in ("None,", "False,", "True,")
    }
    assert "enable_supernode_auth=True," in given
    assert "insecure=False," in given
    assert "runtime_dependency_install=False," in given
    assert list(inspect.signature(create_app).parameters) == ["config", "superlink_lifespan_class"]
    assert "initial_backoff" in inspect.signature(pull_objects).parameters
    assert callable(http_grid.pull_objects)


# --- the door ---------------------------------------------------------------------------------------------------


def call(door: Door, path: str, port: int, body: bytes = b"", host: str = "127.0.0.1", **more: Any) -> tuple[int, Any]:
    """The status of a call, and what Flower got to see of it."""
    seen: list[Any] = []
    sent: list[Any] = []

    async def flower(scope: Any, receive: Any, send: Any) -> None:
        seen.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200})

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: Any) -> None:
        sent.append(event)

    door.app = flower
    scope = {"type": "http", "method": "POST", "path": path, "server": (host, port), "client": ("10.0.0.9", 1)}
    asyncio.run(door({**scope, "headers": [], **more}, receive, send))
    return sent[0]["status"], seen[0] if seen else None


def make_door(signed: bool = True) -> Door:
    return Door(None, CONTROL, lambda headers: signed)  # type: ignore[arg-type]


def test_the_public_port_passes_what_a_site_says_and_nothing_else() -> None:
    app = create_app()
    paths = {path for _, path in PROTOBUF_REQUEST_TYPES} | {getattr(route, "path", "") for route in app.routes}
    assert {"/docs", "/openapi.json", "/v1/control/start-run", "/v1/runtime/acquire-task"} <= paths
    for path in paths | {"/v1/fleet/../control/start-run", "/v1/fleet/", "//v1/control/start-run", ""}:
        for server in (("10.0.0.1", 8000), ("127.0.0.1", 8000), ("10.0.0.1", CONTROL)):
            status, _ = call(make_door(), path, server[1], host=server[0])
            assert status == (200 if path in PUBLIC else 404), path
    assert call(make_door(), "/v1/control/start-run", CONTROL)[0] == 200
    assert call(make_door(), "/v1/fleet/register-node", CONTROL)[0] == 404
    assert call(make_door(), "/v1/fleet/pull-object", 8000, method="GET")[0] == 404
    assert call(make_door(), "/v1/control/start-run", CONTROL, server=None)[0] == 404


def test_of_a_call_that_nobody_signed_nothing_is_read() -> None:
    """Otherwise whoever reaches the port could fill the server's memory."""

    async def receive() -> Any:
        raise AssertionError("the body was asked for")

    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    for path in sorted(PUBLIC):
        scope = {"type": "http", "method": "POST", "path": path, "server": ("10.0.0.1", 8000), "headers": []}
        asyncio.run(make_door(signed=False)(scope, receive, send))
    assert [event["status"] for event in sent if "status" in event] == [401] * len(PUBLIC)
    assert call(make_door(signed=False), "/v1/control/start-run", CONTROL)[0] == 200  # which asks for a token


def test_a_call_is_signed_just_now_with_a_key_that_is_known(tmp_path: Path) -> None:
    write_keys(tmp_path / "known", ["north"])
    write_keys(tmp_path / "other", ["north"])
    keys = RegisteredKeys(fresh_state(), tmp_path / "known")
    keys.update()

    def headers(key: Path) -> dict[str, str]:
        context = SimpleNamespace(request=httpx.Request("POST", "https://127.0.0.1/v1/fleet/pull-messages"))
        NodeAuthHttpInterceptor(*fleet._key_pair(key)).intercept(context, lambda one: one)
        return dict(context.request.headers)

    good = headers(tmp_path / "known" / "north")
    assert keys.have_signed(good)
    assert not keys.have_signed(headers(tmp_path / "other" / "north"))
    assert not keys.have_signed({})
    for name in (FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER, TIMESTAMP_HEADER):
        assert not keys.have_signed({**good, name: ""})
        assert not keys.have_signed({**good, name: "ä"})
    assert not keys.have_signed({**good, TIMESTAMP_HEADER: "2020-01-01T00:00:00+00:00"})
    assert not keys.have_signed({**good, TIMESTAMP_HEADER: "2020-01-01T00:00:00"})


def test_a_site_replies_and_speaks_for_nobody_else() -> None:
    def push(reply_to: str, source: int) -> tuple[int, Any]:
        message = message_pb2.Message()
        message.metadata.reply_to_message_id, message.metadata.src_node_id = reply_to, source
        request = fleet_pb2.PushMessagesRequest(messages_list=[message])
        request.node.node_id = 5
        return call(make_door(), PUSHED, 8000, request.SerializeToString())

    status, seen = push("question", 5)
    assert status == 200
    assert fleet_pb2.PushMessagesRequest.FromString(seen).node.node_id == 5
    assert push("question", 6)[0] == 404
    assert push("", 5)[0] == 404
    assert push("", 1)[0] == 404
    assert call(make_door(), PUSHED, 8000, b"\xff\xff")[0] == 404


def test_a_look_waits_only_where_nothing_has_come_since_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HOLD", 60.0)

    async def play() -> list[bool]:
        bell, waited = Bell(), []
        for who, comes in ((1, False), (1, True), (2, False), (1, True)):
            look = asyncio.ensure_future(bell.wait((who,)))
            await asyncio.sleep(0.01)
            waited.append(not look.done())
            bell.ring_if_fresh()
            await asyncio.sleep(0.01)
            assert look.done() != waited[-1], "only what is new rings"
            bell.fresh = comes
            bell.ring_if_fresh()
            await look
        return waited

    # Who is new passes; who looks again waits until something comes, and has then seen it.
    assert asyncio.run(play()) == [False, True, False, True]


def test_the_layers_that_are_left_out_do_nothing_here() -> None:
    layers = [layer.cls.__name__ for layer in create_app().user_middleware]
    assert layers == [
        "ControlSensitiveResponseMiddleware",
        "BaseHTTPMiddleware",
        "ControlAuthenticationMiddleware",
        "ControlLicenseMiddleware",
        "ProtobufTranslationMiddleware",
        "RuntimeTracingMiddleware",
        "ControlEventLogMiddleware",
        "NodeAuthMiddleware",
        "FleetEventLogMiddleware",
    ]
    assert importlib.util.find_spec("flwr.ee") is None


# --- parcels ----------------------------------------------------------------------------------------------------


class Shelf:
    """What parcels need of a SuperLink's state: parts by name."""

    def __init__(self, **parts: bytes) -> None:
        self.parts = parts
        self.object_store, self.deleted = self, list[str]()

    def get_object(self, run_id: int, name: str) -> bytes | None:
        return self.parts.get(name)

    def store_object(self, run_id: int, session: str, name: str, content: bytes) -> bool:
        self.parts[name] = content
        return True

    def delete(self, name: str) -> None:
        self.deleted.append(name)


def answered(state: Any, path: str, request: Any, response: Any) -> Any:
    """Flower's answer, as the door sends it on."""
    content = parcels.handled(state, path, request.SerializeToString(), response.SerializeToString())
    return type(response).FromString(content)


def pulled() -> fleet_pb2.PullMessagesResponse:
    response = fleet_pb2.PullMessagesResponse()
    response.messages_list.add().metadata.message_id = "whole"
    tree = response.message_object_trees.add(object_id="whole")
    tree.children.add(object_id="part")
    return response


def test_a_message_is_pulled_with_its_parts_by_those_who_ask_for_that() -> None:
    request, shelf = fleet_pb2.PullMessagesRequest(), Shelf(whole=b"1", part=b"2" * 300)
    assert answered(shelf, parcels.PULL, request, pulled()) == pulled(), "a stock SuperNode"
    parcels.attach(request, {})
    response = answered(shelf, parcels.PULL, request, pulled())
    assert parcels.attached(response) == shelf.parts
    assert response.messages_list[0].metadata.message_id == "whole"
    assert shelf.deleted == ["whole"]
    for not_yet in (Shelf(whole=b"1"), Shelf(whole=b"1", part=b"")):
        assert parcels.attached(answered(not_yet, parcels.PULL, request, pulled())) is None
        assert not not_yet.deleted


def test_a_reply_brings_its_parts_and_others_are_still_asked_for() -> None:
    request, response = fleet_pb2.PushMessagesRequest(), fleet_pb2.PushMessagesResponse(session_id="s")
    request.messages_list.add()
    response.objects_to_push.extend(["a", "b", "c"])
    assert answered(Shelf(), parcels.PUSH, request, response) == response, "a stock SuperNode"
    parcels.attach(request, {"a": b"1", "b": b"2", "not wanted": b"3"})
    shelf = Shelf()
    assert list(answered(shelf, parcels.PUSH, request, response).objects_to_push) == ["c"]
    assert shelf.parts == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize("knows", [True, False])
def test_a_server_app_pushes_parts_together_where_that_is_understood(
    knows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parcels, "MOST", 5)
    shelf, calls = Shelf(), list[str]()

    class SuperLink:
        def PushObject(self, request: Any) -> Any:
            calls.append(request.object_id)
            shelf.parts[request.object_id] = request.object_content
            response = message_pb2.PushObjectResponse(stored=True)
            return answered(shelf, "/v1/runtime/push-object", request, response) if knows else response

    class Part(bytes):
        def deflate(self) -> bytes:
            return bytes(self)

    parts = {name: Part(name.encode() * 2) for name in "abcde"}
    client = parcels.ParcelClient(SuperLink())

    def push(name: str, content: bytes) -> None:
        client.PushObject(message_pb2.PushObjectRequest(object_id=name, object_content=content))

    client.push_objects(parts, push, set("abcd"))
    assert shelf.parts == {name: parts[name] for name in "abcd"}
    assert len(calls) == (2 if knows else 4)


# --- keys and tokens --------------------------------------------------------------------------------------------


def fresh_state() -> Any:
    return create_app().state.linkstate_factory.state()


def test_a_server_knows_the_keys_in_its_folder_and_each_of_them_once(tmp_path: Path) -> None:
    state = fresh_state()
    with pytest.raises(ValueError, match="there is no key in"):
        RegisteredKeys(state, tmp_path).update()
    write_keys(tmp_path, ["north", "south"])
    known = RegisteredKeys(state, tmp_path)
    assert known.update() == "north, south may take part"
    assert set(known.ids) == {"north", "south"}
    assert len(set(known.ids.values())) == 2
    (tmp_path / "west.pub").write_bytes((tmp_path / "north.pub").read_bytes())
    with pytest.raises(ValueError, match=r"north and west in .* are the same key"):
        RegisteredKeys(fresh_state(), tmp_path).update()
    (tmp_path / "west.pub").write_text("ssh-something AAAA")
    with pytest.raises(ValueError, match=r"west\.pub is no public key"):
        RegisteredKeys(fresh_state(), tmp_path).update()
    key = rsa.generate_private_key(65537, 2048).public_key()
    (tmp_path / "west.pub").write_bytes(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    with pytest.raises(ValueError, match=r"west\.pub must be a key for ECDSA"):
        RegisteredKeys(fresh_state(), tmp_path).update()


def test_keys_come_and_go_while_the_server_runs(tmp_path: Path) -> None:
    state = fresh_state()
    write_keys(tmp_path, ["north", "south"])
    known = RegisteredKeys(state, tmp_path)
    known.update()
    before = dict(known.ids)
    assert not known.update()
    write_keys(tmp_path, ["west"])
    removed = (tmp_path / "south.pub").read_bytes()
    (tmp_path / "south.pub").unlink()
    assert known.update() == "south may take part no more; west may take part"
    assert set(known.ids) == {"north", "west"}
    assert known.ids["north"] == before["north"]
    registered = {node.node_id for node in state.get_node_info(statuses=["registered"])}
    assert registered == set(known.ids.values())
    (tmp_path / "east.pub").write_bytes(removed)
    with pytest.raises(ValueError, match="east has a key that was known before"):
        known.update()
    assert set(known.ids) == {"north", "west"}


def test_a_folder_of_keys_is_watched_and_what_cannot_be_used_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.federation.transport.registered_keys.LOOK", 0.01)
    write_keys(tmp_path, ["north"])
    known = RegisteredKeys(fresh_state(), tmp_path)
    known.update()
    told: queue.Queue[tuple[set[str], str]] = queue.Queue()
    known.watch(lambda ids, what: told.put((set(ids), what)))
    (tmp_path / "west.pub").write_text("half a key")
    names, what = told.get(timeout=60.0)
    assert names == {"north"}
    assert what.endswith("all keys stay as they were")
    write_keys(tmp_path / "new", ["west"])
    (tmp_path / "new" / "west.pub").replace(tmp_path / "west.pub")
    assert told.get(timeout=60.0) == ({"north", "west"}, "west may take part")


def test_flowers_commands_get_the_token_of_the_control_port_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, other = ControlToken(), ControlToken()
    assert token.token != other.token
    token.write(tmp_path, "127.0.0.1:8001")
    path = tmp_path / "credentials.yaml"
    assert path.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(file_credential_store, "CREDENTIAL_FILE_PATH", path)
    plugin = load_cli_auth_plugin_from_connection("127.0.0.1:8001")
    plugin.load_tokens()
    sent = plugin.write_tokens_to_metadata([])
    good, account = token.validate_tokens_in_metadata(sent)
    assert good
    assert account is not None
    assert account.flwr_aid == NOOP_FLWR_AID
    assert other.validate_tokens_in_metadata(sent) == (False, None)
    assert token.validate_tokens_in_metadata([]) == (False, None)
    assert token.refresh_tokens(sent) == (None, None)
