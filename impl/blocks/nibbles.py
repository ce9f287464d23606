"""Codes of 4 or 5 bits, 32 a block: two nibbles a byte, element i below element i + 16, and fifth bits, 32 a word.

Shapes: codes uint8 (blocks, 32), raw uint8 (blocks, bytes a block); ``at`` is the byte where the nibbles start, or the word.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.kernel import inner, kernel
from impl.blocks.rounding import truncated


@kernel
def encode(x: Floats, base: Floats, inverse: Floats, half: np.float32, top: np.int32) -> Bytes:
    """Give ``(x - base) * inverse + half`` without its fraction, at most ``top``; ``base`` and ``inverse`` are one a block.

    The low 8 bits are kept and compared as signed, as ``MIN`` does in ggml.
    """
    codes = np.empty(x.shape, np.uint8)
    cols = x.shape[1]
    for i in range(len(x)):
        least, factor = base[i], inverse[i]
        for j in range(cols):
            code = np.int32(truncated((x[i, j] - least) * factor + half))
            codes[i, j] = np.uint8(code if code < top else top)
    return codes


@kernel
def pack(codes: Bytes, raw: Bytes, at: int) -> None:
    """Store 4 bits of each code, the high bits of the lower one of two where there are any."""
    half = codes.shape[1] // 2
    for i in range(len(codes)):
        row = raw[i, at:]
        for j in range(half):
            row[j] = np.uint8(codes[i, j] | codes[i, half + j] << 4)


@kernel
def pack_with_fifth_bits(codes: Bytes, raw: Bytes, at: int) -> None:
    """Store bit 4 of each code in a word, element i in bit i, and the lower four as nibbles behind it."""
    half = codes.shape[1] // 2
    for i in range(len(codes)):
        word, row = np.int32(0), raw[i, at + 4 :]
        for j in range(half):
            low, high = np.int32(codes[i, j]), np.int32(codes[i, half + j])
            row[j] = np.uint8(low & 15 | (high & 15) << 4)
            word |= np.int32((low >> 4 & 1) << np.int32(j)) | np.int32((high >> 4 & 1) << np.int32(half + j))
        for byte in range(4):
            raw[i, at + byte] = np.uint8(word >> 8 * byte & 255)


@inner
def fifth_bits(raw: Bytes, i: int, at: int) -> np.uint32:
    """Give the word of block ``i``."""
    return np.uint32(raw[i, at] | raw[i, at + 1] << 8 | raw[i, at + 2] << 16 | raw[i, at + 3] << 24)


@kernel
def unpack(raw: Bytes, at: int) -> Bytes:
    """Give the codes, 0 to 15."""
    codes = np.empty((len(raw), 32), np.uint8)
    for i in range(len(raw)):
        row = raw[i, at:]
        for j in range(len(row)):
            codes[i, j] = row[j] & 15
            codes[i, 16 + j] = row[j] >> 4
    return codes


@kernel
def unpack_with_fifth_bits(raw: Bytes, at: int) -> Bytes:
    """Give the codes, 0 to 31."""
    codes = unpack(raw, at + 4)
    for i in range(len(raw)):
        word = fifth_bits(raw, i, at)
        for j in range(codes.shape[1]):
            codes[i, j] |= np.uint8((word >> np.uint32(j) & 1) << 4)
    return codes
