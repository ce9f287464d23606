"""What the reference read of a file, in the form in which ``Live.read`` tells it."""

from __future__ import annotations

import impl

NUMBERS = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "array", "u64", "i64", "f64")


def summary(opened: impl.File) -> dict[str, object]:
    """Keys and names end at a NUL, as C shows them."""
    tensors = [(_until_nul(t.info.name), t.info.type.id, t.offset, t.nbytes) for t in opened.tensors]
    head = {"version": opened.version, "alignment": opened.alignment, "data_offset": opened.data_offset}
    return {**head, "pairs": [_pair(opened, key) for key in opened.metadata], "tensors": tensors}


def _pair(opened: impl.File, key: str) -> tuple[object, ...]:
    meta = opened.metadata
    said = (_until_nul(key.encode("utf-8", "surrogateescape")), NUMBERS.index(meta.type(key)))
    items, value = meta.items_type(key), meta[key]
    return (*said, NUMBERS.index(items), len(value)) if items and isinstance(value, list) else said


def _until_nul(raw: bytes) -> bytes:
    return raw.partition(b"\0")[0]
