"""What an exit code says, in one place: `coterie --help`, docs/cli.md and the tests read it from here."""

from __future__ import annotations

from enum import IntEnum

from coterie.io import errors


class ExitCode(IntEnum):
    """How a command ended; `sentence` says it to people."""

    sentence: str

    def __new__(cls, code: int, sentence: str) -> ExitCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    DONE = 0, "Success."
    FAILED = 1, "Something outside the data failed: an extra is not installed, a file cannot be written."
    USAGE = 2, "An option is missing, unknown, or has a value that it cannot take."
    NOT_CONVERGED = 3, "The gap asked for was not reached; the model is written, with the gap it has."
    BAD_DATA = 4, "The data cannot be used as they are, for a reason that has no code of its own."
    MISSING_COLUMN = 5, "A column is not there; the message lists those that are."
    COLUMN_TYPE = 6, "A column holds the wrong kind of thing, or another kind than in the files before."
    BAD_VALUE = 7, "A value cannot be used: missing, nan, infinite, or not a number."
    DUPLICATE = 8, "A node or an edge is given twice, and the two do not agree."
    UNKNOWN_NODE = 9, "A node of the data is not in the graph, or not in the model."
    BAD_LABEL = 10, "There are no labels at all, or some that the loss cannot use: a single class, or negative counts."
    EMPTY = 11, "There are no rows."
    UNREADABLE = 12, "A file is damaged, cut short, of an unknown kind, or not there."
    BAD_GRAPH = 13, "The edges make no graph: a node joined to itself, a weight that is not positive, a wrong table."
    BAD_MODEL = 14, "The folder holds no model that can be read, or one that this command cannot use."
    TOO_LARGE = (
        15,
        "The rows, or the network, would not fit in memory; the message says what is needed and what is there.",
    )
    CONDITIONAL = 16, "The gap asked for is reached under a condition that is not proven; the model is written."
    INTERRUPTED = 130, "Ctrl-C; `coterie fit` writes the best certified model so far if it has one."


CODES: dict[type[Exception], ExitCode] = {
    errors.DataError: ExitCode.BAD_DATA,
    errors.MissingColumnError: ExitCode.MISSING_COLUMN,
    errors.ColumnTypeError: ExitCode.COLUMN_TYPE,
    errors.BadValueError: ExitCode.BAD_VALUE,
    errors.DuplicateError: ExitCode.DUPLICATE,
    errors.UnknownNodeError: ExitCode.UNKNOWN_NODE,
    errors.BadLabelError: ExitCode.BAD_LABEL,
    errors.EmptyDataError: ExitCode.EMPTY,
    errors.UnreadableFileError: ExitCode.UNREADABLE,
    errors.BadGraphError: ExitCode.BAD_GRAPH,
    errors.ModelFileError: ExitCode.BAD_MODEL,
    errors.TooLargeError: ExitCode.TOO_LARGE,
}
"""The code of each error about data."""
