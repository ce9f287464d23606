"""From a file recipe (a mapping, see docs/cases.md) to its plan; errors that show without building are found here."""

from __future__ import annotations

from typing import Literal

from conformance.cases.entry import Entry
from conformance.cases.plan import (
    MAX_BYTES,
    WIDTHS,
    Array,
    ArrayArray,
    Data,
    FilePlan,
    Nested,
    NumberArray,
    Pair,
    Patch,
    Raw,
    Scalar,
    Tensor,
    Text,
    TextArray,
    Value,
)
from conformance.ggml_types import BY_NAME

FILE_KEYS = (
    "version",
    "byteorder",
    "magic",
    "n_tensors",
    "n_kv",
    "kv",
    "tensors",
    "align",
    "pad_header",
    "pad_last",
    "data",
    "patch",
    "cut",
    "append",
    "bytes",
)
ITEM_KINDS = (*WIDTHS, "str", "array")
VALUE_FORMS = (*WIDTHS, "str", "array", "nested", "raw")
PATCH_FORMS = ("hex", "fill")
TENSOR_KEYS = ("name", "type", "dims", "offset", "data")
# The value type that a plain list of numbers has as data of a tensor type.
_NATIVE = {"F32": "f32", "F64": "f64", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64"}
_NO_DATA = Data("none")


def parse_file(entry: Entry) -> FilePlan:
    """Give the plan of the file that the mapping ``entry`` describes. Raises ConfigurationError."""
    parts = entry.mapping(FILE_KEYS)
    if "bytes" in parts and len(parts) > 1:
        others = ", ".join(key for key in parts if key != "bytes")
        raise entry.error(f"`bytes` is the whole file, `{others}` cannot stand beside it", "keep one of them")
    return FilePlan(
        entry=entry,
        version=parts["version"].integer(0, 2**32 - 1) if "version" in parts else 3,
        order=_order(parts),
        magic=_magic(parts["magic"]) if "magic" in parts else b"GGUF",
        n_tensors=_integer(parts, "n_tensors", -(2**63), 2**64 - 1),
        n_kv=_integer(parts, "n_kv", -(2**63), 2**64 - 1),
        pairs=tuple(map(_pair, parts["kv"].sequence())) if "kv" in parts else (),
        tensors=tuple(map(_tensor, parts["tensors"].sequence())) if "tensors" in parts else (),
        align=_integer(parts, "align", 1, MAX_BYTES),
        pad_header=parts["pad_header"].boolean() if "pad_header" in parts else None,
        pad_last=parts["pad_last"].boolean() if "pad_last" in parts else True,
        with_data=not ("data" in parts and parts["data"].choice(("none",))),
        patches=tuple(_patch(*item) for item in parts["patch"].mapping().items()) if "patch" in parts else (),
        cut=_integer(parts, "cut", -MAX_BYTES, MAX_BYTES),
        append=_appended(parts["append"]) if "append" in parts else Text(b""),
        raw=parts["bytes"].hexadecimal() if "bytes" in parts else None,
    )


def _order(parts: dict[str, Entry]) -> Literal["little", "big"]:
    return "big" if "byteorder" in parts and parts["byteorder"].choice(("little", "big")) == "big" else "little"


def _integer(parts: dict[str, Entry], key: str, low: int, high: int) -> int | None:
    return parts[key].integer(low, high) if key in parts else None


def _magic(entry: Entry) -> bytes:
    raw = parse_text(entry).raw
    if len(raw) != 4:
        raise entry.error(f"the magic has {len(raw)} bytes", "write 4 characters, or {hex: 47475546}; use cut for a short file")
    return raw


def parse_text(entry: Entry) -> Text:
    """Give a string's bytes: plain text, ``{hex: fffe}`` or ``{repeat: x, count: 65536}``."""
    if not entry.is_mapping():
        return Text(entry.text().encode("utf-8", "surrogatepass"))
    parts = entry.mapping(("hex", "repeat", "count"))
    if parts.keys() == {"hex"}:
        return Text(parts["hex"].hexadecimal())
    if parts.keys() != {"repeat", "count"}:
        raise entry.error("no such string", "write plain text, {hex: fffe} or {repeat: x, count: 65536}")
    unit = parse_text(parts["repeat"]).raw
    return Text(unit, parts["count"].integer(0, MAX_BYTES // max(len(unit), 1)))


def _appended(entry: Entry) -> Text:
    """Bytes after the file's end: hex, or ``{count: 7, fill: 0}``."""
    if not entry.is_mapping():
        return Text(entry.hexadecimal())
    parts = entry.mapping(("count", "fill"))
    if "count" not in parts:
        raise entry.error("`count` is missing", "write hex digits, or {count: 7, fill: 0}")
    return Text(_byte(parts), parts["count"].integer(0, MAX_BYTES))


def _byte(parts: dict[str, Entry]) -> bytes:
    return bytes([parts["fill"].integer(0, 255)]) if "fill" in parts else b"\0"


def _pair(entry: Entry) -> Pair:
    """One pair: ``key`` and exactly one value form."""
    parts = entry.mapping(("key", *VALUE_FORMS))
    forms = [form for form in parts if form != "key"]
    if "key" not in parts or len(forms) != 1:
        raise entry.error(f"a pair is `key` and one value, not {', '.join(parts)}", f"values: {', '.join(VALUE_FORMS)}")
    return Pair(parse_text(parts["key"]), _value(forms[0], parts[forms[0]]))


def _value(form: str, entry: Entry) -> Value:
    match form:
        case "str":
            return parse_text(entry)
        case "array":
            return _array(*entry.one_of(ITEM_KINDS))
        case "nested":
            return _nested(entry)
        case "raw":
            parts = entry.mapping(("type", "hex"))
            if "type" not in parts:
                raise entry.error("`type` is missing", "write {type: 13, hex: 00}")
            return Raw(parts["type"].integer(0, 2**32 - 1), parts["hex"].hexadecimal() if "hex" in parts else b"")
        case _:
            return Scalar(form, scalar_bits(form, entry))


def scalar_bits(kind: str, entry: Entry) -> int:
    """Give the bits of a scalar of ``kind``; an integer must be in the kind's range, a bool may be any byte."""
    if kind in ("f32", "f64"):
        return entry.float_bits(kind)
    if kind == "bool":
        return int(entry.boolean()) if str(entry.value) in ("True", "False", "true", "false") else entry.integer(0, 255)
    width = 8 * WIDTHS[kind]
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if kind.startswith("i") else (0, 2**width - 1)
    bits: int = entry.integer(low, high) % 2**width
    return bits


def _array(kind: str, entry: Entry) -> Array:
    """Parse an array's elements: a list, or ``{fill: value, count: 1000}``."""
    if kind == "array":
        return ArrayArray(tuple(_array(*item.one_of(ITEM_KINDS)) for item in entry.sequence()))
    elements, times = _elements(entry)
    if kind == "str":
        texts = tuple(map(parse_text, elements))
        _fits(entry, times, sum(8 + len(text.unit) * text.count for text in texts))
        return TextArray(texts, times)
    _fits(entry, times, len(elements) * WIDTHS[kind])
    return NumberArray(kind, tuple(scalar_bits(kind, element) for element in elements), times)


def _elements(entry: Entry) -> tuple[list[Entry], int]:
    """Give the elements written and how many times over they are meant."""
    if not entry.is_mapping():
        return entry.sequence(), 1
    parts = entry.mapping(("fill", "count"))
    if parts.keys() != {"fill", "count"}:
        raise entry.error("no such array", "write a list, or {fill: 0, count: 1000}")
    return [parts["fill"]], parts["count"].integer(0, MAX_BYTES)


def _fits(entry: Entry, times: int, size: int) -> None:
    if times * size > MAX_BYTES:
        raise entry.error(f"{times} times {size} bytes are too much", f"the limit of a built file is {MAX_BYTES} bytes")


def _nested(entry: Entry) -> Nested:
    """``{levels: 100, u32: [1]}``: the array ``u32: [1]`` within 100 arrays of length one."""
    parts = entry.mapping(("levels", *ITEM_KINDS))
    kinds = [key for key in parts if key != "levels"]
    if "levels" not in parts or len(kinds) != 1:
        raise entry.error("a nest is `levels` and one innermost array", "write {levels: 100, u32: [1]}")
    return Nested(parts["levels"].integer(0, MAX_BYTES // 12), _array(kinds[0], parts[kinds[0]]))


def _tensor(entry: Entry) -> Tensor:
    parts = entry.mapping(TENSOR_KEYS)
    for key in ("name", "type", "dims"):
        if key not in parts:
            raise entry.error(f"`{key}` is missing", "write {name: t, type: F32, dims: [4]}")
    number, name = _tensor_type(parts["type"])
    return Tensor(
        name=parse_text(parts["name"]),
        type=number,
        dims=_dims(parts["dims"]),
        offset=parts["offset"].integer(-(2**63), 2**64 - 1) % 2**64 if "offset" in parts else None,
        data=_data(parts["data"], name) if "data" in parts else Data("pattern"),
        entry=entry,
    )


def _dims(entry: Entry) -> tuple[int, ...]:
    """Dimensions in file order; a negative one is written as its two's complement."""
    elements, times = _elements(entry)
    _fits(entry, times, len(elements) * 2**10)  # a tuple of them is made: a million is enough
    return tuple(element.integer(-(2**63), 2**64 - 1) % 2**64 for element in elements) * times


def _tensor_type(entry: Entry) -> tuple[int, str]:
    """Give number and (empty if there is none) name of a type given as either."""
    if isinstance(entry.value, str) and entry.value in BY_NAME:
        return BY_NAME[entry.value].id, entry.value
    if isinstance(entry.value, str) and entry.value[:1].isalpha():
        entry.choice(BY_NAME)
    return entry.integer(-(2**31), 2**32 - 1) % 2**32, ""


def _data(entry: Entry, type_name: str) -> Data:
    """``none``, hex, a list of numbers, ``{fill: 0}``, ``{fill: 0, count: 7}``, ``{random: seed}`` or ``{f32: [...]}``."""
    if entry.is_list():
        if type_name not in _NATIVE:
            raise entry.error(f"a plain list cannot be data of {type_name or 'this type'}", "write hex, or {f32: [...]}")
        return _numbers(_NATIVE[type_name], entry)
    if not entry.is_mapping():
        return _NO_DATA if entry.value == "none" else Data("bytes", entry.hexadecimal())
    parts = entry.mapping(("fill", "count", "random", *WIDTHS))
    if "fill" in parts and parts.keys() <= {"fill", "count"}:
        count = _integer(parts, "count", 0, MAX_BYTES)
        return Data("fill", _byte(parts)) if count is None else Data("bytes", _byte(parts), count)
    if parts.keys() == {"random"}:
        return Data("random", seed=parts["random"].integer(0, 2**64 - 1))
    kind, numbers = entry.one_of(tuple(WIDTHS))
    return _numbers(kind, numbers)


def _numbers(kind: str, entry: Entry) -> Data:
    array = _array(kind, entry)
    return Data("numbers", array=array if isinstance(array, NumberArray) else None)


def _patch(path: str, entry: Entry) -> Patch:
    if entry.is_mapping():
        entry.one_of(PATCH_FORMS)
    elif entry.is_list():
        raise entry.error("a patch is no list", "write a number, {hex: 00ff} or {fill: 0}")
    return Patch(path, entry)
