"""Families of raw block bytes, by vectorised numpy.

A family takes (draws, number of blocks, type) and gives uint8 of shape (blocks, bytes a block).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from conformance.ggml_types import BY_NAME
from conformance.judge.layouts import FIELDS, BlockField
from conformance.search.draws import Draws
from conformance.search.probe import Blocks

_HALVES = np.array(
    (
        *(0x0000, 0x8000, 0x0001, 0x8001, 0x0200, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3C01),
        *(0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFE00, 0xFFFF),
    ),
    dtype="<u2",
)
_SINGLES = np.array(
    (
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000),
        *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF),
    ),
    dtype="<u4",
)
# The scales that stand in a field of their own, by the names of judge/layouts.py. IQ1_M's is spread over the tops of four words.
_SCALE_FIELDS = ("d", "m", "dmin", "s", "e")
_ONE = {2: (0x00, 0x3C), 4: (0x00, 0x00, 0x80, 0x3F), 1: (0x38,)}
_E8M0_ONE = 127


def scale_fields(type_name: str) -> tuple[BlockField, ...]:
    """Give the fields of a block that hold scales and minimums, one float each (NVFP4: four of a byte)."""
    return tuple(field for field in FIELDS.get(type_name, ()) if field.name in _SCALE_FIELDS)


def make_blocks(family: str, type_name: str, n: int, cols: int, draws: Draws) -> Blocks:
    """Give blocks of the type, uint8 of shape (n, row bytes), ``cols`` elements a row."""
    kind = BY_NAME[type_name]
    blocks = BLOCK_FAMILIES[family](draws, n * cols // kind.block, type_name)
    return blocks.reshape(n, kind.row_bytes(cols))


def one(field: BlockField, type_name: str) -> tuple[int, ...]:
    """Give the bytes with which a scale field says 1 (f16, f32, UE4M3, or MXFP4's exponent), for one entry."""
    return (_E8M0_ONE,) if type_name == "MXFP4" else _ONE[field.width]


def _bytes(draws: Draws, n: int, type_name: str) -> Blocks:
    """Any bytes."""
    return draws.octets(n, BY_NAME[type_name].nbytes)


def _sane(draws: Draws, n: int, type_name: str) -> Blocks:
    """Any bytes, but scales of moderate size: f16 from 2^-7 to 2, so that no sum is lost to a NaN."""
    blocks = _bytes(draws, n, type_name)
    for field in scale_fields(type_name):
        top = blocks[:, field.offset + field.width - 1 : field.offset + field.nbytes : field.width]
        if field.width == 1:
            top[:] = (top & 7) + (_E8M0_ONE - 4 if type_name == "MXFP4" else 0x30)
        else:
            top[:] = top & 0x9F | 0x20 if field.width == 2 else top & 0x83 | 0x3C
    if type_name == "IQ1_M":
        blocks[:, 55] = blocks[:, 55] & 0x0F | 0x30
    return blocks


def _unit(draws: Draws, n: int, type_name: str) -> Blocks:
    """Any bytes, but scales of 1: what the packed scales of the sub-blocks say, comes out by itself."""
    blocks = _bytes(draws, n, type_name)
    _set_ones(blocks, type_name)
    return blocks


def _set_ones(blocks: Blocks, type_name: str) -> None:
    for field in scale_fields(type_name):
        for at, byte in enumerate(one(field, type_name)):
            blocks[:, field.offset + at : field.offset + field.nbytes : field.width] = byte
    if type_name == "IQ1_M":
        set_iq1_m_scale(blocks, np.full(len(blocks), 0x3C00, dtype="<u2"))


def set_iq1_m_scale(blocks: Blocks, scales: npt.NDArray[np.uint16]) -> None:
    """Write f16 bits into the tops of the four words at byte 48 of each block (ggml: ``iq1m_scale_t``), lowest nibble first."""
    for word in range(4):
        top = blocks[:, 49 + 2 * word]
        top[:] = top & 0x0F | ((scales >> np.uint16(4 * word) & np.uint16(15)) << np.uint16(4)).astype(np.uint8)


def _scales(draws: Draws, n: int, type_name: str) -> Blocks:
    """Each scale field in turn takes special values: both zeros, subnormals, 1, the greatest, infinity, NaN."""
    blocks = _sane(draws, n, type_name)
    fields = scale_fields(type_name)
    for turn, field in enumerate(fields):
        part = blocks[turn :: len(fields), field.offset : field.offset + field.nbytes]
        part[:] = _special_entries(field, len(part), turn)
    if type_name == "IQ1_M":
        set_iq1_m_scale(blocks, _HALVES[np.arange(n) % len(_HALVES)])
    return blocks


def _special_entries(field: BlockField, n: int, turn: int) -> Blocks:
    """Give ``n`` times the bytes of a scale field; where an entry is one byte, all values in turn."""
    count = field.nbytes // field.width
    if field.width == 1:
        return ((np.arange(n)[:, None] * 37 + np.arange(count) * 91 + turn) % 256).astype(np.uint8)
    table = _HALVES if field.width == 2 else _SINGLES
    return np.ascontiguousarray(table[np.arange(n) % len(table)]).view(np.uint8).reshape(n, field.nbytes)


def _same(draws: Draws, n: int, type_name: str) -> Blocks:
    """All bytes of a block equal; in every other block but for its scales, which are 1."""
    blocks = np.repeat(draws.octets(n, 1), BY_NAME[type_name].nbytes, axis=1)
    _set_ones(blocks[::2], type_name)
    return blocks


def _few(draws: Draws, n: int, type_name: str) -> Blocks:
    """About one bit of eight is set, or, in every fourth block, is not; in every other block the scales are 1."""
    blocks = _bytes(draws, n, type_name)
    blocks &= _bytes(draws, n, type_name)
    blocks &= _bytes(draws, n, type_name)
    blocks[3::4] ^= 255
    _set_ones(blocks[::2], type_name)
    return blocks


def _walking(draws: Draws, n: int, type_name: str) -> Blocks:
    """One bit is set (in every other block: is not), the next one in the next block, beside scales of 1."""
    size = BY_NAME[type_name].nbytes
    blocks = np.zeros((n, size), dtype=np.uint8)
    blocks[1::2] = 255
    _set_ones(blocks, type_name)
    number = np.arange(n)
    bit = (number // 2 + int(draws.below(8 * size, 1)[0])) % (8 * size)
    blocks[number, bit // 8] ^= np.left_shift(1, bit % 8).astype(np.uint8)
    return blocks


BLOCK_FAMILIES: dict[str, Callable[[Draws, int, str], Blocks]] = {
    "bytes": _bytes,
    "sane": _sane,
    "unit": _unit,
    "scales": _scales,
    "same": _same,
    "few": _few,
    "walking": _walking,
}
