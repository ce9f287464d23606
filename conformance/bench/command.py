"""``bench blocks`` and ``bench compiling``: measure, print each line when it is there, tell on stderr what is under way."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from conformance.bench.blocks import run, tasks
from conformance.bench.compiling import first_uses, run_each
from conformance.bench.search import CHEAP, Rate, rates
from conformance.bench.view import FIRST_HEAD, FIRST_NOTE, HEAD, NOTE, first_line, line, to_json
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, UsageError
from conformance.ggml_types import BY_NAME
from conformance.search.hypotheses import require_hypothesis
from conformance.subjects.manifest import find_manifest


def bench_blocks(types: Sequence[str], seconds: float, threads: Sequence[int], *, as_json: bool) -> int:
    """Measure and print; gives 1 where results differ, since times of different work say nothing."""
    todo = tasks(types, threads)
    if not as_json:
        print(NOTE, HEAD, sep="\n", flush=True)  # noqa: T201 - the table is what the command is for
    rows = []
    for row in run(todo, seconds, _say):
        rows.append(row)
        if not as_json:
            print(line(row), flush=True)  # noqa: T201 - the same
    if as_json:
        print(to_json(rows))  # noqa: T201 - the same
    return EXIT_OK if all(row.same for row in rows) else EXIT_DIVERGENCE


def bench_compiling(types: Sequence[str], *, as_json: bool) -> int:
    """Measure the first use of each op, and print."""
    todo = first_uses(types)
    if not as_json:
        print(FIRST_NOTE, FIRST_HEAD, sep="\n", flush=True)  # noqa: T201 - the table is what the command is for
    rows = []
    for row in run_each(todo, _say):
        rows.append(row)
        if not as_json:
            print(first_line(row), flush=True)  # noqa: T201 - the same
    if as_json:
        print(to_json(rows))  # noqa: T201 - the same
    return EXIT_OK


def bench_search(subject: str, against: str, types: Sequence[str], seconds: float, *, as_json: bool) -> int:
    """Measure how much a search puts to both sides, and print; 1 where the subject departs: that takes time of its own."""
    require_hypothesis()
    named = tuple(name.upper() for name in types) or CHEAP
    if unknown := [name for name in named if name not in BY_NAME]:
        raise UsageError(f"type {unknown[0]!r} does not exist", hint=f"These do: {', '.join(BY_NAME)}.")
    rows: list[Rate] = []
    for rate in rates(find_manifest(subject), find_manifest(against), named, seconds):
        rows.append(rate)
        if not as_json:
            print(f"{rate.what:<22}{rate.per_second:>14,.0f} a second   {rate.different} different", flush=True)  # noqa: T201 - the table
    if as_json:
        print(msgspec.json.encode(rows).decode())  # noqa: T201 - the same
    return EXIT_DIVERGENCE if any(rate.different for rate in rows) else EXIT_OK


def _say(what: str) -> None:
    print(f"measuring {what}", file=sys.stderr, flush=True)  # noqa: T201 - progress, beside the result
