"""Neighbours over gRPC, with TLS and a certificate at both ends: a site talks to its neighbours and to nobody else.

Every site has a certificate of its own, which it signs itself, and those of its neighbours. A connection is made to a
neighbour only if it shows exactly the certificate that is known of it, and taken only from those whose certificates are
known; a name is that of the certificate.

With every question and every answer goes the standing, who takes part and who is away (`board.py`). A neighbour whose
weights are known and that cannot be reached for `patience` seconds is away from then on.
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
import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from coterie.federation.loop import FederationError
from coterie.federation.spanning_tree import ChangedError, LeftBehindError
from coterie.federation.transport.board import Board, Standing, packed, unpacked
from coterie.problem.arrays import Array

SERVICE = "coterie.Gossip"
HELD = 5.0  # seconds that a question waits at the other end for its answer
AGAIN = 0.3  # seconds until a neighbour that is away is asked again
LARGEST = 1 << 28  # bytes of a message
LAST = 60.0  # seconds that a site which has ended waits for others that are away
LATER, HERE, OVER = (
    b"\0",
    b"\1",
    b"\2",
)  # the first byte of an answer: ask again, a message, or why the run has ended there
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
    say : callable
        For sentences to the user.
    patience : float
        Seconds that a neighbour may be out of reach.
    board : Board
        New, or of a former life.
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
        patience: float,
        board: Board,
    ) -> None:
        self.name, self.run, self.note, self.say, self.board, self.patience = name, run, note, say, board, patience
        self.may_be_held: set[str] = set()
        self.waiting = ""  # for whom; said once
        self.told: dict[str, threading.Event] = {who: threading.Event() for who in neighbours}  # that it is over
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
        elif isinstance(error, FederationError) and not isinstance(error, LeftBehindError):
            self.board.close(str(error))
            self._wait_for({who: event for who, event in self.told.items() if who not in self.away})
        self.server.stop(grace=0.5).wait()
        for channel in self.channels.values():
            channel.close()

    def publish(self, kind: str, number: int, messages: Mapping[str, Mapping[str, Array]]) -> None:
        content = {who: packed(arrays) for who, arrays in messages.items()}
        self.note(kind, number, b"".join(content[who] for who in sorted(content)))
        self.board.put(kind, number, content)

    def published(self, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array] | None:
        return self.board.published(kind, number, shapes)

    @property
    def away(self) -> frozenset[str]:
        return self.board.away

    def begin_anew(self, may_return: bool) -> bool:
        return self.board.begin_anew(self.name, may_return)

    def pull(self, neighbour: str, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array]:
        question = {"run": self.run, "kind": kind, "number": number, "standing": self.board.standing}
        call = self.channels[neighbour].unary_unary(f"/{SERVICE}/Pull")
        there = time.monotonic()
        while True:
            if self.board.heard != self.board.standing:
                raise ChangedError
            try:
                answer: bytes = call(json.dumps(question).encode(), timeout=4 * HELD)
                there, content = time.monotonic(), self._content(neighbour, answer)
                if content is not None and self.board.heard == self.board.standing:
                    return unpacked(neighbour, kind, content, shapes)
            except grpc.RpcError as error:
                self._unreached(neighbour, error, there)
                time.sleep(AGAIN)

    def _content(self, neighbour: str, answer: bytes) -> bytes | None:
        """What a neighbour has said; None: nothing yet, or of who takes part."""
        said, size = answer[:1], 8 * len(self.board.sites)
        if said == OVER:
            raise FederationError(answer[1:].decode(errors="replace"))
        if len(answer) < 1 + size:
            raise FederationError(f"site {neighbour!r} has sent an answer that is cut short")
        self.board.hear(tuple(int(x) for x in np.frombuffer(answer[1 : 1 + size], "<i8")))
        return answer[1 + size :] if said == HERE else None

    def _unreached(self, neighbour: str, error: grpc.RpcError, there: float) -> None:
        """Complain where that helps; after a while a neighbour that cannot be reached is away."""
        if error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.PERMISSION_DENIED):
            raise FederationError(f"site {neighbour!r}: {error.details()}") from None
        if self.waiting != neighbour:
            self.waiting = neighbour
            self.say(f"waiting for {neighbour}")
        if neighbour in self.may_be_held and time.monotonic() - there > self.patience:
            self.board.add_one(neighbour)
            self.say(f"{neighbour} is away: its weights stay as they are, and the others go on")

    def _serve(self, question: bytes, context: grpc.ServicerContext) -> bytes:
        who = self._who(context)
        try:
            asked = json.loads(question)
            run, kind, number = str(asked["run"]), str(asked["kind"]), int(asked["number"])
            standing: Standing = tuple(map(int, asked["standing"]))
        except (ValueError, KeyError, TypeError):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "does not understand the question")  # raises
        if run != self.run or len(standing) != len(self.board.sites):
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "has other settings, columns or sites")
        self.board.hear(standing)
        content = self.board.wait(kind, number, who, HELD, standing)
        if self.board.end:
            self.told[who].set()
            return OVER + self.board.end.encode()
        heard = np.array(self.board.heard, "<i8").tobytes()
        return LATER + heard if content is None else HERE + heard + content

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
        near = [who for who in self.channels if who not in self.away]
        deadline = time.monotonic() + LAST
        for who in near:
            call = self.channels[who].unary_unary(f"/{SERVICE}/Done")
            while time.monotonic() < deadline:
                try:
                    call(b"", timeout=HELD)
                    break
                except grpc.RpcError:
                    time.sleep(AGAIN)
        self._wait_for({who: self.done[who] for who in near}, deadline)

    def _wait_for(self, events: Mapping[str, threading.Event], deadline: float | None = None) -> None:
        deadline = time.monotonic() + LAST if deadline is None else deadline
        for event in events.values():
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
