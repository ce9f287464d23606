"""What a person holding a file wants to know: its metadata, its tensors, a tensor's first values, and whether it is sound.

The reference reads the file. Text in a description is as it stands in the file (bytes that are not UTF-8 as lone
surrogates); only the views escape it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import impl
from conformance.errors import EXIT_DIVERGENCE, GgufConformanceError, UsageError
from impl.container.values import Numbers, PythonValue, Strings

if TYPE_CHECKING:
    from conformance.judge.divergence import HexLine
    from impl.container.metadata import Metadata

# Array elements and tensor values that are shown where nobody says how many.
VALUES = 8
_AROUND = 16


class BrokenFileError(GgufConformanceError):
    """The file is refused: class, field, offset, the bytes there, and what to do next."""

    exit_code = EXIT_DIVERGENCE


class Entry(msgspec.Struct, frozen=True):
    """One key-value pair. ``values`` are the first of ``count``, numbers in decimal; ``items`` is an array's element type."""

    key: str
    type: str
    items: str | None
    count: int
    values: tuple[str, ...]


class TensorEntry(msgspec.Struct, frozen=True):
    """One tensor. ``ne`` is fastest first, ``offset`` counts from the data section's start, ``at`` from the file's, in bytes."""

    index: int
    name: str
    type: str
    ne: tuple[int, ...]
    offset: int
    at: int
    nbytes: int


class TensorValue(msgspec.Struct, frozen=True):
    """One element: the shortest decimal that reads back as it and, of a float32, its bits in hex."""

    value: str
    bits: str = ""


class TensorValues(msgspec.Struct, frozen=True):
    """The first values of a tensor, dequantized to float32 where it is quantized; ``note`` says why there are none."""

    tensor: TensorEntry
    elements: int
    values: tuple[TensorValue, ...]
    note: str = ""


class Description(msgspec.Struct, frozen=True):
    """A file's header, and ``problem`` where its data is not all there. ``whole``: nothing in ``metadata`` was left out."""

    path: str
    size: int
    version: int
    alignment: int
    data_offset: int
    metadata: tuple[Entry, ...]
    tensors: tuple[TensorEntry, ...]
    values: TensorValues | None = None
    problem: str = ""
    whole: bool = False


def describe(path: Path, *, tensor: str | None = None, values: int = VALUES, whole: bool = False) -> Description:
    """Read ``path``. ``tensor``, a name or an index in the directory, asks for that tensor's first ``values`` values too.

    Of each metadata array the first ``values`` elements are kept, with ``whole`` all.

    Raises:
        BrokenFileError: the header is refused, or the bytes of the values asked for are missing.
        UsageError: the path cannot be read, or there is no such tensor.

    """
    if values < 0:
        raise UsageError(f"{values} values asked for", hint="give 0 or more")
    with opened(path) as file:
        found = _find(file, tensor, path) if tensor is not None else None
        return Description(
            path=str(path),
            size=path.stat().st_size,
            version=file.version,
            alignment=file.alignment,
            data_offset=file.data_offset,
            metadata=tuple(_entry(file.metadata, key, None if whole else values) for key in file.metadata),
            tensors=tuple(_tensor(one, file) for one in file.tensors),
            values=_values(found, file, values) if found is not None else None,
            problem=missing_data(file),
            whole=whole,
        )


@contextmanager
def opened(path: Path) -> Iterator[impl.File]:
    """Open ``path``, and tell what the reference raises, then or later, as an error with the bytes at fault.

    Raises:
        BrokenFileError: the header is refused, or bytes that are asked for are missing.
        UsageError: the path cannot be read.

    """
    try:
        yield impl.open(_regular(path))
    except impl.GgufError as error:
        raise _broken(path, error) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=_shown(path), hint="check the path") from error


def _shown(path: Path) -> str:
    from conformance.printable import one_line  # noqa: PLC0415 - only an error needs it

    return one_line(str(path))


