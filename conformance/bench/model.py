"""A whole file through the reference and through ggml-base: bytes, dequantized values, and these quantized again.

One pass over the file, in pieces that several threads share: memory depends on the piece and the threads, not on the file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import impl
from conformance.bench.blocks import FLOAT, quantize_chunk
from conformance.bench.turns import Times, take_turns
from conformance.errors import UsageError
from conformance.subjects.authorities.llama_cpp.kinds import Kind, chunk_quantizes, dequantizer, kinds
from conformance.subjects.authorities.llama_cpp.library import libraries
from conformance.subjects.authorities.llama_cpp.reader import read_header
from impl.blocks import SUPPORTED
from impl.container.file import File, Tensor

# Elements of a piece: what both sides make of it (twice 512 KiB) is compared before it leaves the second-level cache.
PIECE = 2**17

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


class Piece(NamedTuple):
    """Some rows of a tensor: ``first`` is the number of the first of them, ``raw`` their bytes."""

    tensor: Tensor
    kind: Kind
    first: int
    rows: int
    cols: int
    raw: Bytes


@dataclass
class Tally:
    """What became of one op: ``blocks`` compared, seconds that each side took, and where the first difference is, if any."""

    blocks: int = 0
    ours: float = 0.0
    theirs: float = 0.0
    different: int = 0
    first: str = ""


@dataclass(frozen=True)
class Checked:
    """What a pass over a file compared, in ``seconds``.

    ``left_out``: types that have nothing to dequantize, or that ggml does not. ``by_op[type, op]`` with op "dequantize" or
    "quantize to TYPE".
    """

    elements: int
    by_op: dict[tuple[str, str], Tally]
    left_out: tuple[str, ...]
    seconds: float

    @property
    def different(self) -> int:
        """Pieces that are not the same on both sides."""
        return sum(tally.different for tally in self.by_op.values())


class _Room:
    """One thread's buffers, for both sides."""

    def __init__(self, elements: int) -> None:
        self.ours, self.theirs = (np.empty(elements, np.float32) for _ in range(2))
        self.our_blocks, self.their_blocks = (np.empty(elements * FLOAT, np.uint8) for _ in range(2))


class ModelCheck:
    """The pass over one open file. ``requantize`` names the types that dequantized values are quantized to."""

    def __init__(self, file: File, requantize: Sequence[str], threads: int) -> None:
        self.file = file
        self.targets = [_target(name) for name in dict.fromkeys(name.upper() for name in requantize)]
        self.threads = threads
        self._local = threading.local()
        self._lock = threading.Lock()
        self._by_op: dict[tuple[str, str], Tally] = {}

    def run(self, told: Callable[[int, int], object] = lambda _done, _total: None) -> Checked:
        """Do the pass; ``told`` hears the bytes done and the bytes in all."""
        for piece in self._one_of_each():
            self._check(piece)  # compiles what has to be, outside the times
        self._by_op = {}
        start, done = time.perf_counter(), 0
        total = sum(tensor.nbytes for tensor in self.file.tensors)
        for nbytes in self._each(self._check):
            done += nbytes
            told(done, total)
        seconds = time.perf_counter() - start
        return Checked(
            elements=sum(piece.rows * piece.cols for piece in self._pieces()),
            by_op=self._by_op,
            left_out=tuple(sorted({tensor.type for tensor in self.file.tensors} - set(_dequantized()))),
            seconds=seconds,
        )

    def cost(self, seconds: float) -> Times:
        """Let the pass without requantizing and C's dequantizing alone take turns for about ``seconds``."""
        alone = ModelCheck(self.file, (), self.threads)
        return take_turns(lambda _: alone.run(), lambda _: _drain(alone.dequantize_by_c()), seconds)

    def dequantize_by_c(self) -> Iterator[int]:
        """Let the library dequantize the file alone; gives each piece's bytes."""
        return self._each(self._dequantize_theirs)

    def _each(self, work: Callable[[Piece], int]) -> Iterator[int]:
        if self.threads == 1:
            yield from map(work, self._pieces())
            return
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(work, self._pieces())

    def _pieces(self) -> Iterator[Piece]:
        have = _dequantized()
        for tensor in self.file.tensors:
            if tensor.type in have and tensor.nbytes:
                yield from _cut(tensor, have[tensor.type])

    def _one_of_each(self) -> Iterator[Piece]:
        seen: set[tuple[str, int]] = set()
        for piece in self._pieces():
            if (key := (piece.kind.name, piece.cols)) not in seen:
                seen.add(key)
                yield piece

    @property
    def _room(self) -> _Room:
        if not hasattr(self._local, "room"):
            longest = max((tensor.ne[0] for tensor in self.file.tensors if tensor.ne), default=0)
            self._local.room = _Room(max(PIECE, longest))
        room: _Room = self._local.room
        return room

    def _dequantize_theirs(self, piece: Piece) -> int:
        convert = dequantizer(piece.kind)
        assert convert is not None  # noqa: S101 - pieces are made of types that have one
        convert(piece.raw.ctypes.data, self._room.theirs.ctypes.data, piece.rows * piece.cols)
        return piece.raw.nbytes

    def _check(self, piece: Piece) -> int:
        count, room = piece.rows * piece.cols, self._room
        ours, theirs = (side[:count].reshape(piece.rows, piece.cols) for side in (room.ours, room.theirs))
        start = time.perf_counter()
        self._dequantize_theirs(piece)
        middle = time.perf_counter()
        impl.dequantize(piece.kind.name, piece.raw, ours.shape, out=ours)
        self._note(piece, "dequantize", piece.kind, (time.perf_counter() - middle, middle - start), _same_floats(ours, theirs))
        for target in self.targets:
            if piece.cols % target.block == 0:
                self._requantize(piece, target, theirs)
        return piece.raw.nbytes

    def _requantize(self, piece: Piece, target: Kind, values: Floats) -> None:
        size = piece.rows * target.row_bytes(piece.cols)
        ours, theirs = (side[:size].reshape(piece.rows, -1) for side in (self._room.our_blocks, self._room.their_blocks))
        start = time.perf_counter()
        quantize_chunk(target, values, None, theirs, 0, piece.rows)
        middle = time.perf_counter()
        impl.quantize(target.name, values, out=ours)
        end = time.perf_counter()
        self._note(piece, f"quantize to {target.name}", target, (end - middle, middle - start), np.array_equal(ours, theirs))

    def _note(self, piece: Piece, op: str, unit: Kind, seconds: tuple[float, float], same: bool) -> None:
        with self._lock:
            tally = self._by_op.setdefault((piece.kind.name, op), Tally())
            tally.blocks += piece.rows * piece.cols // unit.block
            tally.ours += seconds[0]
            tally.theirs += seconds[1]
            if not same:
                tally.different += 1
                tally.first = tally.first or f"{piece.tensor.name}, rows {piece.first} to {piece.first + piece.rows - 1}"


