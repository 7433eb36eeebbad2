"""What can be wrong with files. Each message is one line that names the file and what to correct."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used as they are."""


class MissingColumnError(DataError):
    """A column that is not there; the message lists those that are."""


class ColumnTypeError(DataError):
    """A column that holds the wrong kind of thing, or another kind than in the files before."""


class BadValueError(DataError):
    """A single value that cannot be used; the message names its column and row."""


class EmptyDataError(DataError):
    """No rows at all."""


class UnreadableFileError(DataError):
    """A file that is damaged, or of a kind that is not read here."""


class DuplicateError(DataError):
    """A node or an edge that is given twice, in different ways."""


class UnknownNodeError(DataError):
    """A node of the data that is not in the graph."""


class BadLabelError(DataError):
    """No labels at all, or labels that the loss cannot use."""


class BadGraphError(DataError):
    """Edges that make no graph."""


class TooLargeError(DataError):
    """Rows that do not fit in memory."""


class ModelFileError(DataError):
    """A folder does not hold a model that can be read; the message says why."""
