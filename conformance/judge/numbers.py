"""Compare the numbers that two sides wrote, byte for byte and bit for bit, and locate the first difference of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from conformance.ggml_types import GgmlType
from conformance.judge.divergence import Divergence, FloatBits, HexLine
from conformance.judge.hexdump import dump_block
from conformance.judge.layouts import FIELDS, place
from conformance.judge.output import Bytes, Digests, canonical, differing_ranges
from conformance.judge.third_opinion import Sides, third_opinion

Floats = npt.NDArray[np.float32]


class Shape(NamedTuple):
    """What is compared: outputs of ``op`` on rows of ``cols`` elements of ``kind``, ``authority``'s being the measure.

    ``floats``: the output is float32, ``width`` values a row (``cols``, or 1 for a dot product); otherwise it is blocks.
    ``inputs`` are the float32 rows that were quantized, to be shown beside a difference. ``blocks`` is the file of the blocks
    that were dequantized, and ``subject`` whoever gave the output: both for the exact model's word on a difference.
    """

    op: str
    kind: GgmlType
    cols: int
    authority: str
    floats: bool
    width: int
    nan_payload: bool = False
    row_names: Sequence[str] = ()
    inputs: Floats | None = None
    # A path and not a map of the file: the subject that was given it may have cut it short since.
    blocks: Path | None = None
    subject: str = "the subject"

    @property
    def unit(self) -> int:
        """Bytes of the smallest thing that is located: a block, or a float."""
        return 4 if self.floats else self.kind.nbytes


def compare_outputs(shape: Shape, expected: Bytes | Digests, found: Bytes) -> list[Divergence]:
    """Give the divergences of ``found`` from ``expected``, one for each kind (block field, or class of float difference)."""
    size = expected.nbytes
    if found.nbytes != size:
        return [_wrong_size(shape, size, found.nbytes)]
    found = canonical(found, floats=shape.floats and not shape.nan_payload)
    if isinstance(expected, Digests):
        return list(_compare_digests(shape, expected, found))
    expected = canonical(expected, floats=shape.floats and not shape.nan_payload)
    if np.array_equal(expected, found):
        return []
    if shape.floats:
        return list(_compare_floats(shape, expected.view(np.float32), found.view(np.float32)))
    return list(_compare_blocks(shape, expected, found))


def _signature(shape: Shape, kind: str, where: str) -> str:
    return f"{shape.op}:{shape.kind.name}:{kind}:{where}"


def _wrong_size(shape: Shape, expected: int, found: int) -> Divergence:
    return Divergence(
        signature=_signature(shape, "size", "output"),
        op=shape.op,
        authority=shape.authority,
        summary=f"the output has {found} bytes instead of {expected}",
        expected=str(expected),
        found=str(found),
    )


def _compare_digests(shape: Shape, expected: Digests, found: Bytes) -> Iterator[Divergence]:
    ranges = differing_ranges(expected, found)
    if not ranges:
        return
    first, end = ranges[0]
    word = "values" if shape.floats else "blocks"
    yield Divergence(
        signature=_signature(shape, "digest", word),
        op=shape.op,
        authority=shape.authority,
        summary=f"{word} {first} to {end - 1} differ from the recorded digest",
        expected=expected.digests[first // expected.range],
        found="another digest",
        at=first * expected.unit,
        block=None if shape.floats else first,
        different=len(ranges),
        compared=len(expected.digests),
        unit=f"ranges of {expected.range} {word}",
        remarks=("only digests are recorded of an output this long: run with --oracle live to see the byte",),
    )


def _compare_blocks(shape: Shape, expected: Bytes, found: Bytes) -> Iterator[Divergence]:
    wrong = np.flatnonzero(expected != found)
    in_block = wrong % shape.kind.nbytes
    by_field = _spread(shape.kind.name, in_block)
    for name, indices in by_field.items():
        at = int(wrong[indices[0]])
        yield _block_divergence(
            shape,
            at,
            expected,
            found,
            different=len(wrong),
            by_field={field: len(members) for field, members in by_field.items()},
            field=name,
        )


def _spread(type_name: str, in_block: npt.NDArray[np.intp]) -> dict[str, npt.NDArray[np.intp]]:
    """Give, for each field that differs, the indices into ``in_block`` that lie in it, in order of first occurrence."""
    fields = FIELDS.get(type_name)
    if fields is None:
        return {"byte": np.arange(len(in_block))}
    spread = {field.name: np.flatnonzero((in_block >= field.offset) & (in_block < field.offset + field.nbytes)) for field in fields}
    present = {name: indices for name, indices in spread.items() if len(indices)}
    return dict(sorted(present.items(), key=lambda item: int(item[1][0])))


def _block_divergence(
    shape: Shape,
    at: int,
    expected: Bytes,
    found: Bytes,
    *,
    different: int,
    by_field: dict[str, int],
    field: str,
) -> Divergence:
    block, byte = divmod(at, shape.kind.nbytes)
    blocks_a_row = max(1, shape.cols // shape.kind.block)
    row, column_block = divmod(block, blocks_a_row)
    spot = place(shape.kind.name, byte)
    elements = tuple(column_block * shape.kind.block + element for element in spot.elements)
    return Divergence(
        signature=_signature(shape, "bytes", field),
        op=shape.op,
        authority=shape.authority,
        summary=f"block {block} byte {byte} ({spot.path}) is 0x{found[at]:02x} instead of 0x{expected[at]:02x}",
        expected=f"0x{expected[at]:02x}",
        found=f"0x{found[at]:02x}",
        field=spot.path,
        at=at,
        row=row,
        row_name=_row_name(shape, row),
        block=block,
        byte=byte,
        elements=elements,
        input=_inputs(shape.inputs, row, elements),
        different=different,
        compared=len(expected),
        unit="bytes",
        by_field=by_field,
        hexdump=_dump(shape, block, expected, found),
    )


def _dump(shape: Shape, block: int, expected: Bytes, found: Bytes) -> tuple[HexLine, ...]:
    start, end = block * shape.kind.nbytes, (block + 1) * shape.kind.nbytes
    return dump_block(shape.kind.name, expected[start:end], found[start:end], start)


def _row_name(shape: Shape, row: int) -> str | None:
    return shape.row_names[row] if row < len(shape.row_names) and shape.row_names[row] else None


def _inputs(inputs: Floats | None, row: int, elements: tuple[int, ...]) -> str | None:
    if inputs is None or not elements:
        return None
    shown = elements[:8]
    return ", ".join(f"x[{element}] = {float_text(inputs[row, element])}" for element in shown)


def float_text(value: np.float32) -> str:
    """Give a float32 so that it reads back to the same bits, with its bits."""
    return f"{float(value):.9g} ({hex_bits(value)})"


def hex_bits(value: np.float32) -> str:
    """Give the bits of a float32 as ``0x3f800000``."""
    return f"0x{int(np.float32(value).view(np.uint32)):08x}"


def _compare_floats(shape: Shape, expected: Floats, found: Floats) -> Iterator[Divergence]:
    wrong = np.flatnonzero(expected.view(np.uint32) != found.view(np.uint32))
    classes = _classes(expected[wrong], found[wrong])
    distances = ulp_distances(expected[wrong], found[wrong])
    largest = int(distances.max()) if (distances >= 0).any() else None
    for name in dict.fromkeys(classes.tolist()):
        members = np.flatnonzero(classes == name)
        located = _float_divergence(shape, name, int(wrong[members[0]]), expected, found, different=len(wrong), largest=largest)
        yield msgspec.structs.replace(located, by_distance=by_distance(distances[members]))


def _classes(expected: Floats, found: Floats) -> npt.NDArray[np.str_]:
    """Name each difference: one side NaN, one side infinite, zeros of other sign, or another value."""
    nan = np.isnan(expected) | np.isnan(found)
    infinite = np.isinf(expected) | np.isinf(found)
    zero = (expected == 0) & (found == 0)
    return np.select([nan, infinite, zero], ["nan", "infinite", "zero-sign"], "value")


def ulp_distances(a: Floats, b: Floats) -> npt.NDArray[np.int64]:
    """Give the distance of each pair in units in the last place, zeros of both signs being equal; -1 where one is NaN."""
    distance: npt.NDArray[np.int64] = np.abs(_ordered(a) - _ordered(b))
    distance[np.isnan(a) | np.isnan(b)] = -1
    return distance


def by_distance(distances: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Count distances in ulps by power of two, as ``Divergence.by_distance`` holds them; -1, of a NaN, is not counted."""
    _, lengths = np.frexp(distances[distances >= 0].astype(np.float64))  # of an integer, how many bits it has
    return tuple(np.bincount(lengths).tolist())