def _regular(path: Path) -> Path:
    """Refuse what would block or never end, such as a pipe or a device."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no regular file"
        raise UsageError(f"is {kind}", where=_shown(path), hint="give the path of a GGUF file")
    return path


def missing_data(file: impl.File) -> str:
    """Say where data ends too early; an empty text where it is all there."""
    try:
        file.check_load()
    except impl.GgufError as error:
        return f"{error.reject_class} at byte {error.at}, {error.field}: {error.problem}. {error.hint}"
    return ""


def _entry(metadata: Metadata, key: str, limit: int | None) -> Entry:
    """Describe one pair; of an array no more than ``limit`` elements are made into Python objects."""
    value, kind = metadata.value(key), metadata.type(key)
    match value:
        case Numbers(items=items, length=length):
            first = value if limit is None else value._replace(length=min(limit, length))
            return Entry(key, kind, items.name, length, tuple(_text(element, items.name) for element in first.get()))
        case Strings(ends=ends):
            first_strings = value if limit is None else value._replace(ends=ends[:limit])
            return Entry(key, kind, "str", len(ends), tuple(map(str, first_strings.get())))
        case _:
            return Entry(key, kind, None, 1, (_text(value.get(), kind),))


def _text(value: PythonValue, kind: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _shortest(value) if kind == "f32" and isinstance(value, float) else str(value)


def _shortest(value: float) -> str:
    """Give the shortest decimal that reads back as this float32 (``repr`` would show the digits of a double)."""
    if not math.isfinite(value):
        return str(value)
    bits = struct.pack("<f", value)
    short = (f"{value:.{digits}g}" for digits in range(1, 9))
    return str(float(next((text for text in short if _pack(text) == bits), f"{value:.9g}")))


def _pack(text: str) -> bytes:
    try:
        return struct.pack("<f", float(text))
    except OverflowError:  # rounded up past the largest float32
        return b""


def _tensor(tensor: impl.Tensor, file: impl.File) -> TensorEntry:
    at = file.data_offset + tensor.offset
    return TensorEntry(tensor.index, tensor.name, tensor.type, tensor.ne, tensor.offset, at, tensor.nbytes)


def _find(file: impl.File, wanted: str, path: Path) -> impl.Tensor:
    """Find a tensor by its name, else by its index."""
    for tensor in file.tensors:
        if tensor.name == wanted:
            return tensor
    if wanted.isdecimal() and int(wanted) < len(file.tensors):
        return file.tensors[int(wanted)]
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    from conformance.printable import one_line  # noqa: PLC0415 - the same

    near = get_close_matches(wanted, [tensor.name for tensor in file.tensors], n=3)
    known = ", ".join(one_line(name) for name in near) or f"an index from 0 to {len(file.tensors) - 1}"
    hint = f"try {known}" if file.tensors else "the file has no tensors"
    raise UsageError(f"no tensor {one_line(wanted)!r}", where=_shown(path), hint=hint)


def _values(tensor: impl.Tensor, file: impl.File, limit: int) -> TensorValues:
    """Read no more of the tensor than the blocks that hold the first ``limit`` values."""
    entry, elements = _tensor(tensor, file), math.prod(tensor.ne)
    if tensor.type in ("I8", "I16", "I32", "I64", "F64"):
        shown = tensor.data.reshape(-1)[:limit].tolist()
        return TensorValues(entry, elements, tuple(TensorValue(str(value)) for value in shown))
    kind = tensor.info.type
    blocks = -(-min(limit, elements) // kind.block)
    raw = tensor.raw[: blocks * kind.nbytes]
    try:
        floats = impl.dequantize(tensor.type, raw, (blocks * kind.block,))[: min(limit, elements)]
    except impl.UnsupportedError as error:
        return TensorValues(entry, elements, (), f"{error}; the first block's bytes are {raw[: kind.nbytes].hex(' ')}")
    bits = floats.view("<u4").tolist()
    pairs = zip(floats.tolist(), bits, strict=True)
    return TensorValues(entry, elements, tuple(TensorValue(_shortest(value), f"0x{word:08x}") for value, word in pairs))


def _broken(path: Path, error: impl.GgufError) -> BrokenFileError:
    from conformance.printable import one_line  # noqa: PLC0415 - the same
    from conformance.report.hexdump import hexdump_lines  # noqa: PLC0415 - only an error needs it

    message = one_line(f"{error.reject_class} at byte {error.at}, {error.field}: {error.problem}")
    lines = [*hexdump_lines(_bytes_around(path, error.at, error.field)), error.hint]
    return BrokenFileError(message, where=_shown(path), hint="\n  ".join(lines))


def _bytes_around(path: Path, at: int, field: str) -> list[HexLine]:
    """Give the bytes before, at and after ``at`` as lines of a hexdump; the marked line starts at ``at``."""
    from conformance.judge.divergence import HexLine  # noqa: PLC0415 - only an error needs it

    size = path.stat().st_size
    with path.open("rb") as file:
        start = max(0, min(at, size) - _AROUND)
        file.seek(start)
        before = file.read(min(at, size) - start)
        fault, after = file.read(_AROUND), file.read(_AROUND)
    label = field if fault else f"{field} (the file ends at {size})"
    lines = [HexLine(start, before.hex(), ""), HexLine(at, fault.hex(), label, mark=True), HexLine(at + _AROUND, after.hex(), "")]
    return [line for line in lines if line.data or line.mark]


def to_json(description: Description) -> str:
    """Give the description as JSON: 64-bit sizes and all values as strings, text that is not UTF-8 as ``{"hex": "fffe"}``."""
    tree = msgspec.to_builtins(description)
    for entry in tree["metadata"]:
        entry["values"] = [json_text(value) for value in entry["values"]]
        entry["key"] = json_text(entry["key"])
    values = tree["values"]
    for tensor in [*tree["tensors"], *([values["tensor"]] if values else [])]:
        tensor["name"] = json_text(tensor["name"])
        tensor["ne"] = [str(dim) for dim in tensor["ne"]]
        for field in ("offset", "at", "nbytes"):
            tensor[field] = str(tensor[field])
    if values:
        values["elements"] = str(values["elements"])
    tree["path"] = json_text(tree["path"])
    return msgspec.json.format(msgspec.json.encode(tree), indent=2).decode()


def json_text(text: str) -> str | dict[str, str]:
    """Give text out of a file as JSON can hold it: as it is, or what is not UTF-8 as ``{"hex": "fffe"}``."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"hex": text.encode("utf-8", "surrogateescape").hex()}
    return text
