"""What ranks learn together of the columns that features are made of: levels, means and gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike

from coterie.engines.mpi.crew import Crew
from coterie.io.formats import Table
from coterie.io.preparation import Reader, texts_in
from coterie.io.ranks.pieces import in_step, pieces_of, shares
from coterie.io.ranks.rows import batches_of
from coterie.io.rows import Columns, Rows


class RankReader(Reader):
    """Every rank reads its share, and tells the others what it has found."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew

    def texts(self, path: str | PathLike[str], name: str) -> set[str]:
        table = Table.of(path)
        here = (texts_in(piece, name) for piece in pieces_of(shares(table, self.crew)))
        found = {text for texts in in_step(self.crew, here, table) for text in texts or ()}
        return {text for texts in self.crew.said(sorted(found)) for text in texts}

    def rows(self, path: str | PathLike[str], columns: Columns) -> Iterator[Rows]:
        table = Table.of(path)
        for batch in in_step(self.crew, batches_of(table, columns, self.crew), table):
            if batch is not None:
                yield batch.rows

    def added(self, numbers: Sequence[float]) -> Sequence[float]:
        return self.crew.sums(*map(float, numbers))