def same_places(path: Path, file: File) -> int:
    """Count the tensors whose bytes both readers find at the same offset, as many of them."""
    header = read_header(str(path))
    theirs = [(header.data_offset + int(tensor.offset), int(tensor.nbytes or 0)) for tensor in header.tensors]
    ours = [(file.header.data_offset + tensor.offset, tensor.nbytes) for tensor in file.tensors]
    return sum(mine == other for mine, other in zip(ours, theirs, strict=False))


def _cut(tensor: Tensor, kind: Kind) -> Iterator[Piece]:
    cols = tensor.ne[0] if tensor.ne else 1
    raw = np.frombuffer(tensor.raw, np.uint8)
    size, rows = kind.row_bytes(cols), len(raw) // kind.row_bytes(cols)
    step = max(1, PIECE // cols)
    for first in range(0, rows, step):
        count = min(step, rows - first)
        yield Piece(tensor, kind, first, count, cols, raw[first * size : (first + count) * size])


def _dequantized() -> dict[str, Kind]:
    """Give the types that both sides turn into float32. F32 is left out: there is nothing to do."""
    return {name: kind for name, kind in kinds().items() if name in SUPPORTED["dequantize"] and dequantizer(kind) is not None}


def _target(name: str) -> Kind:
    found = kinds().get(name)
    can = [each.name for each in kinds().values() if _quantizes(each)]
    if found is None or not _quantizes(found):
        raise UsageError(f"nothing is quantized to {name!r} here", hint=f"These are: {', '.join(can)}.")
    libraries().base.ggml_quantize_init(found.id)
    return found


def _quantizes(kind: Kind) -> bool:
    """Tell whether both sides quantize to the type without an imatrix."""
    needs = libraries().base.ggml_quantize_requires_imatrix(kind.id)
    return kind.name in SUPPORTED["quantize"] and chunk_quantizes(kind) and not needs


def _same_floats(ours: Floats, theirs: Floats) -> bool:
    """Compare bits; every NaN is the same."""
    if np.array_equal(ours.view(np.uint32), theirs.view(np.uint32)):
        return True
    nan = np.isnan(ours) & np.isnan(theirs)
    return bool(((ours.view(np.uint32) == theirs.view(np.uint32)) | nan).all())


def _drain(pieces: Iterator[int]) -> None:
    for _ in pieces:
        pass
