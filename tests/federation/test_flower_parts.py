"""Flower's inner parts that Coterie uses, as they are in the version that is pinned: if one fails, read what changed.

`transport/fleet.py`, `transport/superlink.py` and `transport/server_apps.py` are the only files to adapt.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2
from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.supercore.protobuf.translation import PROTOBUF_REQUEST_TYPES
from flwr.supercore.version import package_version
from flwr.superlink.config_loader import SuperLinkLifespanConfig
from flwr.superlink.grid import http_grid
from flwr.superlink.main import create_app

from coterie.federation.transport import fleet, superlink
from coterie.federation.transport.keys import write_keys
from coterie.federation.transport.superlink import PUBLIC, Bell, Door

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
CONTROL = 8001


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
    given = set(inspect.getsource(superlink.serve).split("SuperLinkLifespanConfig(")[1].split()) & {
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


def make_door() -> Door:
    return Door(None, CONTROL)  # type: ignore[arg-type]


def test_the_public_port_passes_what_a_site_says_and_nothing_else() -> None:
    app = create_app()
    paths = {path for _, path in PROTOBUF_REQUEST_TYPES} | {getattr(route, "path", "") for route in app.routes}
    assert {"/docs", "/openapi.json", "/v1/control/start-run", "/v1/runtime/acquire-task"} <= paths
    for path in paths | {"/v1/fleet/../control/start-run", "/v1/fleet/", "//v1/control/start-run", ""}:
        for server in (("10.0.0.1", 8000), ("127.0.0.1", 8000), ("10.0.0.1", CONTROL)):
            status, _ = call(make_door(), path, server[1], host=server[0])
            assert status == (200 if path in PUBLIC else 404), path
    assert call(make_door(), "/v1/control/start-run", CONTROL)[0] == 200
    assert call(make_door(), "/v1/fleet/pull-object", 8000, method="GET")[0] == 404
    assert call(make_door(), "/v1/control/start-run", CONTROL, server=None)[0] == 404


def test_a_site_replies_and_speaks_for_nobody_else() -> None:
    def push(reply_to: str, source: int) -> tuple[int, Any]:
        message = message_pb2.Message()
        message.metadata.reply_to_message_id, message.metadata.src_node_id = reply_to, source
        request = fleet_pb2.PushMessagesRequest(messages_list=[message])
        request.node.node_id = 5
        return call(make_door(), superlink.PUSH, 8000, request.SerializeToString())

    status, seen = push("question", 5)
    assert status == 200
    assert fleet_pb2.PushMessagesRequest.FromString(seen).node.node_id == 5
    assert push("question", 6)[0] == 404
    assert push("", 5)[0] == 404
    assert push("", 1)[0] == 404
    assert call(make_door(), superlink.PUSH, 8000, b"\xff\xff")[0] == 404


def test_a_look_waits_only_where_nothing_has_come_since_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(superlink, "HOLD", 60.0)

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


def test_a_server_knows_the_keys_in_its_folder_and_each_of_them_once(tmp_path: Path) -> None:
    state = create_app().state.linkstate_factory.state()
    with pytest.raises(ValueError, match="there is no key in"):
        superlink.register(state, tmp_path)
    write_keys(tmp_path, ["north", "south"])
    ids = superlink.register(state, tmp_path)
    assert set(ids) == {"north", "south"}
    assert len(set(ids.values())) == 2
    (tmp_path / "west.pub").write_bytes((tmp_path / "north.pub").read_bytes())
    with pytest.raises(ValueError, match=r"north and west in .* are the same key"):
        superlink.register(create_app().state.linkstate_factory.state(), tmp_path)
    (tmp_path / "west.pub").write_text("ssh-something AAAA")
    with pytest.raises(ValueError, match=r"west\.pub is no public key"):
        superlink.register(create_app().state.linkstate_factory.state(), tmp_path)
    key = rsa.generate_private_key(65537, 2048).public_key()
    (tmp_path / "west.pub").write_bytes(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    with pytest.raises(ValueError, match=r"west\.pub must be a key for ECDSA"):
        superlink.register(create_app().state.linkstate_factory.state(), tmp_path)
