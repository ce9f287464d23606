"""docs/numbers.md once more, one number at a time, in plain integers and fractions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction

MASK = 2**64 - 1


def splitmix64(seed: int) -> Iterator[int]:
    """The published algorithm, one output after the other."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def exact_bits(value: Fraction) -> int:
    """The bits of a value that float32 holds exactly; anything else is an error."""
    (bits,) = struct.unpack("<I", struct.pack("<f", float(value)))
    (back,) = struct.unpack("<f", struct.pack("<I", bits))
    if Fraction(back) != value:
        raise AssertionError(f"{value} is no float32")
    return int(bits)


def uniform(stream: Iterator[int]) -> int:
    return exact_bits(Fraction(next(stream) // 2**40, 2**23) - 1)


def normal(stream: Iterator[int]) -> int:
    total = 0
    for _ in range(3):
        draw = next(stream)
        total += sum(draw // 65536**field % 65536 for field in range(4))
    return exact_bits(Fraction(total - 393210, 65536))


def bits(stream: Iterator[int]) -> int:
    return next(stream) // 2**32


def finite(stream: Iterator[int]) -> int:
    pattern = next(stream) // 2**32
    sign, exponent, significand = pattern // 2**31, pattern // 2**23 % 256, pattern % 2**23
    return sign * 2**31 + (127 if exponent == 255 else exponent) * 2**23 + significand


def in_range(draw: int, low: int, high: int) -> int:
    return low + (draw % 2**32) * (high - low + 1) // 2**32


def wide(stream: Iterator[int], low: int, high: int) -> int:
    draw = next(stream)
    sign, significand = draw // 2**63, draw // 2**40 % 2**23
    return sign * 2**31 + (in_range(draw, low, high) + 127) * 2**23 + significand


class Uneven:
    """Numbers that share an exponent by sixteens; keeps count of where it is."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.given = self.exponent = 0

    def __call__(self, stream: Iterator[int]) -> int:
        draw = next(stream)
        if self.given % 16 == 0:
            self.exponent = in_range(draw, self.low, self.high) + 127
        self.given += 1
        return draw // 2**63 * 2**31 + self.exponent * 2**23 + draw // 2**40 % 2**23


def sparse(stream: Iterator[int], low: int, high: int) -> int:
    draw = next(stream)
    return wide(iter([draw]), low, high) if draw // 2**32 % 8 == 0 else draw // 2**63 * 2**31


def half(stream: Iterator[int], low: int, high: int) -> int:
    return exact_bits(in_range(next(stream), low, high) + Fraction(1, 2))


def stream_bytes(seed: int, count: int) -> bytes:
    stream = splitmix64(seed)
    raw = b""
    while len(raw) < count:
        raw += struct.pack("<Q", next(stream))
    return raw[:count]
