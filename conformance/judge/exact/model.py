"""What a type's model consists of, and the packings that block fields have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from conformance.judge.exact.real import Format

Block = Mapping[str, bytes]
"""A block's bytes by field, as ``conformance.judge.layouts`` cuts them."""

Operands = Callable[[Block, int], dict[str, int]]


class Model(NamedTuple):
    """One type. An element of a block is the float32 nearest to ``formula``.

    ``operands(block, i)`` gives what the formula needs for element ``i``, by name: integers, and for the names in ``scales``
    the bits of a stored number, to be read as the format says. It may give more, which ``explain`` shows too.
    """

    formula: str
    scales: Mapping[str, Format]
    operands: Operands


def word(data: bytes) -> int:
    """Give the unsigned little-endian integer that ``data`` holds."""
    return int.from_bytes(data, "little")


def words(data: bytes, i: int, width: int) -> int:
    """Give entry ``i`` of an array of unsigned little-endian integers of ``width`` bytes."""
    return word(data[width * i : width * (i + 1)])


def signed(byte: int) -> int:
    """Give the int8 that has these bits."""
    return byte - 256 if byte > 127 else byte


def packed(data: bytes, i: int, bits: int, run: int = 1) -> int:
    """Give entry ``i`` of an array packed to ``bits`` bits an entry (1, 2 or 4), lowest bits first.

    ``run`` bytes side by side hold ``run`` entries in their lowest bits, then the next ``run`` entries in the bits above: with
    4 bits and a run of 16, byte 0 holds entries 0 and 16. With a run of 1 neighbours share a byte.
    """
    layers = 8 // bits
    byte = data[i // (run * layers) * run + i % run]
    return byte >> bits * (i // run % layers) & ((1 << bits) - 1)
