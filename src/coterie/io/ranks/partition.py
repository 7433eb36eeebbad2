"""Which rank each node belongs to: by a file, by METIS where one rank can hold the edges, else by passing on labels."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.assignment import best, work_of
from coterie.engines.mpi.part import Integers, OwnPart, Share
from coterie.io.errors import BadValueError, DuplicateError, UnknownNodeError
from coterie.io.formats import Table
from coterie.io.memory import memory_available
from coterie.io.ranks.directory import Directory, sent_rows
from coterie.io.ranks.network import Edges
from coterie.io.ranks.pieces import Shares, in_step, pieces_of, shares
from coterie.io.sources import cell, import_polars, sources
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.penalties import TotalVariation

if TYPE_CHECKING:
    import polars as pl

METIS_BYTES = 200  # an edge, at most, while METIS works
ROUNDS = 100  # of passing on labels
SLACK = 1.1  # times equal work: what a part may have
STAYS = 0.2  # the part of the nodes that keeps its label in a round, so that neighbours do not swap


def assign(directory: Directory, edges: Edges, n: int) -> None:
    """Set the owner of every node, with equal work for all ranks and few edges between them."""
    crew = directory.crew
    if crew.size == 1:
        return
    count = round(crew.sum(len(edges.pairs)))
    fits = find_spec("pymetis") is not None and METIS_BYTES * count <= memory_available() // 2
    if crew.of_first(np.array([fits]))[0]:
        directory.owner = _by_one_rank(directory, edges, n)
    else:
        directory.owner = by_labels(directory, edges, n)


def _by_one_rank(directory: Directory, edges: Edges, n: int) -> Integers:
    """Rank 0 is told all edges, and no rows, and has METIS cut them."""
    crew, pairs = directory.crew, edges.pairs
    pairs, _ = crew.swapped(pairs.astype(np.int32), crew.for_first(len(pairs)))
    owner, counts = np.empty(0, dtype=np.int64), np.zeros(crew.size, dtype=np.int64)
    if crew.rank == 0:
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        graph = EmpiricalGraph(directory.n_nodes, pairs[order].astype(np.int64), np.ones(len(pairs)))
        del pairs, order
        owner = best(graph, work_of(graph.degrees, n), crew.size).astype(np.int64)
        counts = np.diff(directory.firsts)
    return crew.swapped(owner, counts)[0]


def by_labels(directory: Directory, edges: Edges, n: int) -> Integers:
    """Nodes take the label that most neighbours have, where its part has room, again and again.

    Every rank does so for the nodes whose home it is; what a part may have is agreed on by all.
    """
    crew = directory.crew
    part = _at_home(directory, edges)
    own, P = slice(part.own), crew.size
    cost = work_of(part.problem.graph.degrees[own], n)
    label = part.told(np.random.default_rng(crew.rank).integers(P, size=part.problem.graph.n_nodes).astype(float))
    room = SLACK * crew.sum(float(cost.sum())) / P
    rng = np.random.default_rng(crew.rank)
    for _ in range(ROUNDS):
        here = label.astype(np.int64)
        load = crew.every(np.bincount(here[own], cost, minlength=P)).sum(axis=0)
        wish = _wishes(part, here, np.maximum(1 - load / room, 0.0))
        moves = (wish != here[own]) & (rng.random(part.own) > STAYS)
        wanted = crew.every(np.bincount(wish[moves], cost[moves], minlength=P)).sum(axis=0)
        chance = np.clip((room - load) / np.maximum(wanted, 1e-300), 0.0, 1.0)
        moves &= rng.random(part.own) < chance[wish]
        label[own][moves] = wish[moves]
        label = part.told(label)
        if not crew.any(bool(moves.any())):
            break
    owner = np.empty(part.own, dtype=np.int64)
    owner[part.nodes[own] - directory.first] = label[own].astype(np.int64)
    return owner


def _wishes(part: OwnPart, label: Integers, room: Array) -> Integers:
    """The label that each own node would have: that of most neighbours, with a bonus for parts that have room.

    Beside its own label and those of neighbours, only that of the most room can win: no node is asked about every part.
    """
    (i, j), P, own = part.problem.graph.edges.T, len(room), np.arange(part.own)
    key, count = np.unique(np.concatenate([i * P + label[j], j * P + label[i]]), return_counts=True)
    count = count[key < part.own * P]
    node, near = np.divmod(key[: len(count)], P)
    degree = np.bincount(node, count, minlength=part.own)
    stays = 1e-9 * (near == label[node])
    nodes = np.concatenate([own, own, node])
    labels = np.concatenate([label[: part.own], np.full(part.own, room.argmax()), near])
    score = np.concatenate(
        [1e-9 + room[label[: part.own]], np.full(part.own, room.max()), count / degree[node] + room[near] + stays]
    )
    order = np.lexsort((-score, nodes))
    return labels[order[np.searchsorted(nodes[order], own)]]


def _at_home(directory: Directory, edges: Edges) -> OwnPart:
    """The nodes whose home is here, with their edges, as a part."""
    crew, home = directory.crew, directory.home_of(edges.pairs)
    far = home[:, 1] != crew.rank
    pairs = np.concatenate([edges.pairs, sent_rows(crew, home[far, 1], edges.pairs[far])[0]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    ends = np.unique(pairs)
    ends = ends[directory.home_of(ends) != crew.rank]
    own = directory.first + np.arange(len(directory.names))
    share = Share(own, pairs, np.ones(len(pairs)), np.arange(len(pairs)), ends, directory.home_of(ends))

    def nothing_known(nodes: Integers, own: int, graph: EmpiricalGraph) -> BoundProblem:
        return BoundProblem(graph, np.empty(0, dtype=np.int64), None, 1, TotalVariation(), 1.0)  # type: ignore[arg-type]

    return OwnPart.joined(crew, share, 1, nothing_known)


def read_partition(table: Table, directory: Directory) -> None:
    """Set the owner of every node as a table of nodes and ranks says."""
    crew, pl = directory.crew, import_polars()
    given = directory.owner
    given[:] = -1
    for frame in in_step(crew, _frames(shares(table, crew), table, crew.size), table):
        ids = pl.Series("id", [], dtype=pl.String) if frame is None else frame["node"]
        parts = np.empty(0, dtype=np.int64) if frame is None else frame["part"].to_numpy()
        numbers, _ = directory.numbers_of(ids)
        crew.do(lambda ids=ids, numbers=numbers: _refuse_unknown(table, ids, numbers), f"use {table}")  # type: ignore[misc]
        numbers, parts = sent_rows(crew, directory.home_of(numbers), numbers, parts)
        at = numbers - directory.first
        crew.do(lambda at=at: _refuse_twice(table, at, directory), f"use {table}")  # type: ignore[misc]
        given[at] = parts
    crew.do(lambda: _refuse_gaps(table, directory), f"use {table}")


def _frames(here: Shares, table: Table, ranks: int) -> Iterator[pl.DataFrame]:
    """Nodes, as text, and their ranks; the first two columns."""
    pl = import_polars()
    node, part = list(sources(table)[0].schema)[:2] if len(sources(table)[0].schema) > 1 else ("node", "part")
    for piece in pieces_of(here):
        piece.require([node, part])
        with piece.reading():
            text: Any = {node: pl.String, part: pl.String}
            frame = piece.scan(text).select(node, part).cast(text).collect()
        numbers = frame.select(pl.col(part).str.strip_chars().cast(pl.Int64, strict=False)).to_series()
        wrong = (numbers.fill_null(-1) < 0) | (numbers.fill_null(-1) >= ranks)
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            where = cell(piece.file, part, piece.rows_before() + row + 1)
            raise BadValueError(
                f"{where} (node {frame[node][row]!r}): {frame[part][row]!r} is none of the {ranks} ranks, "
                f"0 to {ranks - 1}"
            )
        yield pl.DataFrame({"node": frame[node], "part": numbers})


def _refuse_unknown(table: Table, ids: pl.Series, numbers: Integers) -> None:
    if (numbers < 0).any():
        name = ids[int((numbers < 0).argmax())]
        raise UnknownNodeError(f"{table}: {name!r} is not a node of the graph")


def _refuse_twice(table: Table, at: NDArray[np.int64], directory: Directory) -> None:
    different, counts = np.unique(at, return_counts=True)
    again = np.concatenate([different[counts > 1], at[directory.owner[at] >= 0]])
    if len(again):
        raise DuplicateError(f"{table}: node {directory.names[int(again[0])]!r} stands there twice; keep one row")


def _refuse_gaps(table: Table, directory: Directory) -> None:
    lacks: Array = np.flatnonzero(directory.owner < 0)
    if len(lacks):
        name = directory.names[int(lacks[0])]
        raise UnknownNodeError(f"{table}: node {name!r} of the graph is not there; give every node a rank")
