"""Bit patterns of floats as people read them: sign, exponent and significand apart, and the bits at odds marked."""

from __future__ import annotations

import math
import re
import struct
from typing import NamedTuple

from conformance.judge.divergence import FloatBits

# Hex digits of a pattern: bits of exponent and significand, struct format (IEEE 754 binary16, binary32, binary64).
_FORMATS = {4: (5, 10, ">e"), 8: (8, 23, ">f"), 16: (11, 52, ">d")}
_PATTERN = re.compile(r"0x([0-9a-fA-F]{4}|[0-9a-fA-F]{8}|[0-9a-fA-F]{16})")


_BYTE = re.compile(r"0x[0-9a-fA-F]{2}")


class BitLines(NamedTuple):
    """Two patterns one below the other, and carets below the bits that differ (all three of one layout)."""

    expected: str
    found: str
    marks: str


def is_pattern(text: str) -> bool:
    """Say whether ``text`` is the bit pattern of a float of 16, 32 or 64 bits: ``0x`` and all its digits."""
    return _PATTERN.fullmatch(text) is not None


def split_bits(pattern: str) -> str:
    """Give the sign, exponent and significand of a float's bit pattern: ``0 01111111 00000000000000000000000``.

    ``pattern`` has 4, 8 or 16 hex digits after ``0x``. Raises ValueError for anything else.
    """
    if not is_pattern(pattern):
        raise ValueError(f"not a float's bit pattern: {pattern!r}; wanted 0x and 4, 8 or 16 hex digits")
    exponent, significand, _ = _FORMATS[len(pattern) - 2]
    bits = f"{int(pattern, 16):0{1 + exponent + significand}b}"
    return f"{bits[0]} {bits[1 : 1 + exponent]} {bits[1 + exponent :]}"


def decimal(pattern: str) -> str:
    """Give the shortest decimal that reads back to the same bits; of a NaN whether it is quiet (its payload is there to see).

    Raises ValueError as split_bits does.
    """
    sign, _, significand = split_bits(pattern).split(" ")
    code = _FORMATS[len(pattern) - 2][2]
    raw = bytes.fromhex(pattern[2:])
    value: float = struct.unpack(code, raw)[0]
    if math.isnan(value):
        kind = "quiet" if significand[0] == "1" else "signalling"
        return f"{'-' if sign == '1' else ''}nan, {kind}"
    texts = (f"{value:.{digits}g}" for digits in range(1, 17))
    return next((text for text in texts if _packed(code, text) == raw), repr(value))


def _packed(code: str, text: str) -> bytes | None:
    """Give the bits of a decimal; None beyond the format, where few digits have rounded its largest numbers up to."""
    try:
        return struct.pack(code, float(text))
    except OverflowError:
        return None


def float_lines(bits: FloatBits) -> BitLines | None:
    """Lay the two patterns out one below the other; None where they are not patterns of one width."""
    if not (is_pattern(bits.expected) and is_pattern(bits.found) and len(bits.expected) == len(bits.found)):
        return None
    lines = _below_each_other(bits.expected, split_bits(bits.expected), bits.found, split_bits(bits.found))
    return BitLines(
        f"{lines.expected}  {decimal(bits.expected)}",
        f"{lines.found}  {decimal(bits.found)}",
        f"{lines.marks}  {distance(bits.ulps)}",
    )


def byte_lines(expected: str, found: str) -> BitLines | None:
    """Lay two bytes (``0x3e``) out one below the other, as their nibbles' bits; None where they are not both bytes."""
    if not (_BYTE.fullmatch(expected) and _BYTE.fullmatch(found)):
        return None
    bits = [f"{int(byte, 16):08b}" for byte in (expected, found)]
    lines = _below_each_other(expected, f"{bits[0][:4]} {bits[0][4:]}", found, f"{bits[1][:4]} {bits[1][4:]}")
    return lines._replace(marks=lines.marks.rstrip())


def _below_each_other(expected: str, expected_bits: str, found: str, found_bits: str) -> BitLines:
    carets = "".join(" " if one == other else "^" for one, other in zip(expected_bits, found_bits, strict=True))
    return BitLines(f"{expected}  {expected_bits}", f"{found}  {found_bits}", f"{' ' * len(expected)}  {carets}")


def distance(ulps: int | None) -> str:
    """Give a distance in units in the last place; None is the distance from or to a NaN."""
    if ulps is None:
        return "no distance: NaN"
    return f"{ulps:,} ulp" if ulps == 1 else f"{ulps:,} ulps"
