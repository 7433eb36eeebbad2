"""Rows of an array that other ranks need, sent while this one works on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from coterie.engines.mpi.crew import Crew
from coterie.problem.arrays import Array

Rows = Sequence[tuple[int, NDArray[np.int64]]]  # for some ranks, which rows


class Exchange:
    """Sends some rows of arrays (·, n) of 8-byte numbers to other ranks, and puts theirs into others.

    Rows are listed in an order that both ends know. With `opposite`, signs change on the way.
    """

    def __init__(self, crew: Crew, n: int, send: Rows, receive: Rows, opposite: bool = False) -> None:
        self.crew, self.opposite = crew, opposite
        self.send, self.receive = _joined(send), _joined(receive)
        self.out, self.into = np.empty((len(self.send), n)), np.empty((len(self.receive), n))
        self.sends = list(zip([q for q, _ in send], _cut(self.out, send), strict=True))
        self.receives = list(zip([q for q, _ in receive], _cut(self.into, receive), strict=True))
        self.pending: list[MPI.Request] = []

    def start(self, x: Array) -> None:
        """Send the rows of x as they are now."""
        comm = self.crew.comm
        self.pending = [comm.Irecv(rows, q) for q, rows in self.receives]
        self.out[:] = x[self.send]
        self.pending += [comm.Isend(rows, q) for q, rows in self.sends]
        self.crew.profile.messages += len(self.sends)
        self.crew.profile.bytes += self.out.nbytes

    def finish(self, x: Array) -> None:
        """Wait for those of others, and put them into x; does nothing where nothing was started."""
        if not self.pending:
            return
        self.crew.wait(*self.pending)
        self.pending = []
        x[self.receive] = -self.into if self.opposite else self.into

    def __call__(self, x: Array) -> None:
        """Both at once."""
        self.start(x)
        self.finish(x)


def _joined(rows: Rows) -> NDArray[np.int64]:
    return np.concatenate([which for _, which in rows]) if rows else np.empty(0, dtype=np.int64)


def _cut(buffer: Array, rows: Rows) -> list[Array]:
    """The part of a buffer that belongs to each rank."""
    return np.split(buffer, np.cumsum([len(which) for _, which in rows])[:-1]) if rows else []
