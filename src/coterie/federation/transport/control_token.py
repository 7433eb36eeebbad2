"""Who may start runs: whoever can read the server's state folder, and no other user of its machine.

Flower asks a plugin whether the bearer token of a call to its Control API is good, and its commands take theirs from
`credentials.yaml` in FLWR_HOME. So a new token goes into that file whenever a server starts. The Runtime API gives
tasks to whoever signs with a secret, which never leaves the processes that the server forks. Like `superlink.py` this
is for one version of Flower.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from flwr.cli.constant import ACCESS_TOKEN_STORE_KEY, AUTHN_TYPE_STORE_KEY, REFRESH_TOKEN_STORE_KEY
from flwr.common.constant import ACCESS_TOKEN_KEY, NOOP_ACCOUNT_NAME, NOOP_FLWR_AID, AuthnType
from flwr.supercore.auth.typing import AccountAuthCredentials, AccountAuthLoginDetails, AccountInfo
from flwr.supercore.credential_store.file_credential_store import FileCredentialStore
from flwr.superlink.auth_plugin import ControlAuthnPlugin

LENGTH = 32  # bytes

Metadata = Sequence[tuple[str, str | bytes]]


class ControlToken(ControlAuthnPlugin):  # type: ignore[misc]  # Flower has no types
    """One account with one token, which cannot be asked for."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(LENGTH)

    def write(self, home: Path, address: str) -> None:
        """Give the token to Flower's commands in this FLWR_HOME; the file is for its owner only."""
        store = FileCredentialStore(home / "credentials.yaml")
        store.set(AUTHN_TYPE_STORE_KEY % address, AuthnType.OIDC.encode())  # the kind that sends tokens as they are
        for key in (ACCESS_TOKEN_STORE_KEY, REFRESH_TOKEN_STORE_KEY):
            store.set(key % address, self.token.encode())

    def validate_tokens_in_metadata(self, metadata: Metadata) -> tuple[bool, AccountInfo | None]:
        given = dict(metadata).get(ACCESS_TOKEN_KEY, "")
        given = given if isinstance(given, bytes) else given.encode()
        if not secrets.compare_digest(given, self.token.encode()):
            return False, None
        return True, AccountInfo(flwr_aid=NOOP_FLWR_AID, account_name=NOOP_ACCOUNT_NAME)

    def get_login_details(self) -> AccountAuthLoginDetails | None:
        return None

    def get_auth_tokens(self, device_code: str) -> AccountAuthCredentials | None:
        return None

    def refresh_tokens(self, metadata: Metadata) -> tuple[Metadata | None, AccountInfo | None]:
        return None, None
