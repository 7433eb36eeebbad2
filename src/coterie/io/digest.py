"""A fingerprint of data files, so that a model says what it was fitted on."""

from __future__ import annotations

import hashlib
from os import PathLike

from coterie.io.sources import data_files


def sha256_of(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of a file, or, where there are several, of their digests in the order of their names."""
    digests = []
    for file in data_files(path):
        with file.open("rb") as content:
            digests.append(hashlib.file_digest(content, "sha256"))
    if len(digests) == 1:
        return digests[0].hexdigest()
    return hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()
