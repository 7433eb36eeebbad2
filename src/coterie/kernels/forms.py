"""The forms that kernels have, and which of them is used here."""

from __future__ import annotations

from contextvars import ContextVar
from enum import IntEnum


class Form(IntEnum):
    """NumPy, there at once; compiled for any number of features; compiled for one, the fastest and the last to pay."""

    NUMPY = 0
    ANY_N = 1
    THIS_N = 2


chosen: ContextVar[Form | None] = ContextVar("form of the kernels", default=None)


def knows_n() -> bool:
    """Whether compiled kernels are those that know n: where nobody has chosen, they are."""
    form = chosen.get()
    return form is None or form is Form.THIS_N
