"""What strings hold, looked at where a profile demands UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

from impl.container.cursor import show
from impl.container.rules import Pair
from impl.container.values import BOOL, Nested, Number, Numbers, String, Strings, Value
from impl.errors import GgufError

# Elements of an array of strings that are decoded in one go, so that what is made of them stays small.
_PIECE = 4096


def is_utf8(raw: bytes) -> bool:
    """Tell whether bytes are UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def check_texts(index: int, pair: Pair) -> None:
    """Refuse a value with a string that is not UTF-8. Raises GgufError, ``bad-value``."""
    if isinstance(pair.value, String) and not is_utf8(pair.value.raw):
        _refuse_text(pair.value.raw, f"kv[{index}].value", pair.value_at)
    for strings in _arrays(pair.value):
        if isinstance(strings, Strings):
            _check_array(strings, f"kv[{index}].value")


def check_bools(index: int, pair: Pair) -> None:
    """Refuse a bool that is neither 0 nor 1. Raises GgufError, ``bad-value``."""
    value = pair.value
    raws = [value.raw] if isinstance(value, Number) and value.type is BOOL else []
    raws += [numbers.raw for numbers in _arrays(value) if isinstance(numbers, Numbers) and numbers.items is BOOL]
    for raw in raws:
        if raw.translate(None, b"\0\1"):
            odd = max(raw)
            problem = f"a bool has the byte {odd}: 0 and 1 are what it may be"
            raise GgufError("bad-value", problem, field=f"kv[{index}].value", at=pair.value_at)


def _arrays(value: Value) -> list[Numbers | Strings]:
    if isinstance(value, Nested):
        return value.leaves
    return [value] if isinstance(value, Numbers | Strings) else []


def _check_array(strings: Strings, field: str) -> None:
    first = 0
    for piece in _pieces(strings):
        if not is_utf8(b"\n".join(raw for _, raw in piece)):  # a newline is part of no longer character
            number, at, raw = next((i, at, raw) for i, (at, raw) in enumerate(piece) if not is_utf8(raw))
            _refuse_text(raw, f"{field}[{first + number}]", at)
        first += len(piece)


def _pieces(strings: Strings) -> Iterator[list[tuple[int, bytes]]]:
    piece: list[tuple[int, bytes]] = []
    for start, end in strings.spans():
        piece.append((start, bytes(strings.buffer[start:end])))
        if len(piece) == _PIECE:
            yield piece
            piece = []
    yield piece


def _refuse_text(raw: bytes, field: str, at: int) -> None:
    raise GgufError("bad-value", f"the string {show(raw)} is not UTF-8", field=field, at=at)
