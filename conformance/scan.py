"""Whether the numbers in a file can be right: scales that are lost or broken, values that are no numbers, blocks of zeros.

The reference reads the file and says what each scale is; a tensor is gone through in pieces, so that a large one takes no
more memory than a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

import impl
from conformance.inspect import json_text, missing_data, opened
from conformance.lost import lost_blocks
from impl.scale_rules import RULES
from impl.scales import F16, FIELDS, Bits, Mask, ScaleField, is_infinite, is_nan, is_subnormal, is_zero, magnitudes, of_blocks
from impl.types import TensorType
from impl.validation import bad_block, refused_blocks, scale_records

PIECE_BYTES = 4 << 20
# A minimum so many times a coarse scale's bound outweighs it: the block is nearly constant, and its scale hardly counts.
OUTWEIGHS = 16
VALUES = ("F32", "F16", "BF16", "F64")

Told = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


class ScaleCounts(msgspec.Struct):
    """Of one scale of a type, the number of blocks where it is so."""

    field: str
    zero: int = 0
    subnormal: int = 0
    infinite: int = 0
    nan: int = 0

    def add(self, other: ScaleCounts) -> None:
        """Add another piece's or tensor's counts."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COUNTED = ("zero", "subnormal", "infinite", "nan")


class TensorScan(msgspec.Struct):
    """What one tensor holds. Of float types a block is a value, and ``scales`` counts the values.

    ``zero_blocks``: every scale of the block is 0, so its values are. ``lost_blocks``: of these, the ones whose codes still
    differ, so that they stood for something. ``coarse_blocks``: the scale has so few bits left that rounding it may have moved
    the largest value by more than the type's tolerance (``impl.check``). ``refused_rows``: rows that ``ggml_validate_row_data``
    refuses, and ``first`` where the first one is refused and why. ``missing``: the file ends before its bytes, and nothing was
    looked at.
    """

    index: int
    name: str
    type: str
    ne: tuple[int, ...]
    rows: int
    blocks: int
    scales: tuple[ScaleCounts, ...]
    zero_blocks: int = 0
    lost_blocks: int = 0
    coarse_blocks: int = 0
    refused_rows: int = 0
    first: str = ""
    missing: bool = False

    @property
    def found(self) -> bool:
        """Whether something is wrong: a scale or value that is no number, a scale stored coarsely or lost, a row refused."""
        broken = any(counts.infinite or counts.nan for counts in self.scales)
        return broken or bool(self.lost_blocks or self.coarse_blocks or self.refused_rows or self.missing)

    @property
    def remarkable(self) -> bool:
        """Whether a person should see it: something is wrong, or it has blocks of zeros (of values: nothing else)."""
        zeros = self.zero_blocks == self.blocks > 0 if self.holds_values else self.zero_blocks > 0
        return self.found or zeros

    @property
    def holds_values(self) -> bool:
        """Whether a block is a value."""
        return self.type in VALUES


class Scan(msgspec.Struct):
    """A file's tensors in directory order; ``problem`` says where data is missing."""

    path: str
    size: int
    version: int
    tensors: tuple[TensorScan, ...]
    problem: str = ""

    @property
    def found(self) -> bool:
        """Whether something is wrong."""
        return bool(self.problem) or any(tensor.found for tensor in self.tensors)


def scan(path: Path, told: Told = lambda _done, _total: None) -> Scan:
    """Look at all blocks of ``path``; ``told`` hears after each piece how far it is.

    Raises:
        BrokenFileError: the header is refused.
        UsageError: the path cannot be read.

    """
    with opened(path) as file:
        total, done, scanned = sum(tensor.nbytes for tensor in file.tensors), 0, []
        for tensor in file.tensors:
            tally = _Tally(tensor)
            for start, raw in _pieces(tensor, tally.found):
                tally.add(start, raw)
                done += len(raw)
                told(done, total)
            scanned.append(tally.found)
        return Scan(str(path), path.stat().st_size, file.version, tuple(scanned), missing_data(file))


