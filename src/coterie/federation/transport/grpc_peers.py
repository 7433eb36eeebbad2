"""Neighbours over gRPC, with TLS and a certificate at both ends: a site talks to its neighbours and to nobody else.

Every site has a certificate of its own, which it signs itself, and those of its neighbours. A connection is made to a
neighbour only if it shows exactly the certificate that is known of it, and taken only from those whose certificates are
known; a name is that of the certificate.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from coterie.federation.loop import FederationError
from coterie.federation.transport.board import Board, packed, unpacked
from coterie.problem.arrays import Array

SERVICE = "coterie.Gossip"
HELD = 5.0  # seconds that a question waits at the other end for its answer
AGAIN = 0.3  # seconds until a neighbour that is away is asked again
LARGEST = 1 << 28  # bytes of a message
LAST = 60.0  # seconds that a site which has ended waits for others that are away
OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


@dataclass(frozen=True)
class Neighbour:
    """Where a neighbour is, and its certificate."""

    address: str
    certificate: bytes


class GrpcPeers:
    """Serves a site's board to its neighbours, and asks them for theirs; use it in a with statement.

    Parameters
    ----------
    name, listen : str
        Of this site: its name, and host and port.
    key, certificate : bytes
        Its private key and certificate, as PEM.
    neighbours : mapping of str to Neighbour
    run : str
        A digest of all that sites must agree on: nothing is said to a neighbour with another.
    note : callable
        Is given the kind, number and bytes of every message before anyone can ask for it.
    board : Board, optional
        Of a former life.
    say : callable
        For sentences to the user.
    """

    def __init__(
        self,
        name: str,
        listen: str,
        key: bytes,
        certificate: bytes,
        neighbours: Mapping[str, Neighbour],
        run: str,
        note: Callable[[str, int, bytes], None],
        say: Callable[[str], None],
        board: Board | None = None,
    ) -> None:
        self.run, self.note, self.say, self.board = run, note, say, board or Board()
        self.known = {_der(one.certificate): who for who, one in neighbours.items()}
        self.done: dict[str, threading.Event] = {who: threading.Event() for who in neighbours}
        self.server = grpc.server(ThreadPoolExecutor(2 * len(neighbours) + 2), options=OPTIONS)
        handlers = {
            "Pull": grpc.unary_unary_rpc_method_handler(self._serve),
            "Done": grpc.unary_unary_rpc_method_handler(self._note_done),
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        trusted = b"".join(one.certificate for one in neighbours.values())
        mine = grpc.ssl_server_credentials([(key, certificate)], trusted, require_client_auth=True)
        if self.server.add_secure_port(listen, mine) == 0:
            raise FederationError(f"cannot listen at {listen}")
        self.channels = {
            who: grpc.secure_channel(
                one.address,
                grpc.ssl_channel_credentials(one.certificate, key, certificate),
                options=(*OPTIONS, ("grpc.ssl_target_name_override", who)),
            )
            for who, one in neighbours.items()
        }

    def __enter__(self) -> GrpcPeers:
        self.server.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self._part()
        self.server.stop(grace=0.5).wait()
        for channel in self.channels.values():
            channel.close()

    def publish(self, kind: str, number: int, messages: Mapping[str, Mapping[str, Array]]) -> None:
        content = {who: packed(arrays) for who, arrays in messages.items()}
        self.note(kind, number, b"".join(content[who] for who in sorted(content)))
        self.board.put(kind, number, content)

    def published(self, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array] | None:
        return self.board.published(kind, number, shapes)

    def pull(self, neighbour: str, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array]:
        question = json.dumps({"run": self.run, "kind": kind, "number": number}).encode()
        return unpacked(neighbour, kind, self._call(neighbour, "Pull", question), shapes)

    def _call(self, neighbour: str, method: str, question: bytes, seconds: float = float("inf")) -> bytes:
        """Ask until there is an answer."""
        call = self.channels[neighbour].unary_unary(f"/{SERVICE}/{method}")
        away, deadline = False, time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                answer: bytes = call(question, timeout=4 * HELD)
                return answer
            except grpc.RpcError as error:
                if error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.PERMISSION_DENIED):
                    raise FederationError(f"site {neighbour!r}: {error.details()}") from None
                if error.code() is not grpc.StatusCode.NOT_FOUND:  # it is there, and has no answer yet
                    if not away:
                        self.say(f"waiting for {neighbour}")
                    away = True
                    time.sleep(AGAIN)
        return b""

    def _serve(self, question: bytes, context: grpc.ServicerContext) -> bytes:
        who = self._who(context)
        asked = json.loads(question)
        if asked["run"] != self.run:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "has other settings, columns or sites")
        answer = self.board.wait(str(asked["kind"]), int(asked["number"]), who, HELD)
        if answer is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "not yet")  # raises
        return answer or b""

    def _note_done(self, question: bytes, context: grpc.ServicerContext) -> bytes:
        self.done[self._who(context)].set()
        return b"yes"

    def _who(self, context: grpc.ServicerContext) -> str:
        shown = context.auth_context().get("x509_pem_cert", [b""])[0]
        who = self.known.get(_der(shown)) if shown else None
        if who is None:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "does not know this certificate")
        assert who is not None
        return who

    def _part(self) -> None:
        """Stay until all neighbours have said that they need nothing more, or are away for long."""
        deadline = time.monotonic() + LAST
        for who in self.channels:
            self._call(who, "Done", b"", deadline - time.monotonic())
        for event in self.done.values():
            event.wait(max(deadline - time.monotonic(), 0.0))


def _der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def read_neighbour(address: str, certificate: Path) -> Neighbour:
    """A neighbour whose certificate is in a file."""
    try:
        content = certificate.read_bytes()
        _der(content)
    except (OSError, ValueError) as error:
        raise FederationError(f"{certificate} is no certificate: {error}") from None
    return Neighbour(address, content)
