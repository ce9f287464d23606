"""Which field of a block a byte belongs to, and which elements it encodes.

Source: the ``block_*`` structs in ggml/src/ggml-common.h, and for the elements of a byte the loops of ``dequantize_row_*`` in
ggml/src/ggml-quants.c. Kept apart from the reference, which is a subject like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Elements = Callable[[int], tuple[int, ...]]


class BlockField(NamedTuple):
    """One field of a block: bytes ``offset`` to ``offset + nbytes``, ``width`` bytes an entry.

    ``elements(i)`` gives the elements of the block that byte ``i`` of the field encodes; None where a byte speaks of many.
    """

    name: str
    offset: int
    nbytes: int
    width: int
    elements: Elements | None


class Place(NamedTuple):
    """Where a byte of a block stands: ``field`` is the field's name, ``path`` that with the entry's index."""

    field: str
    path: str
    elements: tuple[int, ...]


def _one(i: int) -> tuple[int, ...]:
    return (i,)


def _split(half: int) -> Elements:
    """Low nibble of byte i is element i, high nibble element i + half."""
    return lambda i: (i, i + half)


def _bits(i: int) -> tuple[int, ...]:
    return tuple(range(8 * i, 8 * i + 8))


def _groups(width: int, parts: int) -> Elements:
    """Read groups of ``width`` bytes, each of which holds ``parts`` runs of ``width`` elements, one run a bit position."""
    return lambda i: tuple(i // width * width * parts + i % width + part * width for part in range(parts))


def _consecutive(count: int) -> Elements:
    return lambda i: tuple(range(count * i, count * i + count))


# A row: field, bytes, bytes an entry, elements of its byte i.
_LAYOUTS: dict[str, tuple[tuple[str, int, int, Elements | None], ...]] = {
    "F32": (("value", 4, 4, None),),
    "F16": (("value", 2, 2, None),),
    "BF16": (("value", 2, 2, None),),
    "Q4_0": (("d", 2, 2, None), ("qs", 16, 1, _split(16))),
    "Q4_1": (("d", 2, 2, None), ("m", 2, 2, None), ("qs", 16, 1, _split(16))),
    "Q5_0": (("d", 2, 2, None), ("qh", 4, 1, _bits), ("qs", 16, 1, _split(16))),
    "Q5_1": (("d", 2, 2, None), ("m", 2, 2, None), ("qh", 4, 1, _bits), ("qs", 16, 1, _split(16))),
    "Q8_0": (("d", 2, 2, None), ("qs", 32, 1, _one)),
    "Q8_1": (("d", 2, 2, None), ("s", 2, 2, None), ("qs", 32, 1, _one)),
    "Q8_K": (("d", 4, 4, None), ("qs", 256, 1, _one), ("bsums", 32, 2, None)),
    "Q1_0": (("d", 2, 2, None), ("qs", 16, 1, _bits)),
    "Q2_0": (("d", 2, 2, None), ("qs", 16, 1, _consecutive(4))),
    "Q2_K": (("scales", 16, 1, None), ("qs", 64, 1, _groups(32, 4)), ("d", 2, 2, None), ("dmin", 2, 2, None)),
    "Q3_K": (("hmask", 32, 1, _groups(32, 8)), ("qs", 64, 1, _groups(32, 4)), ("scales", 12, 1, None), ("d", 2, 2, None)),
    "Q4_K": (("d", 2, 2, None), ("dmin", 2, 2, None), ("scales", 12, 1, None), ("qs", 128, 1, _groups(32, 2))),
    "Q5_K": (
        ("d", 2, 2, None),
        ("dmin", 2, 2, None),
        ("scales", 12, 1, None),
        ("qh", 32, 1, _groups(32, 8)),
        ("qs", 128, 1, _groups(32, 2)),
    ),
    "Q6_K": (("ql", 128, 1, _groups(64, 2)), ("qh", 64, 1, _groups(32, 4)), ("scales", 16, 1, None), ("d", 2, 2, None)),
    "IQ2_XXS": (("d", 2, 2, None), ("qs", 64, 2, None)),
    "IQ2_XS": (("d", 2, 2, None), ("qs", 64, 2, None), ("scales", 8, 1, None)),
    "IQ2_S": (("d", 2, 2, None), ("qs", 64, 1, None), ("qh", 8, 1, None), ("scales", 8, 1, None)),
    "IQ3_XXS": (("d", 2, 2, None), ("qs", 96, 1, None)),
    "IQ3_S": (("d", 2, 2, None), ("qs", 64, 1, None), ("qh", 8, 1, None), ("signs", 32, 1, None), ("scales", 4, 1, None)),
    "IQ1_S": (("d", 2, 2, None), ("qs", 32, 1, None), ("qh", 16, 2, None)),
    "IQ1_M": (("qs", 32, 1, None), ("qh", 16, 1, None), ("scales", 8, 1, None)),
    "IQ4_NL": (("d", 2, 2, None), ("qs", 16, 1, _split(16))),
    "IQ4_XS": (("d", 2, 2, None), ("scales_h", 2, 2, None), ("scales_l", 4, 1, None), ("qs", 128, 1, _groups(16, 2))),
    "TQ1_0": (("qs", 48, 1, None), ("qh", 4, 1, None), ("d", 2, 2, None)),
    "TQ2_0": (("qs", 64, 1, _groups(32, 4)), ("d", 2, 2, None)),
    "MXFP4": (("e", 1, 1, None), ("qs", 16, 1, _split(16))),
    "NVFP4": (("d", 4, 1, None), ("qs", 32, 1, _groups(8, 2))),
}


def _fields(rows: tuple[tuple[str, int, int, Elements | None], ...]) -> tuple[BlockField, ...]:
    fields, offset = [], 0
    for name, nbytes, width, elements in rows:
        fields.append(BlockField(name, offset, nbytes, width, elements))
        offset += nbytes
    return tuple(fields)


FIELDS: dict[str, tuple[BlockField, ...]] = {name: _fields(rows) for name, rows in _LAYOUTS.items()}


def field_of(type_name: str, byte: int) -> BlockField | None:
    """Give the field that byte ``byte`` of a block of this type lies in; None for a type without a layout (I8, F64 ...)."""
    for field in FIELDS.get(type_name, ()):
        if field.offset <= byte < field.offset + field.nbytes:
            return field
    return None


def place(type_name: str, byte: int) -> Place:
    """Name byte ``byte`` of a block: ``Place("qs", "qs[3]", (3, 19))``; the field is "byte" for a type without a layout."""
    field = field_of(type_name, byte)
    if field is None:
        return Place("byte", f"byte[{byte}]", ())
    index = byte - field.offset
    entry = field.name if field.nbytes == field.width else f"{field.name}[{index // field.width}]"
    return Place(field.name, entry, field.elements(index) if field.elements else ())
