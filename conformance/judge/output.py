"""A subject's output file, or what a golden answer keeps of one: all its bytes, or digests of small ranges."""

from __future__ import annotations

import base64
import hashlib
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

# Outputs up to this size are kept whole in golden files; longer ones by digests of ranges.
KEEP_BYTES = 2048
# A range is at least this many units, and there are at most MAX_RANGES ranges an output.
MIN_RANGE = 16
MAX_RANGES = 64

Bytes = npt.NDArray[np.uint8]
CANONICAL_NAN = np.uint32(0x7FC00000)


class Kept(msgspec.Struct, frozen=True, tag="bytes", tag_field="kind"):
    """An output's bytes, in base64."""

    base64: str


class Digests(msgspec.Struct, frozen=True, tag="digests", tag_field="kind"):
    """An output by ranges: ``unit`` bytes a block or value, ``range`` units a digest (BLAKE2b, 8 bytes, hex)."""

    nbytes: int
    unit: int
    range: int
    digests: list[str]


GoldenOutput = Kept | Digests
Unit = Literal["bytes", "floats"]


def canonical(data: Bytes, *, floats: bool) -> Bytes:
    """Give ``data`` with every NaN replaced by one bit pattern where it holds float32; otherwise as it is."""
    if not floats:
        return data
    bits = data.view(np.uint32)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    if not nan.any():
        return data
    bits = bits.copy()
    bits[nan] = CANONICAL_NAN
    return bits.view(np.uint8)


def condense(data: Bytes, unit: int, ranges: int = MAX_RANGES) -> GoldenOutput:
    """Give what a golden file keeps of an output whose units are ``unit`` bytes long; ``ranges`` digests at most."""
    if data.nbytes <= KEEP_BYTES:
        return Kept(base64.b64encode(data.tobytes()).decode("ascii"))
    units = -(-data.nbytes // unit)
    span = max(MIN_RANGE, -(-units // ranges))
    return Digests(data.nbytes, unit, span, _digests(data, span * unit))


def _digests(data: Bytes, step: int) -> list[str]:
    return [
        hashlib.blake2b(data[start : start + step].tobytes(), digest_size=8).hexdigest() for start in range(0, data.nbytes, step)
    ]


def kept_bytes(output: Kept) -> Bytes:
    """Give the bytes of a kept output."""
    return np.frombuffer(base64.b64decode(output.base64), dtype=np.uint8)


def differing_ranges(output: Digests, data: Bytes) -> list[tuple[int, int]]:
    """Give the ranges (first unit, end) whose digest differs from ``data``'s; sizes are equal."""
    found = _digests(data, output.range * output.unit)
    units = data.nbytes // output.unit
    return [
        (index * output.range, min((index + 1) * output.range, units))
        for index, (ours, theirs) in enumerate(zip(output.digests, found, strict=True))
        if ours != theirs
    ]
