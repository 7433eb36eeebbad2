"""Asking for memory before it is needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from coterie.kernels import LINE

AHEAD = 32  # edges before its turn that the far end of an edge is asked for
NUMBERS = LINE // 8  # in a cache line
MOST = 4  # lines of a node: where n is large, the machine notices by itself that more of them follow


def _prefetch_node(_context, vector_buffer, values, node):
    """Begin to load numbers of a node from values, (V, n) or (V, 2, n), as many as the vector_buffer has (twice that).

    To be called from the loop itself: inside a helper, Numba would count references to the array.
    """
    lines = min(-(-(values.ndim - 1) * len(vector_buffer) // NUMBERS), MOST)

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[1])(context, builder, arguments[1])
        place = context.cast(builder, arguments[2], signature.args[2], types.intp)
        begin = builder.mul(place, builder.extract_value(array.strides, 0))
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = builder.bitcast(array.data, byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        for line in range(lines):
            address = builder.gep(data, [builder.add(begin, begin.type(line * LINE))], source_etype=ir.IntType(8))
            builder.call(ask, [address, number(1), number(3), number(1)])  # to write; to keep in all caches; data
        return context.get_dummy_value()

    return types.void(vector_buffer, values, node), generate


prefetch_node: Any = intrinsic(_prefetch_node)
