"""Quantize and dequantize of each type, by the reference and by ggml-base, loaded into this process."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt

import impl
from conformance.bench.turns import Turn, take_turns
from conformance.errors import UsageError
from conformance.subjects.authorities.llama_cpp.kinds import Kind, chunk_quantizes, dequantizer, kinds
from conformance.subjects.authorities.llama_cpp.library import libraries
from impl.blocks import SUPPORTED

COLS = 4096
ROWS = 8192  # 128 MiB of float32: half of that was seen to stay in a server's shared cache
_SAMPLE = 16
_ROUNDS = 12
FLOAT = 4

Op = Literal["quantize", "quantize with imatrix", "dequantize"]


@dataclass(frozen=True)
class Measured:
    """One op of one type. ``ours`` and ``theirs`` are medians in seconds for ``elements``; the ratios are ours over theirs."""

    type: str
    op: Op
    threads: int
    elements: int
    rounds: int
    ours: float
    theirs: float
    ratio: float
    lowest: float
    highest: float
    same: bool


@dataclass(frozen=True)
class Task:
    """One op of one type, to be measured with some threads."""

    kind: Kind
    op: Op
    threads: int

    def __str__(self) -> str:
        return f"{self.kind.name} {self.op}, {self.threads} thread{'s' if self.threads > 1 else ''}"


class Data:
    """What all types are measured on: rows of normal numbers, importances, and room for both sides' results."""

    def __init__(self, rows: int = ROWS, cols: int = COLS, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.standard_normal((rows, cols), np.float32)
        self.imatrix = rng.uniform(0.1, 10, cols).astype(np.float32)

    @cached_property
    def floats(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Where each side dequantizes to."""
        return np.zeros_like(self.x), np.zeros_like(self.x)


def tasks(types: Iterable[str], threads: Iterable[int]) -> list[Task]:
    """List what both sides can do of ``types``, or of all if there are none. F32 is a copy and is left out.

    Raises UsageError for a type that is not measured, AuthorityMissingError where the library is not installed.
    """
    both = {name: _ops(kind) for name, kind in kinds().items() if name != "F32" and _ops(kind)}
    wanted = list(types) or list(both)
    for name in wanted:
        if name not in both:
            raise UsageError(f"type {name!r} is not measured", hint=f"These are: {', '.join(both)}.")
    return [Task(kinds()[name], op, count) for name in wanted for op in both[name] for count in threads]


def _ops(kind: Kind) -> list[Op]:
    ops: list[Op] = []
    if kind.name in SUPPORTED["quantize"] and chunk_quantizes(kind):
        ops.append("quantize with imatrix" if libraries().base.ggml_quantize_requires_imatrix(kind.id) else "quantize")
        if ops == ["quantize"] and _takes_imatrix(kind):
            ops.append("quantize with imatrix")
    if kind.name in SUPPORTED["dequantize"] and dequantizer(kind) is not None:
        ops.append("dequantize")
    return ops


def _takes_imatrix(kind: Kind) -> bool:
    """Tell whether an imatrix changes what the library makes of some rows."""
    rng = np.random.default_rng(0)
    x, imatrix = rng.standard_normal((4, 256), np.float32), rng.uniform(0, 9, 256).astype(np.float32)
    plain, weighted = (np.zeros((4, kind.row_bytes(256)), np.uint8) for _ in range(2))
    for out, weights in ((plain, None), (weighted, imatrix)):
        quantize_chunk(kind, x, weights, out, 0, 4)
    return bool((plain != weighted).any())


def quantize_chunk(
    kind: Kind,
    x: npt.NDArray[np.float32],
    imatrix: npt.NDArray[np.float32] | None,
    out: npt.NDArray[np.uint8],
    start: int,
    stop: int,
) -> None:
    """Let ggml quantize the rows ``start`` to ``stop`` of ``x`` into the same rows of ``out``."""
    weights = None if imatrix is None else imatrix.ctypes.data
    cols = x.shape[1]
    libraries().base.ggml_quantize_chunk(kind.id, x.ctypes.data, out.ctypes.data, start * cols, stop - start, cols, weights)


def measure(task: Task, data: Data, seconds: float) -> Measured:
    """Let both sides take turns at ``task`` for about ``seconds``, each round on the next stretch of rows."""
    ours, theirs, results = _sides(task, data)
    with ThreadPoolExecutor(task.threads) as pool:
        shared = theirs if task.threads == 1 else partial(_shared, pool, task.threads, theirs)
        rows = _rows_a_round(ours, shared, len(data.x), seconds, task.threads)

        def at(work: Callable[[int, int], object]) -> Turn:
            return lambda number: work(*_stretch(number, rows, len(data.x)))

        times = take_turns(at(ours), at(shared), seconds)
    start, stop = _stretch(len(times.ours) - 1, rows, len(data.x))
    return Measured(
        type=task.kind.name,
        op=task.op,
        threads=task.threads,
        elements=rows * data.x.shape[1],
        rounds=len(times.ours),
        ours=statistics.median(times.ours),
        theirs=statistics.median(times.theirs),
        ratio=times.ratio,
        lowest=min(times.ratios),
        highest=max(times.ratios),
        same=results[0][start:stop].tobytes() == results[1][start:stop].tobytes(),
    )


Span = Callable[[int, int], object]
"""Does rows from the first number up to the second."""


def _sides(task: Task, data: Data) -> tuple[Span, Span, tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]]:
    """Give what each side does with a span of rows, and where their results are."""
    return _dequantizers(task, data) if task.op == "dequantize" else _quantizers(task, data)


def _quantizers(task: Task, data: Data) -> tuple[Span, Span, tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]]:
    name, weights = task.kind.name, data.imatrix if task.op == "quantize with imatrix" else None
    mine, other = (np.zeros((len(data.x), task.kind.row_bytes(data.x.shape[1])), np.uint8) for _ in range(2))
    libraries().base.ggml_quantize_init(task.kind.id)

    def ours(start: int, stop: int) -> object:
        return impl.quantize(name, data.x[start:stop], weights, threads=task.threads, out=mine[start:stop])

    return ours, partial(quantize_chunk, task.kind, data.x, weights, other), (mine, other)


def _dequantizers(task: Task, data: Data) -> tuple[Span, Span, tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]]:
    rows, cols = data.x.shape
    needed = data.imatrix if libraries().base.ggml_quantize_requires_imatrix(task.kind.id) else None
    blocks = np.resize(impl.quantize(task.kind.name, data.x[:_SAMPLE], needed), (rows, task.kind.row_bytes(cols)))
    mine, other = data.floats
    convert = dequantizer(task.kind)
    assert convert is not None  # noqa: S101 - tasks are made of types that have one

    def ours(start: int, stop: int) -> object:
        return impl.dequantize(task.kind.name, blocks[start:stop], (stop - start, cols), threads=task.threads, out=mine[start:stop])

    def theirs(start: int, stop: int) -> None:
        convert(blocks[start:].ctypes.data, other[start:].ctypes.data, (stop - start) * cols)

    return ours, theirs, (mine, other)


def _shared(pool: ThreadPoolExecutor, threads: int, work: Span, start: int, stop: int) -> None:
    """Share a span of rows between threads; ctypes calls without the interpreter's lock."""
    step = -(-(stop - start) // threads)
    spans = [(at, min(at + step, stop)) for at in range(start, stop, step)]
    for _ in pool.map(lambda span: work(*span), spans):
        pass


def _rows_a_round(ours: Span, theirs: Span, rows: int, seconds: float, threads: int) -> int:
    """Choose how many rows to take in a round, so that there are a dozen rounds; compiles what has to be.

    The sample grows to a quarter of a round: in a short one, what it costs to start threads would be taken for the rows' time.
    """
    ours(0, min(threads, rows))
    few, a_round = min(_SAMPLE, rows), seconds / _ROUNDS
    while (spent := _time_of(ours, theirs, few)) < a_round / 4 and few < rows:
        few = min(4 * few, rows)
    return max(threads, min(rows, int(a_round / (spent / few))))


def _time_of(ours: Span, theirs: Span, rows: int) -> float:
    times = take_turns(lambda _: ours(0, rows), lambda _: theirs(0, rows), 0)
    return statistics.median(times.ours) + statistics.median(times.theirs)


def _stretch(number: int, rows: int, total: int) -> tuple[int, int]:
    """Give the rows of a round: each time the next ones, so that they come from memory."""
    start = number % (total // rows) * rows
    return start, start + rows


def run(todo: Iterable[Task], seconds: float, say: Callable[[str], object], data: Data | None = None) -> Iterator[Measured]:
    """Measure each task; ``say`` is told what is being measured."""
    data = data or Data()
    for task in todo:
        say(str(task))
        yield measure(task, data, seconds)
