"""The one array type: NumPy, float64 unless a docstring says otherwise, with shapes in the docstrings."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
