"""A command that several ranks of an MPI job run: one of them speaks and writes, and all end together."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from coterie.cli.errors import BadInputError
from coterie.io import errors

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.by_ranks import Facts
    from coterie.estimators.offsets import Offset
    from coterie.io.formats import Table
    from coterie.io.rows import Columns
    from coterie.problem.convert import Measure


@contextmanager
def ranks(engine: str) -> Iterator[bool]:
    """Inside, all ranks do the same; given is whether this process is the one that speaks and writes.

    An error that only some ranks have, such as a file that one host lacks, ends them all.
    """
    if engine != "mpi":
        yield True
        return
    from coterie.engines.mpi.launch import missing

    if (reason := missing()) is not None:
        raise BadInputError(f"--engine mpi: {reason}")
    from coterie.engines.mpi.crew import RankFailed, crew

    all_ranks = crew()
    first = all_ranks.rank == 0
    if not first:  # to the end of the process
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        with all_ranks.ending_together():
            try:
                yield first
            except typer.Exit:  # all is done, and who writes may take longer than the others
                all_ranks.any(False)
                raise
    except RankFailed as error:
        raise _as_of_one_process(str(error), error.kind) from None


def _as_of_one_process(message: str, kind: str) -> Exception:
    """The error of a rank as one process has it, for the code that the command ends with."""
    known = getattr(errors, kind, getattr(builtins, kind, None))
    if not isinstance(known, type) or not issubclass(known, ValueError | OSError):
        return BadInputError(message)
    message = message.replace(f"{kind}: ", "", 1)
    return known(message) if issubclass(known, errors.DataError | OSError) else errors.DataError(message)


def refuse_other_options(engine: str, context: typer.Context) -> None:
    """Refuse ranks that were given other options: they would go different ways, and wait for each other there."""
    if engine != "mpi":
        return
    from coterie.engines.mpi.agreement import refuse_differences
    from coterie.engines.mpi.crew import crew

    options = {max(option.opts, key=len): str(option.name) for option in context.command.params}
    refuse_differences(crew(), {name: repr(context.params.get(key)) for name, key in options.items()})


def profile() -> list[str]:
    """Where the time of the ranks went; every rank must ask."""
    from coterie.engines.mpi.crew import crew

    all_ranks = crew()
    return all_ranks.profile.lines(all_ranks)


@contextmanager
def keeping(folder: Path | None, resume: bool) -> Iterator[Callable[[], bool]]:
    """Inside, solves are kept in a folder, if one is named; given is how to ask whether one went on from there."""
    if folder is None:
        if resume:
            raise BadInputError("--resume goes on from what --checkpoint holds: name that folder")
        yield lambda: False
        return
    from coterie.engines.mpi.checkpoint import keeping as kept

    with kept(folder, resume=resume) as checkpoints:
        yield lambda: checkpoints.resumed > 0


def check_files(engine: str, *tables: Table | None) -> None:
    """Refuse files that some rank cannot open, and name the rank; what none can open is refused later, as ever."""
    if engine != "mpi":
        return
    from coterie.engines.mpi.crew import RankFailed, crew
    from coterie.io.sources import data_files

    def look() -> None:
        for table in tables:
            for file in [] if table is None or table.comes_in else data_files(table):
                file.open("rb").close()

    all_ranks = crew()
    try:
        all_ranks.do(look, "read its files")
    except RankFailed as failed:
        if all_ranks.any(failed.__cause__ is None):
            raise


def why_whole(model: NetworkedModel, rows: Table, edges: Table | None, **others: object) -> str | None:
    """Why every rank has to hold the whole problem; None where each can read a share, and keep its own nodes.

    others : options that need the whole, by their names; those that are given are not None.
    """
    from coterie.estimators.cross_validation import ChoosesLam
    from coterie.io.ranks.pieces import can_be_shared

    given = [f"--{name.replace('_', '-')}" for name, value in others.items() if value]
    if given:
        return f"{given[0]} asks for it"
    if isinstance(model, ChoosesLam):
        if model.criterion != "cv":
            return f"--lam {model.criterion} asks for it"
        if model.refine_strength:
            return "--refine-strength asks for it"
    elif not model.lam > 0:
        return "--lam is 0"
    if edges is None or not (can_be_shared(rows) and can_be_shared(edges)):
        return "standard input, and files that are packed, cannot be read in shares"
    return None


def agreed(whole: str | None) -> str | None:
    """What `why_whole` says, which must be the same at all ranks: they go different ways from here."""
    from coterie.engines.mpi.agreement import refuse_differences
    from coterie.engines.mpi.crew import crew

    refuse_differences(crew(), {"set of options": whole})
    return whole


class RankTables(NamedTuple):
    """Tables that ranks read together, what their columns are, and what is made of these."""

    rows: Table
    edges: Table
    partition: Path | None
    columns: Columns
    measure: Measure
    offset: Offset | None
    one_hot: list[str]
    missing: str | None
    strength: dict[str, float]


def fit_by_ranks(
    model: NetworkedModel, tables: RankTables, say: Callable[[str], None], kept: tuple[Path | None, bool], unasked: bool
) -> Facts:
    """Fit a model of which every rank has its own nodes. `kept`: where checkpoints are, and whether to go on there."""
    from coterie.estimators.by_ranks import RankFit
    from coterie.io.formats import Table

    rows, edges, partition, columns, measure, offset, one_hot, missing, strength = tables
    parts = None if partition is None else Table(partition)
    with keeping(*kept) as is_resumed:
        facts = RankFit(model, rows, edges, columns, measure, parts, say, offset, one_hot, missing, strength).fit()
    if kept[1] and not is_resumed():
        say(f"{kept[0]} holds no checkpoint of this fit, which began anew")
    if unasked and not hasattr(model, "held_out_"):
        say("how good predictions are is found out with --baselines, for which every rank holds the whole problem")
    return facts


def refuse_partition(partition: Path | None, reason: str) -> None:
    """Nodes can be given ranks only where ranks read shares."""
    if partition is not None:
        raise BadInputError(f"--partition {partition}: every rank holds the whole problem here, as {reason}")
