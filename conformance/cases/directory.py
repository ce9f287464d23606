"""Where tensors lie: offsets, sizes, and the bytes of the data section."""

from __future__ import annotations

from math import prod
from typing import Literal, NamedTuple

import numpy as np

from conformance.cases.fieldmap import Field
from conformance.cases.numbers import draw_bytes
from conformance.cases.plan import MAX_BYTES, WIDTHS, NumberArray, Tensor
from conformance.ggml_types import BY_ID

# A tensor larger than this has no data unless the recipe gives it: such sizes are there to be claimed, not to be filled.
MAX_DATA = 2**28
_CYCLE = 251
_BYTES = bytes(range(1, 1 + _CYCLE)) * 2


class Placed(NamedTuple):
    """A tensor's place: ``offset`` as the directory says it, ``nbytes`` its own size (0 where dims or type are broken)."""

    number: int
    tensor: Tensor
    offset: int
    nbytes: int


def own_size(tensor: Tensor) -> int:
    """Give the bytes that type and dims ask for; 0 for an unknown type, a broken row, or a size beyond 2^63."""
    kind = BY_ID.get(tensor.type)
    if kind is None or kind.removed:
        return 0
    row, rows = (tensor.dims[0], prod(tensor.dims[1:])) if tensor.dims else (1, 1)
    size = row // kind.block * kind.nbytes * rows
    return size if row % kind.block == 0 and size < 2**63 else 0


def place(tensors: tuple[Tensor, ...], alignment: int) -> list[Placed]:
    """Give each tensor its offset: the one it states, else the next aligned one after the tensor before it."""
    placed, cursor = [], 0
    for number, tensor in enumerate(tensors):
        offset = cursor if tensor.offset is None else tensor.offset
        size = own_size(tensor)
        placed.append(Placed(number, tensor, offset, size))
        end = offset + max(size, _given_size(tensor) if not size else 0)
        cursor = (end + -end % alignment) % 2**64
    return placed


def _given_size(tensor: Tensor) -> int:
    data = tensor.data
    if data.kind == "numbers" and data.array:
        return data.array.count * WIDTHS[data.array.kind]
    return len(data.unit) * data.count if data.kind == "bytes" else 0


def section(placed: list[Placed], order: Literal["little", "big"], last_alignment: int) -> tuple[bytes, list[Field], list[Field]]:
    """Give the data section, the fields that tile it, and tensors' fields that overlap others.

    Offsets are relative to the section. Later tensors overwrite earlier ones.
    """
    written = [(spot, _bytes(spot, order)) for spot in placed]
    written = [(spot, raw) for spot, raw in written if raw]
    end = max((spot.offset + len(raw) for spot, raw in written), default=0)
    buffer = bytearray(end + -end % last_alignment)
    for spot, raw in written:
        buffer[spot.offset : spot.offset + len(raw)] = raw
    fields = [Field(f"data[{spot.number}]", spot.offset, len(raw), "data") for spot, raw in written]
    tiles = _tiles(fields, len(buffer))
    clipped = set(fields) - set(tiles)
    return bytes(buffer), tiles, [field for field in fields if field in clipped]


def _tiles(fields: list[Field], size: int) -> list[Field]:
    """Tile the section: tensors in order of their offsets, what lies between as padding of the one before."""
    tiles: list[Field] = []
    cursor, last = 0, "data"
    for field in sorted(fields, key=lambda each: each.offset):
        if field.offset > cursor:
            tiles.append(Field(f"{last}.padding", cursor, field.offset - cursor, "padding"))
        start = max(cursor, field.offset)
        if field.end > start:
            tiles.append(field._replace(offset=start, length=field.end - start))
            cursor, last = field.end, field.path
    if size > cursor:
        tiles.append(Field(f"{last}.padding", cursor, size - cursor, "padding"))
    return tiles


def _bytes(spot: Placed, order: Literal["little", "big"]) -> bytes:
    """Give a tensor's bytes; none where its own size or place is beyond what a built file holds."""
    data = spot.tensor.data
    wanted = spot.nbytes if data.kind in ("pattern", "fill", "random") else _given_size(spot.tensor)
    given = data.kind in ("bytes", "numbers")
    if spot.offset + wanted > (MAX_BYTES if given else MAX_DATA):
        if data.kind in ("pattern", "none"):
            return b""
        raise spot.tensor.entry.error(
            f"its data would end at {spot.offset + wanted}", "write `data: none`, or patch its offset or dims"
        )
    match data.kind:
        case "bytes":
            return data.unit * data.count
        case "fill":
            return data.unit * wanted
        case "random":
            return draw_bytes(data.seed, wanted).tobytes()
        case "pattern":
            return pattern(spot.number, wanted)
    return _number_bytes(data.array, order) if data.array else b""


def pattern(number: int, size: int) -> bytes:
    """Give the default data of tensor ``number``: byte j is 1 + (j + 37 * number) mod 251, never zero."""
    start = 37 * number % _CYCLE
    cycle = _BYTES[start : start + _CYCLE]
    return (cycle * (size // _CYCLE + 1))[:size]


def _number_bytes(array: NumberArray, order: Literal["little", "big"]) -> bytes:
    width = WIDTHS[array.kind]
    sign = "<" if order == "little" else ">"
    return np.array(array.bits, dtype=f"{sign}u{width}").tobytes() * array.times
