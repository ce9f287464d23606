"""Numbers as cases write them: integer expressions, floats down to their bits, hex bytes. A parser of our own, no ``eval``.

Errors are ValueErrors of one or two lines: what is wrong, then what to write; the loader adds file and line.
"""

from __future__ import annotations

import re
import struct

import numpy as np

_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|[0-9]+|[-+*^()])")
_DECIMAL = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_DIGITS = {"f32": 8, "f64": 16}
# Bits of the words, by kind; nan is the quiet NaN with an empty payload.
_WORDS = {
    "f32": {"nan": 0x7FC00000, "-nan": 0xFFC00000, "inf": 0x7F800000, "-inf": 0xFF800000},
    "f64": {"nan": 0x7FF8 << 48, "-nan": 0xFFF8 << 48, "inf": 0x7FF0 << 48, "-inf": 0xFFF0 << 48},
}
# 2^4096 is far beyond any field; a larger power is a slip and would only eat memory.
_MAX_EXPONENT = 4096
_INTEGER_HINT = "write an integer: 7, 0x10, 2^63-1, -2^31, 3*2^10"
_FLOAT_HINT = "write a decimal, nan, inf, -inf, or the bits: 0x and 8 hex digits for f32, 16 for f64"


def parse_integer(value: object) -> int:
    """Give the integer that ``value`` (an int, or text such as ``2^63-1``) stands for.

    ``^`` is power and binds tighter than a sign before it; ``*`` comes next, then ``+`` and ``-``; parentheses group.
    Raises ValueError.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError(f"`{value}` is no integer\n{_INTEGER_HINT}")
    return _Parser(value).parse()


class _Parser:
    """Recursive descent: sum, product, sign, power, atom."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._next = 0

    def parse(self) -> int:
        result = self._sum()
        if self._next < len(self._tokens):
            raise self._error()
        return result

    def _split(self, text: str) -> list[str]:
        tokens, position = [], 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match:
                raise self._error()
            tokens.append(match[1])
            position = match.end()
        return tokens

    def _sum(self) -> int:
        result = self._product()
        while self._peek() in ("+", "-"):
            result = result + self._product() if self._take() == "+" else result - self._product()
        return result

    def _product(self) -> int:
        result = self._signed()
        while self._peek() == "*":
            self._take()
            result *= self._signed()
        return result

    def _signed(self) -> int:
        if self._peek() == "-":
            self._take()
            return -self._signed()
        return self._power()

    def _power(self) -> int:
        base = self._atom()
        if self._peek() != "^":
            return base
        self._take()
        exponent = self._power()
        if not 0 <= exponent <= _MAX_EXPONENT:
            raise ValueError(f"the exponent {exponent} in `{self._text}` is out of range\nit may be 0 to {_MAX_EXPONENT}")
        power: int = base**exponent
        return power

    def _atom(self) -> int:
        taken = self._take()
        if taken == "(":
            result = self._sum()
            if self._take() != ")":
                raise self._error()
            return result
        if not taken[:1].isdigit():
            raise self._error()
        return int(taken, 0 if taken[:2].lower() == "0x" else 10)

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _error(self) -> ValueError:
        return ValueError(f"`{self._text}` is no integer\n{_INTEGER_HINT}")


def parse_float(value: object) -> float:
    """Give the f64 nearest to a decimal (text or number), or one of ``nan``, ``inf``, ``-inf``. Raises ValueError."""
    bits = float_bits(value, "f64")
    result: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return result


def float_bits(value: object, kind: str) -> int:
    """Give the bits of ``value`` as ``kind`` (f32 or f64).

    Text with 0x is the bits themselves (8 or 16 digits). A decimal is read as f64, then rounded to f32; one that is too
    large for a finite f32 is refused. Raises ValueError.
    """
    if isinstance(value, str):
        text = value.strip()
        if text.lower().startswith("0x"):
            return _bits_of_hex(text, kind)
        if text in _WORDS[kind]:
            return _WORDS[kind][text]
        if not _DECIMAL.fullmatch(text):
            raise ValueError(f"`{value}` is no float\n{_FLOAT_HINT}")
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise ValueError(f"`{text}` is beyond the largest finite f64\nwrite inf, or a smaller number")
    if not isinstance(value, float | int) or isinstance(value, bool):
        raise ValueError(f"`{value}` is no float\n{_FLOAT_HINT}")
    return _bits_of_number(float(value), kind)


def _bits_of_hex(text: str, kind: str) -> int:
    if not re.fullmatch(r"0[xX][0-9a-fA-F]+", text) or len(text) - 2 != _DIGITS[kind]:
        raise ValueError(f"`{text}` is no bit pattern of {kind}\nwrite 0x and {_DIGITS[kind]} hex digits")
    return int(text, 16)


def _bits_of_number(number: float, kind: str) -> int:
    if number != number:  # noqa: PLR0124 - the test for NaN that needs no import
        return _WORDS[kind]["nan"]
    if kind == "f64":
        return int(np.float64(number).view(np.uint64))
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.float32(number)
    if np.isinf(rounded) and abs(number) != float("inf"):
        raise ValueError(f"`{number}` is beyond the largest finite f32\nwrite inf, or a number up to 3.4028235e38")
    return int(rounded.view(np.uint32))


def parse_hex(value: object) -> bytes:
    """Give the bytes of hex digits; blanks between bytes are free. Raises ValueError."""
    hint = "write two hex digits a byte: fffe, or ff fe"
    if not isinstance(value, str):
        raise ValueError(f"`{value}` is no hex text\n{hint}")
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise ValueError(f"`{value}` is no hex text\n{hint}") from None
