"""Where each type keeps its floating-point scales, and what a stored scale is: zero, subnormal, infinite, NaN.

Source: the ``block_*`` structs in ggml/src/ggml-common.h; ``ggml_e8m0_to_fp32_half`` and ``ggml_ue4m3_to_fp32`` in
ggml/src/ggml-impl.h. The integer scales of sub-blocks are none of these: every value of theirs is ordinary.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from impl.types import TensorType

Bits = npt.NDArray[Any]
"""Unsigned integers: floats by their bits."""

Mask = npt.NDArray[np.bool_]


class Form(NamedTuple):
    """How a scale is stored. Magnitudes (bits without the sign) order like the floats; each bound is the first of its kind.

    ``validated``: ``ggml_validate_row_data`` looks at fields of this form.
    """

    name: str
    dtype: str
    magnitude: int
    normal: int
    infinite: int
    nan: int
    validated: bool = True


F16 = Form("f16", "<u2", 0x7FFF, 0x0400, 0x7C00, 0x7C01)
BF16 = Form("bf16", "<u2", 0x7FFF, 0x0080, 0x7F80, 0x7F81)
F32 = Form("f32", "<u4", 0x7FFFFFFF, 0x00800000, 0x7F800000, 0x7F800001)
# ggml narrows a float64 to float32 before it looks: what is finite but larger than float32 holds is refused as infinite.
F64 = Form("f64", "<f8", F32.magnitude, F32.normal, F32.infinite, F32.nan)
# A power of two, 2^(e - 127). There is no zero, no sign and no infinity.
E8M0 = Form("e8m0", "u1", 0xFF, 0, 0xFF, 0xFF)
# No infinity, and the sign is not read. ggml takes the NaN for 0 and validates nothing; other readers take it for NaN.
UE4M3 = Form("ue4m3", "u1", 0x7F, 0x08, 0x7F, 0x7F, validated=False)
# A float16 in the upper nibbles of four 16-bit words, the lowest nibble first.
IQ1_M = Form("f16", "(4,)<u2", F16.magnitude, F16.normal, F16.infinite, F16.nan)


class ScaleField(NamedTuple):
    """One scale of a block: its name in ggml's struct, where it starts in the block, how it is stored, how many there are."""

    name: str
    offset: int
    form: Form
    entries: int = 1


_D = (ScaleField("d", 0, F16),)
_D_M = (*_D, ScaleField("m", 2, F16))
_D_DMIN = (*_D, ScaleField("dmin", 2, F16))

FIELDS: dict[str, tuple[ScaleField, ...]] = {
    "F32": (ScaleField("value", 0, F32),),
    "F16": (ScaleField("value", 0, F16),),
    "BF16": (ScaleField("value", 0, BF16),),
    "F64": (ScaleField("value", 0, F64),),
    **dict.fromkeys(("Q1_0", "Q2_0", "Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS", "IQ1_S"), _D),
    **dict.fromkeys(("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"), _D),
    **dict.fromkeys(("Q4_1", "Q5_1"), _D_M),
    **dict.fromkeys(("Q4_K", "Q5_K"), _D_DMIN),
    "Q8_1": (*_D, ScaleField("s", 2, F16)),
    "Q2_K": (ScaleField("d", 80, F16), ScaleField("dmin", 82, F16)),
    "Q3_K": (ScaleField("d", 108, F16),),
    "Q6_K": (ScaleField("d", 208, F16),),
    "Q8_K": (ScaleField("d", 0, F32),),
    "IQ1_M": (ScaleField("scales", 48, IQ1_M),),
    "TQ1_0": (ScaleField("d", 52, F16),),
    "TQ2_0": (ScaleField("d", 64, F16),),
    "MXFP4": (ScaleField("e", 0, E8M0),),
    "NVFP4": (ScaleField("d", 0, UE4M3, 4),),
    **dict.fromkeys(("I8", "I16", "I32", "I64"), ()),
}


@cache
def scale_dtype(kind: TensorType) -> np.dtype[Any]:
    """Give a block of ``kind`` as a structured dtype that has only its scales."""
    fields = FIELDS[kind.name]
    formats = [f"({field.entries},){field.form.dtype}" if field.entries > 1 else field.form.dtype for field in fields]
    names, offsets = [field.name for field in fields], [field.offset for field in fields]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": kind.nbytes})


def magnitudes(field: ScaleField, blocks: Bits) -> Bits:
    """Give the magnitudes of a scale of ``blocks``, records of ``scale_dtype``, as integers of shape (blocks, entries)."""
    return np.asarray(stored_bits(field, blocks) & field.form.magnitude)


def stored_bits(field: ScaleField, blocks: Bits) -> Bits:
    """Give a scale of ``blocks``, records of ``scale_dtype``, by its bits, of shape (blocks, entries); of float64 as float32."""
    stored = blocks[field.name]
    if field.form is IQ1_M:
        stored = _packed(stored)
    elif field.form is F64:
        with np.errstate(over="ignore", invalid="ignore"):
            stored = stored.astype("<f4").view("<u4")
    return np.asarray(stored.reshape(len(blocks), field.entries))


def _packed(words: Bits) -> Bits:
    """Put the float16 together that IQ1_M spreads over its four words of shape (blocks, 4)."""
    joined: Bits = words[:, 0] >> 12 | words[:, 1] >> 8 & 0x00F0 | words[:, 2] >> 4 & 0x0F00 | words[:, 3] & 0xF000
    return joined


def is_zero(field: ScaleField, magnitude: Bits) -> Mask:
    """Tell which scales are zero; of E8M0 none can be."""
    return np.zeros(magnitude.shape, np.bool_) if field.form is E8M0 else np.asarray(magnitude == 0)


def is_subnormal(field: ScaleField, magnitude: Bits) -> Mask:
    """Tell which scales are subnormal, zero left out: stored with fewer bits the smaller they are (E8M0 loses none)."""
    return np.asarray((magnitude > 0) & (magnitude < field.form.normal))


def is_infinite(field: ScaleField, magnitude: Bits) -> Mask:
    """Tell which scales are infinite."""
    return np.asarray((magnitude >= field.form.infinite) & (magnitude < field.form.nan))


def is_nan(field: ScaleField, magnitude: Bits) -> Mask:
    """Tell which scales are NaN."""
    return np.asarray(magnitude >= field.form.nan)


def of_blocks(mask: Mask) -> Mask:
    """Tell of which blocks any scale is marked, from a mask of shape (blocks, entries)."""
    return mask[:, 0] if mask.shape[1] == 1 else np.asarray(mask.any(axis=1))
