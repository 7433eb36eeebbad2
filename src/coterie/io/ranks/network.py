"""A network whose edges ranks read together, and of which each keeps its own nodes and their edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.part import Integers, Share
from coterie.io.edges import check_edges, columns_of_edges
from coterie.io.errors import DuplicateError
from coterie.io.formats import Table
from coterie.io.ranks.directory import Directory, sent_rows
from coterie.io.ranks.medians import median
from coterie.io.ranks.pieces import Piece, RowRange, Shares, in_step, pieces_of, shares
from coterie.io.sources import cell, import_polars
from coterie.problem.arrays import Array
from coterie.problem.convert import Measure, weights_from_distances

if TYPE_CHECKING:
    import polars as pl

FIRST, SECOND, WEIGHT = "first", "second", "weight"  # columns of our own


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges i < j that are at home here, where their smaller node is, each once, in order."""

    pairs: Integers
    weights: Array


@dataclass(frozen=True, eq=False)
class RankNetwork:
    """What a rank has of a network.

    Attributes
    ----------
    directory : Directory
    share : Share
    names : polars.Series
        The ids of own nodes, text, in the order of `share.own`.
    n_edges : int
        Of the whole network.
    """

    directory: Directory
    share: Share
    names: pl.Series
    n_edges: int

    @property
    def n_nodes(self) -> int:
        return self.directory.n_nodes

    @classmethod
    def joined(cls, directory: Directory, edges: Edges) -> RankNetwork:
        """Send nodes and edges from their homes to whom they belong to, which `directory.owner` says."""
        crew, V = directory.crew, directory.n_nodes
        own, names = directory.own()
        owners = directory.owners_of(edges.pairs)
        twice = owners[:, 0] != owners[:, 1]
        rows = np.concatenate([np.arange(len(twice)), np.flatnonzero(twice)])
        to = np.concatenate([owners[:, 0], owners[twice, 1]])
        pairs, weights, owners = sent_rows(crew, to, edges.pairs[rows], edges.weights[rows], owners[rows])
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        pairs, weights, owners = pairs[order], weights[order], owners[order]
        elsewhere = owners != crew.rank
        far, first = np.unique(pairs[elsewhere], return_index=True)
        share = Share(own, pairs, weights, pairs @ np.array([V, 1]), far, owners[elsewhere][first])
        return cls(directory, share, names, round(crew.sum(len(edges.pairs))))


def read_edges(table: Table, measure: Measure, text_ids: bool, crew: Crew) -> tuple[Directory, Edges]:
    """Read a table of edges together; its nodes are numbered, and every edge is at the home of its smaller node."""
    named = crew.do(lambda: columns_of_edges(table, measure, text_ids), f"read {table}")
    pl = import_polars()
    parts = [
        frame
        for frame in in_step(crew, _frames(shares(table, crew), table, measure, named, text_ids), table)
        if frame is not None
    ]
    empty = pl.DataFrame(schema={FIRST: pl.String, SECOND: pl.String, WEIGHT: pl.Float64})
    edges = pl.concat([empty, *parts])
    del parts
    ids = pl.concat([edges[FIRST], edges[SECOND].alias(FIRST)]).unique()
    directory = Directory(crew, ids)
    numbers, _ = directory.numbers_of(ids)
    known = pl.DataFrame({"id": ids, "number": numbers})
    ends = [
        edges.select(pl.col(end).alias("id")).join(known, on="id", how="left", maintain_order="left")
        for end in (FIRST, SECOND)
    ]
    pairs, weights = (
        np.sort(np.column_stack([end["number"].to_numpy() for end in ends]), axis=1),
        edges[WEIGHT].to_numpy(),
    )
    typical = _typical_distance(crew, weights) if measure.distance is not None else None
    pairs, weights = sent_rows(crew, directory.home_of(pairs[:, 0]), pairs, weights)
    word = "weights" if typical is None else "distances"
    found = crew.do(lambda: _each_once(pairs, weights, directory, table, word), f"use the edges of {table}")
    if typical is not None:
        found = replace(found, weights=weights_from_distances(found.weights, typical))
    return directory, found


def _typical_distance(crew: Crew, d: Array) -> float:
    """As `typical_distance`, of the distances of all ranks."""
    return median(crew, d[d > 0]) if crew.any(bool((d > 0).any())) else 1.0


def _frames(
    here: Shares, table: Table, measure: Measure, named: tuple[str, str, str | None], text_ids: bool
) -> Iterator[pl.DataFrame]:
    """The edges of this rank's share, checked: two ends, as text, and a weight."""
    pl, (i, j, weight) = import_polars(), named
    for piece in pieces_of(here):
        columns = [i, j] if weight is None else [i, j, weight]
        piece.require(columns)
        piece.check_lengths()
        with piece.reading():
            ids = dict.fromkeys((i, j), pl.String if text_ids else pl.Int64)
            frame = piece.scan(ids).select(columns).cast(ids).cast(dict.fromkeys((i, j), pl.String)).collect()

        def place(path: str | PathLike[str], row: int, name: str, piece: RowRange | Piece = piece) -> str:
            return cell(piece.file, name, piece.rows_before() + row + 1)

        check_edges(table, frame, i, j, weight, measure, place)
        value = pl.lit(1.0) if weight is None else pl.col(weight).cast(pl.Float64)
        yield frame.select(pl.col(i).alias(FIRST), pl.col(j).alias(SECOND), value.alias(WEIGHT))


def _each_once(pairs: Integers, weights: Array, directory: Directory, table: Table, word: str) -> Edges:
    """Edges in order; one that is listed twice must have the same weight, or distance, both times."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, weights = pairs[order], weights[order]
    again = np.flatnonzero((pairs[1:] == pairs[:-1]).all(axis=1)) + 1
    clash = again[weights[again] != weights[again - 1]]
    if clash.size:
        k = int(clash[0])
        name = directory.names[int(pairs[k, 0]) - directory.first]
        raise DuplicateError(
            f"{table}: an edge of node {name!r} is given twice, with {word} {weights[k - 1]} and {weights[k]}; "
            "keep one or add them up"
        )
    keep = np.ones(len(pairs), dtype=bool)
    keep[again] = False
    return Edges(pairs[keep], weights[keep])
