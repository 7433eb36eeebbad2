"""A site's connection to its server: what ends it for good, and what does not."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

from flwr.app import Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from coterie.federation import resident
from coterie.federation.transport import fleet
from coterie.federation.transport.fleet import Fleet, FleetError, NeverError
from coterie.federation.transport.keys import write_certificates, write_keys


@pytest.fixture
def key(tmp_path: Path) -> Path:
    write_keys(tmp_path / "keys", ["north"])
    return tmp_path / "keys" / "north"


@contextmanager
def listening(answer: Callable[[socket.socket], Any]) -> Iterator[str]:
    """The address of somebody who answers like this."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def cut(connection: socket.socket) -> None:
    connection.recv(10)


def garbage(connection: socket.socket) -> None:
    connection.recv(10)
    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")


@pytest.mark.parametrize("answer", [cut, garbage])
def test_whoever_spoils_a_connection_does_not_end_a_site(tmp_path: Path, key: Path, answer: Any) -> None:
    ca, *_ = write_certificates(tmp_path)
    with listening(answer) as address, pytest.raises(FleetError) as told, Fleet(address, ca, key):
        pass
    assert not isinstance(told.value, NeverError)


def test_another_certificate_ends_it(tmp_path: Path, key: Path) -> None:
    ca, *_ = write_certificates(tmp_path / "ours")
    _, certificate, private = write_certificates(tmp_path / "theirs")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    answer = lambda connection: context.wrap_socket(connection, server_side=True)  # noqa: E731
    with listening(answer) as address, pytest.raises(NeverError, match="not to be trusted"), Fleet(address, ca, key):
        pass


class Refusing:
    """A SuperLink that believes the site to be there, and knows it as node 7."""

    def ActivateNode(self, request: Any) -> Any:
        response = httpx.Response(403, request=httpx.Request("POST", "https://a/v1/fleet/activate-node"))
        raise httpx.HTTPStatusError("no", request=response.request, response=response)

    def SendNodeHeartbeat(self, request: Any) -> Any:
        if request.node.node_id != 7:
            self.ActivateNode(request)  # another's id
        return SimpleNamespace(success=True)

    def PushMessages(self, request: Any) -> Any:
        raise ValueError("an answer that nobody expects")

    def close(self) -> None:
        pass


def test_a_site_that_was_killed_takes_up_its_place_unless_its_memory_is_spoilt(tmp_path: Path, key: Path) -> None:
    memory = tmp_path / ".node"
    one = Fleet("127.0.0.1:1", None, key, memory)
    one.client = Refusing()
    for content in (None, "", "north", "8", "-1", "1e400"):
        if content is not None:
            memory.write_text(content)
        with pytest.raises(FleetError, match="another process with this key"), one:
            pass
    memory.write_text("7")
    assert one._activate() == 7
    memory.unlink()
    memory.mkdir()  # a folder that cannot be written to
    with pytest.raises(httpx.HTTPStatusError):
        one._activate()


def test_a_reply_that_cannot_be_sent_does_not_end_a_site(key: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = Fleet("127.0.0.1:1", None, key)
    one.client = Refusing()
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
    message = Message(RecordDict(), dst_node_id=7, message_type="query.answer")
    one.send(message, RecordDict(), 0.1)
    assert "a reply that cannot be sent is left out" in caplog.text
    assert fleet.log.name in {record.name for record in caplog.records}


@pytest.mark.parametrize("ready", [0.1, 1.0, 3.1, 9.0, 100.0])
def test_a_site_that_is_there_before_its_server_loses_little_time(
    key: Path, monkeypatch: pytest.MonkeyPatch, ready: float
) -> None:
    """It looked after twice the time each time before, and a server that took 3.1 s to start waited for 2.9 s more."""
    clock = [0.0]
    monkeypatch.setattr(resident.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))

    def connect() -> Fleet:
        if clock[0] < ready:
            raise FleetError("not yet")
        raise NeverError("there")

    with pytest.raises(NeverError, match="there"):
        resident.attend(connect, SimpleNamespace(name="north"), lambda sentence: None)  # type: ignore[arg-type]
    assert clock[0] - ready <= min(0.25 * ready + resident.FIRST, resident.AGAIN)
