"""Blocks that ggml refuses to load where it is told to check them: scales that are no finite number.

Source: ``ggml_validate_row_data``, ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from impl.arguments import BytesLike, raw_bytes
from impl.errors import InputError
from impl.scales import E8M0, F64, FIELDS, Mask, ScaleField, is_nan, magnitudes, of_blocks, scale_dtype, stored_bits
from impl.types import TensorType, by_name

# Blocks looked at in one go: what is made of them stays small, however large the data is.
PIECE = 1 << 18

# The one type with a layout for which ggml has no rule: it refuses every row of it, an empty one too.
NO_RULE = ("Q8_1",)


class BadBlock(NamedTuple):
    """The first block that is refused: its number, the scale that is to blame, and what it is, with its bits.

    ``field`` is empty where the type as such is refused.
    """

    block: int
    field: str
    problem: str


def validate(type: str, data: BytesLike) -> BadBlock | None:  # noqa: A002 - ggml's word
    """Give the first block of ``data`` that ``ggml_validate_row_data`` refuses, None where it accepts them all.

    Refused are: a float16, float32 or bfloat16 scale (or value, of F32, F16, BF16, F64) that is infinite or NaN; a float64 that
    is so as float32; an E8M0 scale of 255; anything of Q8_1, which ggml has no rule for. NVFP4 and integers are all accepted.

    Raises:
        InputError: ``data`` is no whole number of blocks. (ggml refuses that too.)
        UnsupportedError: ggml has no such type.

    """
    kind = by_name(type)
    if type in NO_RULE:
        return _no_rule(kind, 0)
    blocks = scale_records(kind, data)
    for start in range(0, len(blocks), PIECE):
        piece = blocks[start : start + PIECE]
        refused = refused_blocks(kind, piece)
        if refused.any():
            return bad_block(kind, piece, int(refused.argmax()), start)
    return None


def scale_records(kind: TensorType, data: BytesLike) -> npt.NDArray[Any]:
    """View bytes as records of ``impl.scales.scale_dtype``, one a block, without a copy where they lie in one piece.

    Raises:
        InputError: ``data`` is no whole number of blocks.

    """
    raw = raw_bytes(data, f"blocks of {kind.name}")
    if len(raw) % kind.nbytes:
        raise InputError(f"{len(raw)} bytes are no whole number of {kind.name} blocks, which take {kind.nbytes} bytes each")
    return raw.view(scale_dtype(kind))


def refused_blocks(kind: TensorType, blocks: npt.NDArray[Any]) -> Mask:
    """Tell which of ``blocks``, records of ``scale_dtype``, are refused."""
    refused = np.full(len(blocks), kind.name in NO_RULE)
    for field in FIELDS[kind.name]:
        if field.form.validated:
            refused |= of_blocks(magnitudes(field, blocks) >= field.form.infinite)
    return refused


def bad_block(kind: TensorType, blocks: npt.NDArray[Any], index: int, start: int) -> BadBlock:
    """Say what is wrong with block ``index`` of ``blocks``, one that is refused; ``start`` is the number of the first of them."""
    if kind.name in NO_RULE:
        return _no_rule(kind, start + index)
    block = blocks[index : index + 1]
    field = next(one for one in FIELDS[kind.name] if (magnitudes(one, block) >= one.form.infinite).any())
    return BadBlock(start + index, field.name, f"{field.name} is {_shown(field, block)}")


def _no_rule(kind: TensorType, block: int) -> BadBlock:
    return BadBlock(block, "", f"ggml has no rule for {kind.name} and refuses all of it")


def _shown(field: ScaleField, block: npt.NDArray[Any]) -> str:
    bits = int(stored_bits(field, block)[0, 0])
    nan = bool(is_nan(field, magnitudes(field, block)).any())
    if field.form is E8M0:
        return f"{bits}, the NaN of {field.form.name}"
    digits = 2 * stored_bits(field, block).dtype.itemsize
    form = "f32" if field.form is F64 else field.form.name
    sign = "-" if bits & ~field.form.magnitude else ""
    return f"{'NaN' if nan else sign + 'infinite'} (0x{bits:0{digits}x} as {form})"
