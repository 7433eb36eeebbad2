"""Flower's Fleet API as a SuperNode speaks it: all that a resident site knows of Flower's inner parts is here.

Nothing that arrives is run. A message is a record of numbers and text; the bundle of code that belongs to a run is not
even asked for. These parts of Flower are not public, so this file is for the versions in `FLWR` only, and a test
compares what it uses with what is installed.
"""

from __future__ import annotations

import logging
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.app import Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.constant import HEARTBEAT_MIN_INTERVAL
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
    RegisterNodeFleetRequest,
    UnregisterNodeFleetRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import (
    make_pull_object_fn_protobuf,
    make_push_object_fn_protobuf,
)
from flwr.supercore.inflatable.inflatable_utils import (
    inflate_object_from_contents,
    pull_objects,
    push_object_contents_from_iterable,
)
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.supercore.task_identity import TaskIdentity
from flwr.supercore.version import package_version
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from coterie.federation.transport.parcels import attach, attached, light
from coterie.io.files import write_whole

FLWR = "1.41."  # the versions whose inner parts these are, as pyproject.toml pins them
BEAT = HEARTBEAT_MIN_INTERVAL / 3  # seconds between two signs of life; after two missed intervals a site counts as gone
HALF = 0.02  # seconds to wait for a message of which only a part is there

log = logging.getLogger(__name__)


class FleetError(RuntimeError):
    """The SuperLink is not there, or refuses; trying again may help."""


class NeverError(FleetError):
    """It will not help to try again: a wrong certificate, a key that cannot be read, another version of Flower."""


