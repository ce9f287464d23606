"""``bench header``: opens each file in turn by every reader, prints a line when it is measured."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import impl
from conformance.bench.header import C_FILE, C_MEMORY, GGUF_PY, OURS, Opened, made_files, measure
from conformance.cases.load import load_suites
from conformance.cases.model import ModelInput
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, UsageError
from conformance.models import locate
from conformance.places import cases_root
from conformance.printable import one_line

_MIB = 1 << 20
HEAD = (
    f"{'file':<30} {'header':>11} {'ours ms':>8} {'C ms':>8} {'ours/C':>7} {'lowest':>7} {'highest':>7} {'memory':>7} "
    f"{'gguf-py ms':>10} {'calls':>6} {'C calls':>7} {'MiB':>6} {'C MiB':>6} rounds  result"
)
NOTE = (
    "medians of the rounds; ours/C in time, C reading from the file, and `memory` the same with C reading from memory: below 1 the "
    "reference is faster; calls of the system, and MiB that the process held more"
)


def bench_header(files: Sequence[Path], seconds: float, *, gguf_py: bool, as_json: bool) -> int:
    """Measure and print; gives 1 where the two find different headers.

    Raises UsageError for a file that cannot be read, ConfigurationError, AuthorityMissingError.
    """
    impl.load_compiled_scan()
    if not as_json:
        print(NOTE, HEAD, sep="\n", flush=True)  # noqa: T201 - the table is what the command is for
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in files or _all(Path(folder)):
            print(f"measuring {one_line(path.name)}", file=sys.stderr, flush=True)  # noqa: T201 - progress, beside the result
            rows.append(_measured(path, seconds, gguf_py=gguf_py))
            if not as_json:
                print(line(rows[-1]), flush=True)  # noqa: T201 - the same
    print(to_json(rows) if as_json else "\n".join(reasons(rows)))  # noqa: T201 - the same
    return EXIT_OK if all(row.same for row in rows) else EXIT_DIVERGENCE


def _measured(path: Path, seconds: float, *, gguf_py: bool) -> Opened:
    try:
        return measure(path, seconds, gguf_py=gguf_py)
    except (impl.GgufError, impl.InputError) as error:
        raise UsageError(str(error), where=str(path), hint="name a file that llama.cpp reads") from None
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(path), hint="name a file that can be read") from None


def _all(folder: Path) -> Iterator[Path]:
    """Give the models that cases name, from the cache, then the made files."""
    inputs = [case.input for case in load_suites(cases_root()) if isinstance(case.input, ModelInput)]
    yield from sorted({locate(each) for each in inputs}, key=lambda path: path.stat().st_size)
    try:
        yield from made_files(folder)
    except OSError as error:
        problem = f"the sparse file is left out: {error.strerror or error}"
        print(problem, "set TMPDIR to a file system that takes files of 100 GB", sep="; ", file=sys.stderr)  # noqa: T201 - a reason


def line(row: Opened) -> str:
    """Give one line of the table."""
    ratios, mine, theirs = row.ratios(C_FILE), row.costs[OURS], row.costs[C_FILE]
    slow = f"{row.median(GGUF_PY) * 1e3:.1f}" if GGUF_PY in row.seconds else "-"
    times = f"{row.median(OURS) * 1e3:>8.2f} {row.median(C_FILE) * 1e3:>8.2f}"
    relative = f"{_middle(ratios):>7.3f} {min(ratios):>7.3f} {max(ratios):>7.3f} {_middle(row.ratios(C_MEMORY)):>7.3f}"
    counted = f"{_count(mine.calls):>6} {_count(theirs.calls):>7} {_mib(mine.peak):>6} {_mib(theirs.peak):>6} {len(ratios):>6}"
    said = "same" if row.same else "DIFFERS"
    return f"{one_line(row.name)[:30]:<30} {row.header:>11,} {times} {relative} {slow:>10} {counted}  {said}"


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _count(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "-"


def _mib(value: int | str) -> str:
    return f"{value / _MIB:.1f}" if isinstance(value, int) else "-"


def reasons(rows: Sequence[Opened]) -> Iterator[str]:
    """Say why something was not counted, each reason once."""
    told = {value for row in rows for cost in row.costs.values() for value in cost if isinstance(value, str)}
    yield from (f"not counted: {one_line(reason)}" for reason in sorted(told))


def to_json(rows: Sequence[Opened]) -> str:
    """Give the facts for a machine: seconds of each round, calls, bytes."""
    return json.dumps([_facts(row) for row in rows], indent=1)


def _facts(row: Opened) -> dict[str, Any]:
    return {
        "name": row.name,
        "bytes": row.size,
        "header": row.header,
        "same": row.same,
        "seconds": {reader: list(times) for reader, times in row.seconds.items()},
        "ratios": {reader: list(row.ratios(reader)) for reader in row.seconds if reader != OURS},
        "calls": {reader: cost.calls for reader, cost in row.costs.items()},
        "peak": {reader: cost.peak for reader, cost in row.costs.items()},
    }
