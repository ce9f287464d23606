"""Numbers without their types: one form for each number, whatever type it had in the file."""

from __future__ import annotations

import math
import re
import struct

NUMBER = "number"
INTEGERS = frozenset({"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"})
NUMBERS = frozenset({*INTEGERS, "f32", "f64", NUMBER})

_INTEGER = re.compile(r"-?[0-9]+")
_PATTERN = re.compile(r"0x([0-9a-f]{8}|[0-9a-f]{16})")


def plain_number(text: str, *, rounded: bool = False) -> str:
    """Give the number that ``text``, a number in the protocol's form, stands for.

    An integer is decimal, of whichever type it was; other numbers are the shortest decimals that give the double; ``-0.0``,
    ``inf``, ``-inf`` and ``nan`` (all NaN are one) stand for themselves. ``rounded`` takes integers through a double first.
    The form alone says which it is: where a side leaves out the type of an array's elements, the other's may not be its own.
    """
    if pattern := _PATTERN.fullmatch(text):
        raw = bytes.fromhex(pattern[1])
        return _plain_float(struct.unpack(">f" if len(raw) == 4 else ">d", raw)[0])
    return str(int(float(text))) if rounded and _INTEGER.fullmatch(text) else text


def _plain_float(number: float) -> str:
    if number.is_integer() and (number or math.copysign(1, number) > 0):
        return str(int(number))
    return repr(number)
