"""What rows in memory take, and what there is."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from coterie.io.errors import TooLargeError
from coterie.io.tables import count_rows

DUALS, WEIGHTS = 6, 10  # arrays of one number per coordinate of every edge, and of every node, that a solve holds
COPIES = 6  # of all numbers at the peak: the frame, the arrays, sorted, labelled, and by size (measured: 5.3)


def memory_needed(path: str | PathLike[str], n_features: int) -> int:
    """Return about how many bytes a fit takes that needs its rows in memory, as logistic regression does."""
    return COPIES * count_rows(path) * (n_features + 2) * 8


def moments_needed(n_nodes: int, n_features: int) -> int:
    """Return how many bytes the moments of so many nodes take: the running ones, a triangle each, and the result."""
    q = n_features + 1
    return n_nodes * 8 * (q * (q + 1) // 2 + 3 * q + q * q)


def memory_available() -> int:
    """Return how many bytes this process may still take, as far as the system says; all there are where it does not."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if hasattr(os, "sysconf") else []
    found += [1024 * kilobytes for kilobytes in _numbers("/proc/meminfo", "MemAvailable:")]
    control = "/sys/fs/cgroup"
    found += [
        most - used for most in _numbers(f"{control}/memory.max") for used in _numbers(f"{control}/memory.current")
    ]
    return max(min(found, default=1 << 62), 0)


def _numbers(file: str, after: str = "") -> list[int]:
    """The whole number that a file of the system holds, after this word; none where there is no such thing."""
    try:
        words = Path(file).read_text(encoding="ascii").split()
        return [int(words[words.index(after) + 1 if after else 0])]
    except (OSError, ValueError, IndexError):
        return []


def require_memory(needed: int, path: str | PathLike[str]) -> None:
    """Refuse rows that would not fit."""
    there = memory_available()
    if needed > there:
        raise TooLargeError(
            f"{path}: its rows have to be in memory for this, which takes about {in_words(needed)}, and "
            f"{in_words(there)} are available; take fewer rows or columns"
        )


def require_memory_for_moments(n_nodes: int, n_features: int) -> None:
    """Refuse moments that would not fit."""
    needed, there = moments_needed(n_nodes, n_features), memory_available()
    if needed > there:
        raise TooLargeError(
            f"the moments of {n_features} features at {n_nodes} nodes or more take at least {in_words(needed)}, and "
            f"{in_words(there)} are available; take fewer columns"
        )


def require_memory_to_solve(n_nodes: int, n_edges: int, n_features: int) -> None:
    """Refuse a network whose weights and duals alone would not fit."""
    needed, there = 8 * (n_features + 1) * (DUALS * n_edges + WEIGHTS * n_nodes), memory_available()
    if needed > there:
        raise TooLargeError(
            f"the weights and duals of {n_features} features at {n_nodes} nodes and {n_edges} edges take at least "
            f"{in_words(needed)}, and {in_words(there)} are available; take fewer columns or edges"
        )


def in_words(n_bytes: int) -> str:
    """Write a number of bytes as megabytes or gigabytes."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 5e7 else f"{max(n_bytes / 1e6, 0.1):.1f} MB"
