"""Codes of 4 bits, two a byte, and fifth bits, 32 a word. Shapes: codes (blocks, 32), packed (blocks, 16), words (blocks,)."""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes


def pack(codes: Bytes) -> Bytes:
    """Put element i in the low nibble of byte i and element i + 16 in the high one."""
    half = codes.shape[1] // 2
    packed: Bytes = codes[:, :half] | (codes[:, half:] << np.uint8(4))
    return packed


def unpack(packed: Bytes) -> Bytes:
    """Give the codes, 0 to 15, in element order."""
    half = packed.shape[1]
    codes = np.empty((len(packed), 2 * half), np.uint8)
    np.bitwise_and(packed, 15, out=codes[:, :half])
    np.right_shift(packed, 4, out=codes[:, half:])
    return codes


def pack_fifth_bits(codes: Bytes) -> Bytes:
    """Give bit 4 of each code: 4 bytes a block, element i in bit i."""
    return np.packbits(codes & 16 != 0, axis=1, bitorder="little")


def unpack_with_fifth_bits(packed: Bytes, high: Bytes) -> Bytes:
    """Give codes 0 to 31 from their nibbles and from the 4 bytes of fifth bits."""
    codes = unpack(packed)
    codes |= np.unpackbits(high, axis=1, bitorder="little") << 4
    return codes
