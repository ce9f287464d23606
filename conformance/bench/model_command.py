"""``bench model``: passes over a file, prints what was compared, what it cost beside C alone, and the memory it took."""

from __future__ import annotations

import json
import resource
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.bench.model import Checked, ModelCheck, same_places
from conformance.bench.turns import Times
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, UsageError
from conformance.inspect import opened
from conformance.printable import one_line

_MIB = 1 << 20


@dataclass(frozen=True)
class Result:
    """All that is printed. ``peak`` is the most memory that the process held, in bytes, pages of the file among it."""

    path: str
    nbytes: int
    tensors: int
    places: int
    threads: int
    checked: Checked
    cost: Times
    peak: int

    @property
    def same(self) -> bool:
        """Whether both sides agree on everything."""
        return not self.checked.different and self.places == self.tensors


def bench_model(path: Path, requantize: Sequence[str], threads: int, seconds: float, *, as_json: bool) -> int:
    """Check the file and print; gives 1 where anything differs. Raises UsageError, BrokenFileError, AuthorityMissingError."""
    with opened(path) as file:
        file.check_load()
        if not file.tensors:
            raise UsageError("no tensors, so there is nothing to compare", where=str(path), hint="name a file that has some")
        check = ModelCheck(file, requantize, threads)
        checked = check.run(_progress)
        result = Result(
            path=str(path),
            nbytes=sum(tensor.nbytes for tensor in file.tensors),
            tensors=len(file.tensors),
            places=same_places(path, file),
            threads=threads,
            checked=checked,
            cost=check.cost(seconds),
            peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )
    print(to_json(result) if as_json else "\n".join(lines(result)))  # noqa: T201 - what the command is for
    return EXIT_OK if result.same else EXIT_DIVERGENCE


def lines(result: Result) -> Iterator[str]:
    """Give the result for a person."""
    checked, cost = result.checked, result.cost
    check, alone = statistics.median(cost.ours), statistics.median(cost.theirs)
    yield f"{one_line(result.path)}: {result.tensors} tensors, {result.nbytes:,} bytes, {checked.elements:,} values dequantized"
    yield f"{result.places} of {result.tensors} tensors lie at the same offset, with the same size, for both"
    yield ""
    yield f"{'type':<8} {'op':<20} {'blocks':>12} {'ours s':>8} {'C s':>8} {'ours/C':>7}  result"
    for (kind, op), tally in checked.by_op.items():
        ratio = tally.ours / tally.theirs if tally.theirs else 0.0
        said = "same" if not tally.different else f"DIFFERS in {tally.different} pieces, first in {one_line(tally.first)}"
        yield f"{kind:<8} {op:<20} {tally.blocks:>12,} {tally.ours:>8.2f} {tally.theirs:>8.2f} {ratio:>7.2f}  {said}"
    if checked.left_out:
        yield f"not dequantized by both sides, or nothing to dequantize: {', '.join(checked.left_out)}"
    yield ""
    yield f"the whole pass: {checked.seconds:.2f} s with {result.threads} thread{'s' * (result.threads > 1)}"
    yield (
        f"dequantized by both and compared: {check:.3f} s; by C alone: {alone:.3f} s; "
        f"ratio {cost.ratio:.2f} ({min(cost.ratios):.2f} to {max(cost.ratios):.2f}, {len(cost.ours)} rounds)"
    )
    yield f"most memory held: {result.peak // _MIB} MiB, pages of the file among it"


def to_json(result: Result) -> str:
    """Give the result for a machine; times in seconds, memory in bytes."""
    checked, cost = result.checked, result.cost
    ops: list[dict[str, Any]] = [{"type": kind, "op": op, **asdict(tally)} for (kind, op), tally in checked.by_op.items()]
    facts = {
        "path": result.path,
        "bytes": result.nbytes,
        "tensors": result.tensors,
        "places": result.places,
        "threads": result.threads,
        "elements": checked.elements,
        "ops": ops,
        "left_out": checked.left_out,
        "seconds": checked.seconds,
        "check": statistics.median(cost.ours),
        "c_alone": statistics.median(cost.theirs),
        "ratio": cost.ratio,
        "lowest": min(cost.ratios),
        "highest": max(cost.ratios),
        "peak": result.peak,
    }
    return json.dumps(facts, indent=1)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done / total:4.0%}", end="" if done < total else "\n", file=sys.stderr, flush=True)  # noqa: T201 - progress
