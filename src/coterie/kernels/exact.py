"""Sums whose rounding errors are known: error-free transformations, and dot products in twice the precision.

A number is held as hi + lo, where hi is the sum as floating point gives it and lo gathers what rounding took off. The
compensated dot product of m terms (Ogita, Rump and Oishi) is within (m eps)² Σ|a_r b_r| of the truth.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from coterie.kernels.compiling import cached
from coterie.kernels.reference.exact import EPS, FAINT

__all__ = ["EPS", "FAINT", "add", "add_product", "fma", "part", "strict", "two_sum"]


def strict(function: Any) -> Any:
    """Compile with every operation exactly as written: nothing contracted, nothing reordered."""
    return cached(function, nogil=True, error_model="numpy")


def part(function: Any) -> Any:
    """Compile a strict function into every strict kernel that calls it."""
    return numba.njit(forceinline=True, nogil=True, error_model="numpy")(function)


def _fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


fma: Any = intrinsic(_fma)


@part
def two_sum(a, b):
    """a + b as s + error, exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@part
def add(hi, lo, a):
    """hi + lo + a."""
    hi, error = two_sum(hi, a)
    return hi, lo + error


@part
def add_product(hi, lo, a, b):
    """hi + lo + a·b."""
    product = a * b
    error = fma(a, b, -product)
    hi, rest = two_sum(hi, product)
    return hi, lo + (rest + error)
