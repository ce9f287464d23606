"""``mutants``: every mutant is put to the corpus, and to a search; one that lives shows a hole in the corpus."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, UsageError
from conformance.mutants.catalogue import Mutant, choose, load_catalogue
from conformance.mutants.corpus import Put, plan_for, put, require_reference
from conformance.mutants.matrix import needless, read_record, write_record
from conformance.mutants.page import PAGE, page
from conformance.mutants.searching import hunt
from conformance.mutants.table import Judged, render
from conformance.report.console import Color, make_console
from conformance.run.setup import Options
from conformance.search.hypotheses import require_hypothesis


class Wanted(NamedTuple):
    """What is asked for. ``seconds`` of search for each mutant, 0 for none; ``record`` also writes the record and its page."""

    names: tuple[str, ...]
    options: Options
    seconds: float
    record: bool = False


def mutants_command(wanted: Wanted, color: str, *, as_json: bool) -> int:
    """Print the kill matrix; 1 where a mutant lives that the corpus does not kill. Raises GgufConformanceError."""
    catalogue = load_catalogue()
    if wanted.record and not PAGE.parent.is_dir():
        raise UsageError("there is no checkout to record in", hint="--record is for those who work on the harness")
    chosen = choose(catalogue, wanted.names)
    if wanted.seconds:  # before all else: what is wanting is told at once
        require_hypothesis()
    whole = len(chosen) == len(catalogue)
    judged = _judge(chosen, wanted)
    idle = needless((case for one in judged for case in one.put.asked), (case for one in judged for case in one.put.killing))
    if as_json:
        sys.stdout.write(_json(judged, idle, wanted))
    else:
        # To some of the mutants nearly all cases are needless.
        render(judged, idle if whole else None, make_console(sys.stdout, cast("Color", color), None))
    if wanted.record:
        _record(catalogue, (one.put for one in judged), whole=whole)
    return EXIT_OK if all(one.put.row.killed for one in judged) else EXIT_DIVERGENCE


def list_command(names: Sequence[str], *, as_json: bool) -> int:
    """Print the mutants: name, group and fault."""
    chosen = choose(load_catalogue(), names)
    if as_json:
        rows = [{"name": one.name, "group": one.group, "fault": one.fault, "source": one.source} for one in chosen]
        sys.stdout.write(_formatted(rows))
        return EXIT_OK
    width = max(len(one.name) for one in chosen)
    for one in chosen:
        sys.stdout.write(f"{one.name:<{width}}  {one.group:<7}  {one.fault}\n")
    return EXIT_OK


def _judge(chosen: Sequence[Mutant], wanted: Wanted) -> list[Judged]:
    plan = plan_for(chosen, wanted.options)
    _say(f"the reference without a fault: {len(plan.cases)} cases")
    require_reference(plan)
    judged: list[Judged] = []
    for number, (mutant, found) in enumerate(zip(chosen, put(chosen, plan), strict=True), 1):
        killed = f"killed by {found.row.kills}" if found.row.killed else "NOT KILLED by any"
        _say(f"{number:>3}/{len(chosen)} {mutant.name}: {killed} of {found.row.cases} cases, {found.seconds:.1f} s")
        judged.append(Judged(mutant, found, None))
    return _hunted(judged, wanted.seconds) if wanted.seconds else judged


def _hunted(judged: Sequence[Judged], seconds: float) -> list[Judged]:
    """Search for each mutant, too."""
    found: list[Judged] = []
    for number, one in enumerate(judged, 1):
        result = hunt(one.mutant, seconds)
        told = f"found by search after {result.seconds:.1f} s" if result.signature else f"not found by search in {seconds:g} s"
        _say(f"{number:>3}/{len(judged)} {one.mutant.name}: {told}")
        found.append(one._replace(hunt=result))
    return found


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _record(catalogue: dict[str, Mutant], puts: Iterable[Put], *, whole: bool) -> None:
    """Put rows into the record, in the catalogue's order, and write the page anew."""
    rows = {} if whole else read_record()
    rows |= {one.row.name: one.row for one in puts}
    kept = [rows[name] for name in catalogue if name in rows]
    write_record(kept)
    PAGE.write_text(page(catalogue, {row.name: row for row in kept}), "utf-8")


def _json(judged: Sequence[Judged], idle: Sequence[str], wanted: Wanted) -> str:
    rows = [
        {
            "name": one.mutant.name,
            "fault": one.mutant.fault,
            "source": one.mutant.source,
            "labels": one.mutant.labels,
            "cases": one.put.row.cases,
            "killing": one.put.killing,
            "first": one.put.row.first,
            "seconds": round(one.put.seconds, 3),
            "search": one.hunt,
        }
        for one in judged
    ]
    lived = [one.mutant.name for one in judged if not one.put.row.killed]
    return _formatted({"mutants": rows, "alive": lived, "kill_none": idle, "search_seconds": wanted.seconds})


def _formatted(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"