class Fleet:
    """A connection to a SuperLink; use it in a with statement.

    Parameters
    ----------
    address : str
        Host and port.
    root_certificates : Path, optional
        The certificate authority of the SuperLink; without it nothing is encrypted.
    key : Path, optional
        The site's private key; without it the SuperLink must take anyone.
    memory : Path, optional
        A file for the id that the SuperLink has given to the key: a process that was killed takes up again what a
        SuperLink still believes to be there.
    """

    def __init__(
        self,
        address: str,
        root_certificates: Path | None = None,
        key: Path | None = None,
        memory: Path | None = None,
    ) -> None:
        if not package_version.startswith(FLWR):
            raise NeverError(
                f"this Coterie speaks to SuperLinks with flwr {FLWR}x; flwr {package_version} is installed"
            )
        self.registers = key is None
        private, public = generate_key_pairs() if key is None else _key_pair(key)
        self.public_key = public_key_to_bytes(public)
        interceptors = [RuntimeVersionHttpInterceptor("SuperNode"), NodeAuthHttpInterceptor(private, public)]
        certificates = None if root_certificates is None else root_certificates.read_bytes()
        self.client = FleetHttpClient.from_server_address(address, certificates is None, certificates, interceptors)
        self.node, self.memory = Node(), memory
        self.over = threading.Event()
        self.lost = ""

    def __enter__(self) -> Fleet:
        try:
            if self.registers:
                self.client.RegisterNode(RegisterNodeFleetRequest(public_key=self.public_key))
            self.node = Node(node_id=self._activate())
        except httpx.HTTPError as error:
            self.client.close()
            raise _plain(error) from None
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def _activate(self) -> int:
        request = ActivateNodeRequest(public_key=self.public_key, heartbeat_interval=HEARTBEAT_MIN_INTERVAL)
        try:
            node_id = int(self.client.ActivateNode(request).node_id)
        except httpx.HTTPStatusError:
            node_id = self._remembered()
            if not node_id:
                raise
        if self.memory is not None:
            with suppress(OSError):  # it only saves a wait
                write_whole(self.memory, str(node_id).encode())
        return node_id

    def _remembered(self) -> int:
        """The id of a former life, which the SuperLink takes a sign of life from; 0: there is none."""
        try:
            node_id = 0 if self.memory is None else int(self.memory.read_text())
            lives = node_id > 0 and self.client.SendNodeHeartbeat(_sign_of_life(Node(node_id=node_id))).success
        except (OSError, ValueError, httpx.HTTPStatusError):
            return 0
        return node_id if lives else 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.over.set()
        try:
            self.client.DeactivateNode(DeactivateNodeRequest(node_id=self.node.node_id))
            if self.registers:
                self.client.UnregisterNode(UnregisterNodeFleetRequest(node_id=self.node.node_id))
        except httpx.HTTPError:
            pass  # the SuperLink is gone: it will notice
        self.client.close()

    def receive(self) -> Message | None:
        """Return the next message for this site, if there is one that can be read."""
        if self.lost:
            raise FleetError(self.lost)
        try:
            request = PullMessagesRequest(node=self.node)
            attach(request, {})
            response = self.client.PullMessages(request)
            if not response.messages_list:
                return None
            outline = message_from_proto(response.messages_list[0])
            parts = attached(response)
            if parts is None:
                names = [part.object_id for part in iterate_object_tree(response.message_object_trees[0])]
                parts = self._fetched(outline, names)
            message: Message = inflate_object_from_contents(outline.metadata.message_id, parts)
            message.metadata.__dict__["_message_id"] = outline.metadata.message_id
            return message
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.FORBIDDEN:
                return None  # of a run that is over
            raise _plain(error) from None
        except httpx.HTTPError as error:
            raise _plain(error) from None
        except Exception:
            log.exception("a message that cannot be read is left out")
            return None

    def _fetched(self, outline: Message, parts: list[str]) -> dict[str, bytes]:
        """Fetch all parts of a message, and say so: only then may the SuperLink forget them."""
        run_id, message_id = outline.metadata.run_id, outline.metadata.message_id
        pull = make_pull_object_fn_protobuf(self.client.PullObject, self.node, run_id)
        contents: dict[str, bytes] = pull_objects(parts, pull, initial_backoff=HALF)
        confirmed = ConfirmMessageReceivedRequest(node=self.node, run_id=run_id, message_object_id=message_id)
        self.client.ConfirmMessageReceived(confirmed)
        return contents

    def send(self, message: Message, content: RecordDict, seconds: float) -> None:
        """Send the reply to a message, which took so many seconds to make."""
        run_id = message.metadata.run_id
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, run_id, self.node.node_id
        reply = Message(content, reply_to=message)
        reply.metadata.__dict__["_message_id"] = reply.object_id
        try:
            with no_object_id_recompute():
                tree = get_object_tree(reply)
                parts = {name: one.deflate() for name, one in get_all_nested_objects(reply).items()}
                outline = message_to_proto(remove_content_from_message(reply))
                request = PushMessagesRequest(
                    node=self.node,
                    messages_list=[outline],
                    message_object_trees=[tree],
                    clientapp_runtime_list=[seconds],
                )
                attach(request, light(parts))
                response = self.client.PushMessages(request)
                wanted = set(response.objects_to_push)  # none, where parcels are known
                push = make_push_object_fn_protobuf(self.client.PushObject, self.node, run_id, response.session_id)
                push_object_contents_from_iterable(((k, part) for k, part in parts.items() if k in wanted), push)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.FORBIDDEN:  # of a run that is over
                raise _plain(error) from None
        except httpx.HTTPError as error:
            raise _plain(error) from None
        except Exception:
            log.exception("a reply that cannot be sent is left out")

    def _beat(self) -> None:
        """Show signs of life; a SuperLink that does not know this site any more has been started anew."""
        request = _sign_of_life(self.node)
        while not self.over.wait(BEAT):
            try:
                if not self.client.SendNodeHeartbeat(request).success:
                    self.lost = "the SuperLink does not know this site any more"
            except httpx.HTTPError as error:
                log.warning("no sign of life could be sent: %s", _plain(error))


def _sign_of_life(node: Node) -> SendNodeHeartbeatRequest:
    return SendNodeHeartbeatRequest(node=node, heartbeat_interval=HEARTBEAT_MIN_INTERVAL)


def _key_pair(path: Path) -> tuple[ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey]:
    try:
        private = load_ssh_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise NeverError(f"{path} is no private key in OpenSSH's form without a password: {error}") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise NeverError(f"{path} must be a key for ECDSA: ssh-keygen -t ecdsa -b 256")
    return private, private.public_key()


def _plain(error: httpx.HTTPError) -> FleetError:
    """Say in one line what went wrong."""
    if isinstance(error, httpx.HTTPStatusError):
        if error.response.status_code == httpx.codes.UNAUTHORIZED:
            return FleetError("the SuperLink does not know this site's key, or the clocks of the two differ")
        if error.request.url.path.endswith("activate-node"):
            return FleetError("the SuperLink sees another process with this key, or does not know it")
        return FleetError(f"the SuperLink refused ({error.response.status_code})")
    if _is_about_trust(error):
        return NeverError(f"the SuperLink's certificate is not to be trusted: {error}")
    return FleetError(f"the SuperLink cannot be reached ({type(error).__name__})")


def _is_about_trust(error: BaseException | None) -> bool:
    """Whether a certificate was refused; a connection that was cut while it was being made is another matter."""
    return error is not None and (
        isinstance(error, ssl.SSLCertVerificationError) or _is_about_trust(error.__cause__ or error.__context__)
    )
