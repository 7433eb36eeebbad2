"""The ranks of a job, which do the same at the same time: sums, waiting, and how they end together.

All decisions of a solve are made from numbers that are the same at every rank, to the last bit: those of all ranks are
gathered everywhere and added up in one order, so that it does not matter how an MPI adds.

Nobody waits in MPI itself, which spins: where ranks are more than cores, spinning keeps a core from the rank that is
waited for. A wait here looks a few times, then sleeps between looks, and gives up when a peer has long been silent.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn, TypeVar

import numpy as np

from coterie.engines.mpi.launch import all_ranks_must_start, patience, world
from coterie.engines.mpi.profile import Profile
from coterie.problem.arrays import Array

with all_ranks_must_start():
    from mpi4py import MPI

LOOKS, LOOKS_WHEN_CROWDED = 1_000, 50  # at a message that has not come, before sleeping between them
NAP = 1e-5  # seconds
LONGER = 100  # naps, after which they become longer
ALL_FAIL = 5.0  # seconds in which all ranks meet where an error is the same for all

Result = TypeVar("Result")


class RankFailed(RuntimeError):  # noqa: N818  the message says what failed
    """Some rank cannot go on; the message names it and says why, and `kind` is the name of its error, if any."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Crew:
    """All ranks; this one is number `rank` of `size`. A process has one: see `crew`."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size, self.profile = comm, comm.rank, comm.size, Profile()
        self.looks, self.patience = LOOKS_WHEN_CROWDED, patience()
        self.comm, self.alarm = self._copy(comm), self._copy(comm)  # nobody else's messages can come between
        beside = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.looks = LOOKS_WHEN_CROWDED if beside.size > _cores(beside) else LOOKS
        beside.Free()

    def _copy(self, comm: Any) -> Any:
        copy, request = comm.Idup()
        self.wait(request)
        return copy

    def wait(self, *requests: Any) -> None:
        """Wait until all is sent and received."""
        tries, began, pending = 0, time.perf_counter(), list(requests)
        while not MPI.Request.Testall(pending):
            tries += 1
            if tries < self.looks:
                continue
            time.sleep(NAP if tries < self.looks + LONGER else 10 * NAP)
            if time.perf_counter() - began > self.patience:
                self.end(f"a peer has been silent for {self.patience:g} seconds")
        self.profile.waited(time.perf_counter() - began)

    def every(self, numbers: Array) -> Array:
        """The numbers of all ranks, one row each."""
        here = np.ascontiguousarray(numbers)
        out = np.empty((self.size, *here.shape), dtype=here.dtype)
        self.wait(self.comm.Iallgather(here, out))
        return out

    def sums(self, *numbers: float) -> tuple[float, ...]:
        """Sums over the ranks, each rounded once, and the same everywhere."""
        if self.size == 1:
            return numbers
        return tuple(_sum(column) for column in self.every(np.array(numbers, dtype=np.float64)).T.tolist())

    def sum(self, number: float) -> float:
        return self.sums(number)[0]

    def most(self, number: float) -> float:
        """The largest of all ranks; nan where one is."""
        return float(self.every(np.array([number], dtype=np.float64)).max())

    def any(self, here: bool) -> bool:
        """Whether it is so at some rank."""
        return bool(self.every(np.array([here])).any())

    def added(self, values: Array) -> Array:
        """The sum over the ranks of an array of float64, the same everywhere; in any order."""
        out = np.empty_like(values)
        self.wait(self.comm.Ireduce(np.ascontiguousarray(values), out))
        return self.of_first(out)

    def of_first(self, values: Array) -> Array:
        """The array that rank 0 has, of the same shape, at every rank."""
        out = np.ascontiguousarray(values)
        self.wait(self.comm.Ibcast(out))
        return out

    def in_turn(self, rows: Array) -> Iterator[Array]:
        """The rows of every rank, one rank after the other: nobody holds those of all at once."""
        counts = self.every(np.array([len(rows)])).ravel()
        for rank, count in enumerate(counts.tolist()):
            if rank == self.rank:
                room = np.ascontiguousarray(rows)
            else:
                room = np.empty((count, *rows.shape[1:]), dtype=rows.dtype)
            self.wait(self.comm.Ibcast(room, root=rank))
            yield room

    def swapped(self, rows: Array, counts: Array) -> tuple[Array, Array]:
        """Send counts[q] rows to each rank q; return what all sent here, rank by rank, and how many each."""
        width, coming = math.prod(rows.shape[1:]), np.empty_like(counts)
        self.wait(self.comm.Ialltoall(counts, coming))
        out = np.empty((int(coming.sum()), *rows.shape[1:]), dtype=rows.dtype)
        self.wait(self.comm.Ialltoallv([np.ascontiguousarray(rows), counts * width], [out, coming * width]))
        return out, coming

    def for_first(self, count: int) -> Array:
        """What `swapped` takes for counts where all of so many rows go to rank 0."""
        counts = np.zeros(self.size, dtype=np.int64)
        counts[0] = count
        return counts

    def said(self, thing: Any) -> list[Any]:
        """What every rank says: anything that JSON can hold."""
        letters = np.frombuffer(json.dumps(thing).encode(), dtype=np.uint8).copy()
        return [json.loads(part.tobytes()) for part in self.in_turn(letters)]

    def clock(self, left: float, worked: float, pressed: bool) -> tuple[float, float, bool]:
        """One clock for all, and Ctrl-C of any. (Who has compiled longest has waited least: that clock is right.)"""
        all_left, all_worked, any_pressed = self.every(np.array([left, worked, float(pressed)])).T
        return float(all_left.max()), float(all_worked.max()), bool(any_pressed.any())

    def do(self, work: Callable[[], Result], what: str) -> Result:
        """Do some work at every rank; where it fails at one, all raise what that rank has to say."""
        error: Exception | None = None
        try:
            result = work()
        except Exception as reason:
            error = reason
        failed = np.flatnonzero(self.every(np.array([error is not None])))
        if not len(failed):
            return result
        first = int(failed[0])
        what, text = self.text(what, first), self.text(f"{type(error).__name__}: {error}", first)
        raise RankFailed(f"rank {first} of {self.size} cannot {what}: {text}", text.partition(":")[0]) from error

    def text(self, text: str, rank: int = 0) -> str:
        """What that rank says."""
        letters = np.frombuffer(text.encode(), dtype=np.uint8).copy()
        room = np.empty(int(self.every(np.array([len(letters)]))[rank, 0]), dtype=np.uint8)
        room[:] = letters[: len(room)] if self.rank == rank else 0
        self.wait(self.comm.Ibcast(room, root=rank))
        return room.tobytes().decode()

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """An error that all ranks have is raised; one that only some have ends the job, as the others wait for them."""
        try:
            yield
        except BaseException as error:
            meeting, began = self.alarm.Ibarrier(), time.monotonic()
            while not meeting.Test():
                time.sleep(10 * NAP)
                if time.monotonic() - began > ALL_FAIL:
                    self.end(f"{type(error).__name__}: {error}")
            raise

    def end(self, reason: str) -> NoReturn:
        """End all ranks, without asking."""
        print(f"coterie: rank {self.rank} of {self.size} ends the job: {reason}", file=sys.__stderr__, flush=True)
        self.comm.Abort(1)
        raise SystemExit(1)


@cache
def crew() -> Crew:
    """The ranks of the job that this process belongs to."""
    comm = world()
    with all_ranks_must_start():
        return Crew(comm)


def _cores(beside: Any) -> int:
    """How many cores the ranks on this host may use together."""
    mask = np.zeros(os.cpu_count() or 1, dtype=np.uint8)
    here = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(mask))
    mask[[core for core in here if core < len(mask)]] = 1
    beside.Allreduce(MPI.IN_PLACE, mask, MPI.MAX)
    return int(mask.sum())


def _sum(numbers: list[float]) -> float:
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # it is infinite, or no number
        return sum(numbers)
