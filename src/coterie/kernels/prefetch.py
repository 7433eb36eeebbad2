"""Asking for memory before it is needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from coterie.kernels import LINE

NUMBERS = LINE // 8  # in a cache line
MOST = 4  # lines of a node: where n is large, the machine notices by itself that more of them follow


def _prefetch_node(_context, register, xs, node):
    """Begin to load the 2n numbers of a node in xs (V, 2, n), which will be written to, and do not wait for them.

    To be called from the loop itself: inside a helper, Numba would count references to xs.
    """
    lines = -(-2 * len(register) // NUMBERS) if isinstance(register, types.BaseTuple) else MOST

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

    return types.void(register, xs, node), generate


prefetch_node: Any = intrinsic(_prefetch_node)