def _ordered(values: Floats) -> npt.NDArray[np.int64]:
    bits = values.view(np.int32).astype(np.int64)
    magnitude: npt.NDArray[np.int64] = bits & 0x7FFFFFFF
    magnitude[bits < 0] *= -1
    return magnitude


def _float_divergence(
    shape: Shape,
    kind: str,
    index: int,
    expected: Floats,
    found: Floats,
    *,
    different: int,
    largest: int | None,
) -> Divergence:
    row, column = divmod(index, shape.width)
    distance = int(ulp_distances(expected[index : index + 1], found[index : index + 1])[0])
    is_element = shape.width == shape.cols and shape.op.startswith("dequantize")
    bits = FloatBits(hex_bits(expected[index]), hex_bits(found[index]), distance if distance >= 0 else None)
    return Divergence(
        signature=_signature(shape, "bits", kind),
        op=shape.op,
        authority=shape.authority,
        summary=f"value {index} is {float_text(found[index])} instead of {float_text(expected[index])}",
        expected=float_text(expected[index]),
        found=float_text(found[index]),
        at=index * 4,
        row=row,
        row_name=_row_name(shape, row),
        block=index // shape.kind.block if is_element else None,
        elements=(column,) if is_element else (),
        bits=bits,
        different=different,
        compared=len(expected),
        unit="values",
        largest_ulps=largest,
        remarks=_third_opinion(shape, index, bits) if is_element else (),
    )


def _third_opinion(shape: Shape, index: int, bits: FloatBits) -> tuple[str, ...]:
    if shape.blocks is None:
        return ()
    sides = Sides(shape.authority, int(bits.expected, 16), shape.subject, int(bits.found, 16))
    return third_opinion(shape.kind.name, shape.blocks, index, sides)
