"""The keys that a SuperLink knows: NAME.pub in a folder, which is watched, so that sites come and go while it runs.

Like `superlink.py` this is for one version of Flower.
"""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from flwr.common.constant import (
    NOOP_ACCOUNT_NAME,
    NOOP_FLWR_AID,
    SYSTEM_TIME_TOLERANCE,
    TIMESTAMP_HEADER,
    TIMESTAMP_TOLERANCE,
)
from flwr.server.superlink.linkstate import LinkState
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.date import now
from flwr.supercore.primitives.asymmetric import bytes_to_public_key, public_key_to_bytes, verify_signature

LOOK = 1.0  # seconds between two looks at the folder

Told = Callable[[Mapping[str, int], str], None]


class RegisteredKeys:
    """Keeps a SuperLink's nodes as the keys in a folder are.

    Attributes
    ----------
    ids : dict of str to int
        The node of each name.
    """

    def __init__(self, state: LinkState, folder: Path) -> None:
        self.state, self.folder = state, folder
        self.ids: dict[str, int] = {}
        self._public: dict[str, bytes] = {}
        self._expelled: set[bytes] = set()  # Flower registers no key a second time

    def update(self) -> str:
        """Register what is new, delete what is gone, and say what that was; "": nothing.

        Raises
        ------
        ValueError
            When a file is no key, a key that was removed before, or the same as another; then nothing changes.
        """
        public = self._read()
        gone = sorted(name for name, key in self._public.items() if public.get(name) != key)
        new = sorted(name for name, key in public.items() if self._public.get(name) != key)
        again = [name for name in new if public[name] in self._expelled | {self._public[one] for one in gone}]
        if again:
            raise ValueError(f"{again[0]} has a key that was known before; make a new one, or start the server again")
        for name in gone:
            self._expelled.add(self._public[name])
            self.state.delete_node(NOOP_FLWR_AID, self.ids.pop(name))
        for name in new:
            self.ids[name] = int(self.state.create_node(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME, public[name], 0, name=name))
        self._public = public
        return "; ".join(
            f"{', '.join(names)} {what}"
            for names, what in ((gone, "may take part no more"), (new, "may take part"))
            if names
        )

    def have_signed(self, headers: Mapping[str, str]) -> bool:
        """Whether a call is signed, just now, with one of the keys: as Flower checks after it has read all of it."""
        try:
            public = b64decode(headers[FLEET_HTTP_PUBLIC_KEY_HEADER], validate=True)
            signature = b64decode(headers[FLEET_HTTP_SIGNATURE_HEADER], validate=True)
            said = headers[TIMESTAMP_HEADER]
            age = (now() - datetime.fromisoformat(said)).total_seconds()
            fresh = -SYSTEM_TIME_TOLERANCE < age < TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE
            known = public in self._public.values()
            return bool(fresh and known and verify_signature(bytes_to_public_key(public), said.encode(), signature))
        except (KeyError, TypeError, ValueError):
            return False

    def watch(self, told: Told) -> None:
        """Look at the folder for ever, in a thread; `told` gets the ids and a sentence whenever there is something new.

        What cannot be used is said once, and those who are registered stay.
        """

        def look() -> None:
            said, pause = "", threading.Event()
            while not pause.wait(LOOK):
                try:
                    said, what = "", self.update()
                except (OSError, ValueError) as error:
                    said, what = str(error), "" if str(error) == said else f"{error}; all keys stay as they were"
                if what:
                    told(self.ids, what)

        threading.Thread(target=look, daemon=True).start()

    def _read(self) -> dict[str, bytes]:
        public = {path.stem: _public_key(path) for path in sorted(self.folder.glob("*.pub"))}
        if not public:
            raise ValueError(
                f"there is no key in {self.folder}: a site is NAME.pub, made by ssh-keygen -t ecdsa -b 256"
            )
        twice = [name for name, key in public.items() if list(public.values()).count(key) > 1]
        if twice:
            raise ValueError(f"{' and '.join(twice)} in {self.folder} are the same key; a site is its key")
        return public


def _public_key(path: Path) -> bytes:
    try:
        key = load_ssh_public_key(path.read_bytes())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{path} is no public key in OpenSSH's form: {error}") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError(f"{path} must be a key for ECDSA: ssh-keygen -t ecdsa -b 256")
    return public_key_to_bytes(key)
