"""Writing past the caches: what is decoded goes to a buffer that stays in them, and from there to the result.

An ordinary store first reads the line of memory that it changes. Where a result is larger than the caches and the loop does little
else, that reading is a third of all traffic. A non-temporal store of whole lines does without it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # type: ignore[attr-defined]  # the llvmlite that numba itself works with
from numba.extending import intrinsic

from impl.blocks.codec import Blocks, Floats
from impl.blocks.kernel import kernel

# The fence that ends a row of such stores is x86's own.
AVAILABLE = platform.machine() in {"x86_64", "AMD64"}
# Elements decoded at a time: 512 KiB, which a second-level cache holds, and enough that a call's own cost does not show.
PIECE = 131072
_LINE = 16  # float32 numbers in a line of memory


@intrinsic
def _stream(_context: Any, to: Any, source: Any, lines: Any) -> Any:  # noqa: ARG001 - numba asks with the types of all arguments
    """Copy ``lines`` times 64 bytes from one address to another, which is a multiple of 64."""
    signature = types.void(types.uintp, types.uintp, types.intp)

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        line = ir.VectorType(ir.IntType(32), _LINE).as_pointer()
        to, at = (builder.inttoptr(address, line) for address in arguments[:2])
        once = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        with cgutils.for_range(builder, arguments[2]) as loop:
            value = builder.load(builder.gep(at, [loop.index]), align=4)
            builder.store(value, builder.gep(to, [loop.index]), align=64).set_metadata("nontemporal", once)
        insert: Any = cgutils.get_or_insert_function
        builder.call(insert(builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse.sfence"), [])
        return _target.get_dummy_value()

    return signature, generate


_past_caches: Callable[[np.uintp, np.uintp, int], None] = cast("Any", _stream)


@kernel
def copy_past_caches(source: Floats, out: Floats) -> None:
    """Copy numbers of shape (n,) to ``out``, of the same shape: whole lines past the caches, what is left of lines as ever."""
    before = min(len(out), -(out.ctypes.data // 4) % _LINE)
    lines = (len(out) - before) // _LINE
    for i in range(before):
        out[i] = source[i]
    _past_caches(np.uintp(out.ctypes.data + 4 * before), np.uintp(source.ctypes.data + 4 * before), lines)
    for i in range(before + _LINE * lines, len(out)):
        out[i] = source[i]


def dequantize_past_caches(dequantize: Callable[[Blocks, Floats], None], blocks: Blocks, out: Floats) -> None:
    """Do what ``dequantize`` does, records of shape (blocks,) to float32 of shape (blocks, block), piece by piece."""
    step = PIECE // out.shape[1]
    room = np.empty((step, out.shape[1]), np.float32)
    for start in range(0, len(blocks), step):
        piece = room[: len(blocks) - start]
        dequantize(blocks[start : start + step], piece)
        copy_past_caches(piece.reshape(-1), out[start : start + step].reshape(-1))
