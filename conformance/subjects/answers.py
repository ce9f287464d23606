"""One line that a subject gave, read as the outcome that it states or as the breach of the protocol that it is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from conformance.outcomes import REJECT_CLASSES, Error, Ok, Outcome, Protocol, Reject, Unsupported
from conformance.subjects.protocol import PROTOCOL, Done, Identity, Rejected, Response
from conformance.values import VALUE_TYPES, Boxed, Element, Header, HexText, Pair, Text

HEADER_OPS = ("header", "load")
_EXCERPT = 200
# Arrays in arrays in an answer: each level takes several calls where it is compared, and Python has a thousand in all.
MOST_LEVELS = 128

_RESPONSES = msgspec.json.Decoder(Response)
_OKS: dict[type, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(kind) for kind in (Header, Identity, Done)}

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_HEX = re.compile(r"([0-9a-f]{2})*")
_FORMS: dict[str, tuple[re.Pattern[str], str]] = {
    "f32": (re.compile(r"0x[0-9a-f]{8}"), "0x and 8 hex digits in lower case"),
    "f64": (re.compile(r"0x[0-9a-f]{16}"), "0x and 16 hex digits in lower case"),
    "bool": (re.compile("true|false"), '"true" or "false"'),
}
_DECIMAL = (_INTEGER, "a decimal string without leading zeros")


def ok_type(op: str) -> type[Header | Identity | Done]:
    """Give the type of the ``ok`` that answers ``op``."""
    if op == "hello":
        return Identity
    return Header if op in HEADER_OPS else Done


def read_answer(line: bytes, op: str, seq: int) -> Outcome:
    """Give what ``line`` says in answer to request number ``seq``; Protocol, with the field's name, where it breaks the rules."""
    answer = _read_envelope(line, seq)
    if isinstance(answer, Protocol):
        return answer
    if answer.reject is not None:
        return read_reject(answer.reject, line)
    if answer.unsupported is not None:
        return Unsupported(answer.unsupported)
    if answer.error is not None:
        return Error(answer.error)
    return as_outcome(read_ok(bytes(answer.ok), op, line))


def read_hello(line: bytes, seq: int) -> Identity | Protocol:
    """Give the identity in an answer to hello, or how the answer fails to be one of this protocol version."""
    answer = _read_envelope(line, seq)
    if isinstance(answer, Protocol):
        return answer
    if not _given(answer.ok):
        return Protocol("hello was not answered with ok", excerpt(line))
    return read_identity(bytes(answer.ok), line)


def read_identity(raw: bytes, line: bytes) -> Identity | Protocol:
    """Give the identity that ``raw`` is, if it is of this protocol version."""
    identity = read_ok(raw, "hello", line)
    if isinstance(identity, Identity) and identity.protocol != PROTOCOL:
        return Protocol(f"it speaks protocol {identity.protocol}; this harness speaks {PROTOCOL}", excerpt(line))
    return identity if isinstance(identity, Identity | Protocol) else Protocol("no identity", excerpt(line))


def read_ok(raw: bytes, op: str, line: bytes) -> Header | Identity | Done | Protocol:
    """Decode an ``ok`` by its op's type; a header's values must also have the form that their types prescribe."""
    try:
        value: Header | Identity | Done = _OKS[ok_type(op)].decode(raw)
    except (ValueError, RecursionError) as error:
        return Protocol(f"ok: {_located(error)}", excerpt(line))
    if isinstance(value, Header) and (problem := _too_deep(value) or next(header_problems(value), None)):
        return Protocol(f"ok: {problem}", excerpt(line))
    return value


def _too_deep(header: Header) -> str:
    """Name the first value whose arrays are nested deeper than an answer may go; empty if none is."""
    for index, pair in enumerate(header.kv):
        arrays = [pair.value] if isinstance(pair.value, list) else []
        for _ in range(MOST_LEVELS):
            if not arrays:
                break
            arrays = [one.value for array in arrays for one in array if isinstance(one, Boxed) and one.value is not None]
        if arrays:
            return f"kv[{index}].value: arrays nested more than {MOST_LEVELS} levels deep, which an answer cannot hold"
    return ""


def as_outcome(value: Header | Identity | Done | Protocol) -> Ok | Protocol:
    """Give the outcome that a decoded ``ok`` stands for."""
    if isinstance(value, Protocol):
        return value
    return Ok(value if isinstance(value, Header) else None)


def read_reject(answer: Rejected, line: bytes) -> Reject | Protocol:
    """Give the reject, if its class is one of the enumeration."""
    name = answer.reject_class
    if name not in REJECT_CLASSES:
        near = difflib.get_close_matches(name, REJECT_CLASSES, 1)
        meant = f"; did you mean {near[0]!r}?" if near else "; 'other' is for what has no class"
        return Protocol(f"unknown reject class {name!r}{meant}", excerpt(line))
    return Reject(name, answer.message, answer.at, answer.field)


