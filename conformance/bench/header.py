"""Opening a file: the reference beside the C library, from the file and from memory, and beside gguf-py, all in turn."""

from __future__ import annotations

import logging
import statistics
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import impl
from conformance.bench.child import READERS, Cost, cost
from conformance.errors import UsageError
from conformance.subjects.authorities.llama_cpp.library import InitParams, libraries

OURS = "impl"
C_FILE = "llama.cpp"
C_MEMORY = "llama.cpp, memory"
GGUF_PY = "gguf-py"
LEAST_ROUNDS = 5
# Of the time that is measured, what gguf-py may have after its first round; it takes ten microseconds an element.
_SLOW_SHARE = 0.3

Turn = Callable[[], object]


@dataclass(frozen=True)
class Opened:
    """One file. ``seconds`` are each reader's rounds; ``header`` is where the data start, in bytes; ``same``: both find as much."""

    name: str
    size: int
    header: int
    same: bool
    seconds: dict[str, tuple[float, ...]]
    costs: dict[str, Cost] = field(default_factory=dict)

    def median(self, reader: str) -> float:
        """Give the median of a reader's rounds."""
        return statistics.median(self.seconds[reader])

    def ratios(self, reader: str) -> tuple[float, ...]:
        """Give the reference's time over the reader's, round by round."""
        return tuple(mine / other for mine, other in zip(self.seconds[OURS], self.seconds[reader], strict=False))


def open_by_c(path: Path) -> int:
    """Open a file with the library, as a caller who wants no tensors; give the address to free."""
    address: int = libraries().base.gguf_init_from_file(str(path).encode(), InitParams(True, None))
    return address


def measure(path: Path, seconds: float, *, gguf_py: bool = True) -> Opened:
    """Measure all readers on one file, for about ``seconds`` or five rounds, then each one's cost in a child.

    Raises GgufError or InputError where the reference refuses the file, UsageError where gguf-py does.
    """
    file = impl.open(path)
    head = path.open("rb").read(file.data_offset)
    turns = _turns(path, head, gguf_py=gguf_py)
    for name, turn in turns.items():
        if name != GGUF_PY:
            turn()  # what a first use loads is no part of it
    times = rounds(turns, seconds, slow={GGUF_PY})
    costs = {reader: cost(reader, path) for reader in READERS if reader in turns}
    return Opened(path.name, path.stat().st_size, file.data_offset, _same(path, file), times, costs)


def rounds(
    turns: Mapping[str, Turn], seconds: float, slow: set[str], clock: Callable[[], float] = time.perf_counter
) -> dict[str, tuple[float, ...]]:
    """Run all, round after round, until they have taken ``seconds``, at least five times; who begins changes each round.

    Those that are ``slow`` take part in the first round, then as long as they have taken no more than a share of the time; theirs
    does not count.
    """
    times: dict[str, list[float]] = {name: [] for name in turns}
    names = list(turns)
    used, number = 0.0, 0
    while used < seconds or number < LEAST_ROUNDS:
        for name in names[number % len(names) :] + names[: number % len(names)]:
            if name in slow and number and sum(times[name]) > _SLOW_SHARE * seconds:
                continue
            start = clock()
            turns[name]()
            times[name].append(clock() - start)
            used += 0 if name in slow else times[name][-1]
        number += 1
    return {name: tuple(taken) for name, taken in times.items()}


def _turns(path: Path, head: bytes, *, gguf_py: bool) -> dict[str, Turn]:
    base = libraries().base
    turns: dict[str, Turn] = {
        OURS: lambda: impl.open(path),
        C_FILE: lambda: base.gguf_free(open_by_c(path)),
        C_MEMORY: lambda: base.gguf_free(base.gguf_init_from_buffer(head, len(head), InitParams(True, None))),
    }
    if gguf_py:
        turns[GGUF_PY] = _by_gguf_py(path)
    return turns


def _by_gguf_py(path: Path) -> Turn:
    from gguf.gguf_reader import GGUFReader  # noqa: PLC0415 - only where it is measured

    logging.getLogger("gguf").setLevel(logging.ERROR)

    def turn() -> None:
        try:
            GGUFReader(path)
        except Exception as error:  # noqa: BLE001 - it refuses by whatever numpy and Python raise
            problem = f"gguf-py refuses it: {type(error).__name__}: {error}"
            raise UsageError(problem, where=str(path), hint="leave gguf-py out: --no-gguf-py") from None

    return turn


def _same(path: Path, file: impl.File) -> bool:
    """Tell whether the library finds as many pairs and tensors, and the data at the same place."""
    base, address = libraries().base, open_by_c(path)
    theirs = (base.gguf_get_n_kv(address), base.gguf_get_n_tensors(address), base.gguf_get_data_offset(address))
    base.gguf_free(address)
    return theirs == (len(file.metadata), len(file.tensors), file.data_offset)


def made_files(folder: Path) -> Iterator[Path]:
    """Write the files that no model is like: a million strings, and 100 GB of data that take no room on the disk.

    Raises OSError where the file system takes no file of that size.
    """
    strings = folder / "a million strings"
    strings.write_bytes(_head(_strings(1_000_000)))
    yield strings
    cols, rows = 4096, 24_414_062
    sparse = folder / "100 GB, sparse"
    sparse.write_bytes(_head(_strings(1000), _entry(cols, rows)))
    with sparse.open("r+b") as file:
        file.truncate(-(-sparse.stat().st_size // 32) * 32 + cols * rows)
    yield sparse


def _text(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def _strings(count: int) -> bytes:
    """Give a pair that is an array of strings, of types 9 and 8."""
    return _text(b"words") + struct.pack("<iiQ", 9, 8, count) + b"".join(_text(b"token %d" % number) for number in range(count))


def _entry(cols: int, rows: int) -> bytes:
    """Give the entry of a tensor of type I8, 24."""
    return _text(b"t") + struct.pack("<IQQiQ", 2, cols, rows, 24, 0)


def _head(pair: bytes, entry: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, bool(entry), 1) + pair + entry