def _pieces(tensor: impl.Tensor, found: TensorScan) -> Iterator[tuple[int, memoryview]]:
    """Give the tensor's bytes in pieces, each with the number of its first block."""
    nbytes = tensor.info.type.nbytes
    try:
        raw = tensor.raw
    except impl.GgufError:  # told by missing_data; what is there of other tensors is still worth a look
        found.missing = True
        return
    step = max(1, PIECE_BYTES // nbytes)
    for start in range(0, found.blocks, step):
        yield start, raw[start * nbytes : (start + step) * nbytes]


class _Tally:
    """Counts up what one tensor holds, piece by piece."""

    def __init__(self, tensor: impl.Tensor) -> None:
        self._kind = tensor.info.type
        self._row_blocks = max(1, (tensor.ne[0] if tensor.ne else 1) // self._kind.block)
        self._last_refused = -1  # a row may lie in two pieces
        blocks = tensor.nbytes // self._kind.nbytes
        scales = tuple(ScaleCounts(field.name) for field in FIELDS[self._kind.name])
        rows = blocks // self._row_blocks
        self.found = TensorScan(tensor.index, tensor.name, self._kind.name, tensor.ne, rows, blocks, scales)

    def add(self, start: int, raw: memoryview) -> None:
        """Count what is in one piece, whose first block is number ``start`` of the tensor."""
        records = scale_records(self._kind, raw)
        self._add_refused(records, start)
        fields = FIELDS[self._kind.name]
        if not fields:
            return
        sizes = [magnitudes(field, records) for field in fields]
        for field, counts, magnitude in zip(fields, self.found.scales, sizes, strict=True):
            counts.add(_count(field, magnitude))
        zero = _all_zero(fields, sizes)
        self.found.zero_blocks += int(np.count_nonzero(zero))
        if not self.found.holds_values:
            self.found.lost_blocks += lost_blocks(self._kind, raw, zero) if zero.any() else 0
            self.found.coarse_blocks += _coarse(self._kind, fields, sizes)

    def _add_refused(self, records: npt.NDArray[Any], start: int) -> None:
        refused = np.flatnonzero(refused_blocks(self._kind, records))
        if not len(refused):
            return
        if not self.found.first:
            bad = bad_block(self._kind, records, int(refused[0]), start)
            row, place = divmod(bad.block, self._row_blocks)
            self.found.first = f"row {row}, {'element' if self.found.holds_values else 'block'} {place}: {bad.problem}"
        rows = np.unique((refused + start) // self._row_blocks)
        self.found.refused_rows += len(rows) - int(rows[0] == self._last_refused)
        self._last_refused = int(rows[-1])


def _count(field: ScaleField, magnitude: Bits) -> ScaleCounts:
    kinds = (is_zero, is_subnormal, is_infinite, is_nan)
    return ScaleCounts(field.name, *(int(np.count_nonzero(of_blocks(each(field, magnitude)))) for each in kinds))


def _all_zero(fields: Sequence[ScaleField], sizes: Sequence[Bits]) -> Mask:
    return np.asarray(~np.any([of_blocks(~is_zero(field, size)) for field, size in zip(fields, sizes, strict=True)], axis=0))


def _coarse(kind: TensorType, fields: Sequence[ScaleField], sizes: Sequence[Bits]) -> int:
    """Count blocks whose float16 scale is so small that half of 2^-24, the most that rounding moves it, is above the tolerance."""
    if fields[0].form.infinite != F16.infinite:
        return 0
    bound = 0.5 / RULES[kind.name].tolerance
    coarse = (sizes[0] > 0) & (sizes[0] < bound)
    for other in sizes[1:]:
        coarse &= other < OUTWEIGHS * bound
    return int(np.count_nonzero(coarse))


def to_json(scanned: Scan) -> str:
    """Give the scan as JSON: sizes as strings, text that is not UTF-8 as ``{"hex": "fffe"}``; ``found`` as the exit code has it."""
    tree = msgspec.to_builtins(scanned)
    tree["path"], tree["size"], tree["found"] = json_text(scanned.path), str(scanned.size), scanned.found
    for entry, tensor in zip(tree["tensors"], scanned.tensors, strict=True):
        entry["name"], entry["found"] = json_text(tensor.name), tensor.found
        entry["ne"] = [str(dim) for dim in tensor.ne]
    return msgspec.json.format(msgspec.json.encode(tree), indent=2).decode()
