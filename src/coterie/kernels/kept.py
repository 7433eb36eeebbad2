"""Compiled kernels on disk, each in a file of its own name. Importing this imports Numba."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile


class KeptKernels(IndexDataCacheFile):
    """What a function was compiled to, in a file for each signature and machine, named after both.

    Numba numbers these files, and keeps in an index which is which. Processes that compile at once, each for other
    types, take the same number, and from then on the index gives one of them the kernel of the other: it refuses its
    arguments, or reads them as what they are not. Here the name says what a file holds, and so does the file.
    """

    def save(self, key: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk: the next process compiles it anew
            self._save_data(self._name(key), (key, self._source_stamp, data))

    def load(self, key: Any) -> Any:
        try:
            known, stamp, data = self._load_data(self._name(key))
        except Exception:  # there is none, or not a whole one, or one that names what is gone: it is written anew
            return None
        return data if (known, stamp) == (key, self._source_stamp) else None

    def _name(self, key: Any) -> str:
        name = blake2b(repr((self._version, key)).encode(), digest_size=8).hexdigest()
        return self._index_name.removesuffix("nbi") + f"{name}.nbc"


def keep_by_name(dispatcher: Any) -> None:
    """Keep what a function is compiled to under names; what uses no folder stays as it is.

    Kernels are compiled into each other: what is kept is of no use once any of them has changed, and Numba's own stamp
    knows the file of the function alone.
    """
    cache: Any = getattr(dispatcher, "_cache", None)
    own = getattr(cache, "_cache_file", None)
    if isinstance(own, IndexDataCacheFile):
        stamp = own._source_stamp, _all_kernels()
        cache._cache_file = KeptKernels(own._cache_path, own._index_name.removesuffix(".nbi"), stamp)


@lru_cache
def _all_kernels() -> str:
    """A digest of what all kernels say."""
    digest = blake2b(digest_size=16)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
