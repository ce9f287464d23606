"""The grammar of ``put``: in what way a case's requests reach an adapter."""

from __future__ import annotations

import json
import re

import msgspec

from conformance.cases.entry import Entry
from conformance.cases.model import FileInput, Input, Put

PUT_KEYS = ("folder", "length", "input", "fields", "over", "times", "ahead")
INPUTS = ("missing", "folder")
# A path has 4,095 bytes at most (Linux, PATH_MAX less the NUL), and the names of files come after the folder.
LONGEST_FOLDER = 3840
# Fields of every request; what else an op has stands in ``conformance.subjects.protocol``.
_TAKEN = ("op", "seq", "path", "index", "type", "rows", "cols", "in", "out", "weights", "x", "description", "data")
_MOST = 10_000
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def parse_put(entry: Entry, source: Input, ask: tuple[str, ...]) -> Put:
    """Give how the requests of a case with this input and these ops are put. Raises ConfigurationError."""
    parts = entry.mapping(PUT_KEYS)
    if not parts:
        raise entry.error("nothing is said", f"write one of: {', '.join(PUT_KEYS)}")
    if "times" in parts and "ahead" in parts:
        raise parts["ahead"].error("`times` and `ahead` exclude each other", "keep one of them")
    if "folder" in parts and "length" in parts:
        raise parts["length"].error("`folder` and `length` exclude each other", "keep one of them")
    return Put(
        folder=_folder(parts["folder"]) if "folder" in parts else "",
        length=parts["length"].integer(1, LONGEST_FOLDER) if "length" in parts else 0,
        input=_input(parts["input"], source, ask) if "input" in parts else "",
        fields=_fields(parts["fields"]) if "fields" in parts else "",
        over=parts["over"].integer(1, 2**24) if "over" in parts else 0,
        times=parts["times"].integer(2, _MOST) if "times" in parts else 1,
        ahead=parts["ahead"].integer(2, _MOST) if "ahead" in parts else 1,
    )


def _folder(entry: Entry) -> str:
    """Give the folder's name, or names with `/` between them."""
    text = entry.text()
    parts = text.split("/")
    if "\0" in text or any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts):
        raise entry.error(f"{entry.shown()} is no folder below another", "write names of 1 to 255 bytes, `/` between them")
    return text


def _input(entry: Entry, source: Input, ask: tuple[str, ...]) -> str:
    word = entry.choice(INPUTS)
    if not isinstance(source, FileInput) or set(ask) - {"header", "load"}:
        raise entry.error("only `header` and `load` are asked of a file that cannot be read", "ask: [header]")
    return word


def _fields(entry: Entry) -> str:
    """Give the JSON text of an object whose names no request has as a field that must be there."""
    try:
        fields = msgspec.json.decode(entry.text(), type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise entry.error(
            f"{entry.shown()} is no JSON object: {error}", """write it as '{"later": 1, "imatrix": null}'"""
        ) from None
    if odd := [name for name in fields if not _NAME.fullmatch(name)]:
        raise entry.error(f"{odd[0]!a} is no field's name", "use letters, digits, and . _ -")
    if taken := [name for name in fields if name in _TAKEN]:
        raise entry.error(f"`{taken[0]}` is the request's own", f"name fields other than: {', '.join(_TAKEN)}")
    return json.dumps(fields, ensure_ascii=False)