def excerpt(data: bytes) -> str:
    """Give the start of what came, fit to be shown."""
    start = data[:_EXCERPT].decode("utf-8", "backslashreplace")
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in start)
    return f"{shown}... ({len(data)} bytes)" if len(data) > _EXCERPT else shown


def _read_envelope(line: bytes, seq: int) -> Response | Protocol:
    try:
        answer = _RESPONSES.decode(line)
    except msgspec.ValidationError as error:
        return Protocol(_located(error), excerpt(line))
    except (ValueError, RecursionError) as error:
        return Protocol(f"not JSON: {error}" if line.strip() else "not JSON: an empty line", excerpt(line))
    if answer.seq != seq:
        return Protocol(f"wrong seq: expected {seq}, got {answer.seq}", excerpt(line))
    given = [name for name in ("reject", "unsupported", "error") if getattr(answer, name) is not None]
    if _given(answer.ok):
        given.insert(0, "ok")
    if len(given) != 1:
        found = " and ".join(given) if given else "none"
        return Protocol(f"exactly one of ok, reject, unsupported, error is due; got {found}", excerpt(line))
    return answer


def _given(ok: msgspec.Raw) -> bool:
    """Say whether ``ok`` is there; null counts as absent, for writers that put every field."""
    return bytes(ok) not in (b"", b"null")


def _located(error: Exception) -> str:
    """Turn msgspec's message round, so that the field comes first."""
    problem, _, path = str(error).partition(" - at `$")
    path = path.strip(".`")
    return f"{path}: {problem}" if path else problem


def header_problems(header: Header) -> Iterator[str]:
    """Name the values that do not have the form which their type prescribes."""
    for index, pair in enumerate(header.kv):
        at = f"kv[{index}]"
        yield from _text_problems(pair.key, f"{at}.key")
        yield from _pair_problems(pair, at)
    for index, tensor in enumerate(header.tensors):
        at = f"tensors[{index}]"
        yield from _text_problems(tensor.name, f"{at}.name")
        numbers = {**{f"dims[{i}]": dim for i, dim in enumerate(tensor.dims)}, "offset": tensor.offset}
        if tensor.nbytes is not None:
            numbers["nbytes"] = tensor.nbytes
        for name, number in numbers.items():
            yield from _form_problems(number, _DECIMAL, f"{at}.{name}")


def _pair_problems(pair: Pair, at: str) -> Iterator[str]:
    if pair.type not in VALUE_TYPES:
        yield f"{at}.type: unknown value type {pair.type!r}; one of {', '.join(VALUE_TYPES)}"
    elif pair.type == "array":
        yield from _array_problems(pair.items, pair.value, at)
    else:
        yield from _scalar_problems(pair.value, pair.type, f"{at}.value")


def _array_problems(items: str | None, value: object, at: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{at}.value: an array's value is a list"
    elif items is not None and items not in VALUE_TYPES:
        yield f"{at}.items: unknown value type {items!r}; one of {', '.join(VALUE_TYPES)}"
    elif items is not None and not _all_plain(value, items):
        for index, element in enumerate(value):
            yield from _element_problems(element, items, f"{at}.value[{index}]")


def _all_plain(value: list[Element], kind: str) -> bool:
    """Say at once that a long array of plain strings is well-formed: tokenizers have hundreds of thousands of them."""
    if kind == "str":
        return all(type(element) is str for element in value)
    matches = _FORMS.get(kind, _DECIMAL)[0].fullmatch
    return kind != "array" and all(isinstance(element, str) and matches(element) for element in value)


def _element_problems(element: Element, kind: str, at: str) -> Iterator[str]:
    if kind != "array":
        yield from _scalar_problems(element, kind, at)
    elif isinstance(element, Boxed) and element.hex is None:
        yield from _array_problems(element.items, element.value, at)
    else:
        yield f'{at}: an array within an array is {{"items": ..., "value": [...]}}'


def _scalar_problems(value: object, kind: str, at: str) -> Iterator[str]:
    if kind == "str":
        yield from _text_problems(value, at)
    elif isinstance(value, str):
        yield from _form_problems(value, _FORMS.get(kind, _DECIMAL), at, kind)
    else:
        yield f"{at}: a value of type {kind} is one string"


def _text_problems(text: Text | object, at: str) -> Iterator[str]:
    if isinstance(text, str):
        return
    if not isinstance(text, HexText | Boxed) or text.hex is None:
        yield f'{at}: a string is text, or {{"hex": ...}}'
    elif not _HEX.fullmatch(text.hex):
        yield f"{at}.hex: pairs of hex digits in lower case are due, got {text.hex[:40]!r}"


def _form_problems(text: str, form: tuple[re.Pattern[str], str], at: str, kind: str = "") -> Iterator[str]:
    pattern, due = form
    if not pattern.fullmatch(text):
        yield f"{at}: {f'{kind} is ' if kind else ''}{due}, got {text[:40]!r}"
