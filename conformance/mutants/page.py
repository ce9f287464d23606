"""docs/mutants.md: the manual, and the kill matrix as it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from conformance.mutants.catalogue import Mutant
from conformance.mutants.matrix import Row

PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"
MANUAL = Path(__file__).parent / "manual.md"


def page(catalogue: Mapping[str, Mutant], rows: Mapping[str, Row]) -> str:
    """Give the page's text: the manual, then a table for each catalogue file."""
    return "\n".join([MANUAL.read_text("utf-8").rstrip(), "", *_matrix(catalogue, rows)]) + "\n"


def _matrix(catalogue: Mapping[str, Mutant], rows: Mapping[str, Row]) -> Iterator[str]:
    yield "## The kill matrix\n"
    yield f"{len(rows)} mutants, of which the corpus kills {sum(row.killed for row in rows.values())}."
    for group, mutants in groupby(catalogue.values(), key=lambda mutant: mutant.group):
        yield f"\n### {group.capitalize()}\n\n| mutant | what goes wrong | seen in | killed by | such as |\n|---|---|---|---|---|"
        for mutant in mutants:
            if mutant.name in rows:
                yield _line(mutant, rows[mutant.name])


def _line(mutant: Mutant, row: Row) -> str:
    labels = f" ({', '.join(mutant.labels)})" if mutant.labels else ""
    killed = f"{row.kills} of {row.cases}" if row.killed else "**none**"
    first = ", ".join(kill.case for kill in row.first) or "-"
    signature = f": `{row.first[0].signature}`" if row.first else ""
    return f"| {mutant.name} | {mutant.fault} | {mutant.source}{labels} | {killed} | {first}{signature} |"
