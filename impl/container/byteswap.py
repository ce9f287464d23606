"""Turns the bytes of tensors from one byte order to the other: the fields of more than one byte, and nothing else.

Source: the ``block_*`` structs in ggml/src/ggml-common.h. What is declared there as ``ggml_half``, ``float``, ``uint16_t`` or
``int16_t`` is swapped; what is declared in bytes is not. ggml also reads some of those bytes as wider words, in the order of its
machine: ``qh`` of Q5_0 and Q5_1, ``scales`` of IQ1_M, the signs of IQ3_XXS and (32 bits, from ``qs``) of IQ2_XXS. For these
types upstream has no converter and defines no big-endian form.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.arguments import BytesLike, raw_bytes
from impl.errors import InputError
from impl.types import TensorType, by_name

# Blocks swapped in one go, so that what is made of them stays small.
PIECE = 1 << 16


class Words(NamedTuple):
    """``number`` words of ``width`` bytes, one after the other, ``offset`` bytes into a block."""

    offset: int
    width: int
    number: int = 1


_D = (Words(0, 2),)
_TWO = (Words(0, 2, 2),)

WORDS: dict[str, tuple[Words, ...]] = {
    **dict.fromkeys(("F32", "I32"), (Words(0, 4),)),
    **dict.fromkeys(("F16", "BF16", "I16"), (Words(0, 2),)),
    **dict.fromkeys(("F64", "I64"), (Words(0, 8),)),
    **dict.fromkeys(("I8", "MXFP4", "NVFP4", "IQ1_M"), ()),
    **dict.fromkeys(("Q1_0", "Q2_0", "Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ2_S", "IQ3_XXS", "IQ3_S"), _D),
    **dict.fromkeys(("Q4_1", "Q5_1", "Q8_1", "Q4_K", "Q5_K"), _TWO),
    **dict.fromkeys(("IQ2_XXS", "IQ2_XS"), (Words(0, 2, 33),)),
    "IQ4_XS": _TWO,
    "IQ1_S": (Words(0, 2), Words(34, 2, 8)),
    "Q2_K": (Words(80, 2, 2),),
    "Q3_K": (Words(108, 2),),
    "Q6_K": (Words(208, 2),),
    "Q8_K": (Words(0, 4), Words(260, 2, 16)),
    "TQ1_0": (Words(52, 2),),
    "TQ2_0": (Words(64, 2),),
}


def byteswap(type: str, data: BytesLike) -> npt.NDArray[np.uint8]:  # noqa: A002 - ggml's word
    """Give whole blocks of ``data`` in the other byte order, as uint8 of one dimension; twice gives ``data`` again.

    Raises:
        InputError: ``data`` is no whole number of blocks.
        UnsupportedError: ggml has no such type.

    """
    kind = by_name(type)
    raw = raw_bytes(data, f"blocks of {kind.name}")
    if len(raw) % kind.nbytes:
        raise InputError(f"{len(raw)} bytes are no whole number of {kind.name} blocks, which take {kind.nbytes} bytes each")
    swapped = np.empty_like(raw)
    step = PIECE * kind.nbytes
    for start in range(0, len(raw), step):
        piece = raw[start : start + step].reshape(-1, kind.nbytes)
        swapped[start : start + step] = piece[:, _sources(kind)].reshape(-1)
    return swapped


@cache
def _sources(kind: TensorType) -> npt.NDArray[np.intp]:
    """Give, for each byte of a block, the number of the byte that comes to stand there."""
    order = np.arange(kind.nbytes)
    for offset, width, number in WORDS[kind.name]:
        end = offset + width * number
        order[offset:end] = order[offset:end].reshape(number, width)[:, ::-1].reshape(-1)
    return order
