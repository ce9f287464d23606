"""The kill matrix: of each mutant, which cases kill it, and of the corpus, which cases kill none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from conformance.cases.model import Case
from conformance.errors import ConfigurationError
from conformance.mutants.catalogue import Mutant
from conformance.report.events import CaseResult

RECORD = Path(__file__).parent / "matrix.json"
# Killing cases of which the record keeps the ids.
SHOWN = 3


class Kill(msgspec.Struct, frozen=True):
    """A case that a mutant does not pass, and the signature of the first thing that differs."""

    case: str
    signature: str


class Row(msgspec.Struct, frozen=True):
    """What became of one mutant: ``kills`` of ``cases`` that were put to it; ``first`` are the most telling ones."""

    name: str
    cases: int
    kills: int
    first: tuple[Kill, ...]

    @property
    def killed(self) -> bool:
        """Whether any case told it from the reference."""
        return self.kills > 0


def row_of(mutant: Mutant, asked: Sequence[Case], results: Iterable[CaseResult]) -> Row:
    """Make a mutant's row. The most telling case bears one of its labels, asks little, and comes first by id."""
    cases = {case.id: case for case in asked}
    lost = [result for result in results if result.verdict == "diverge"]

    def rank(result: CaseResult) -> tuple[bool, int, str]:
        case = cases[result.case]
        return not set(mutant.labels) & set(case.covers), len(case.ask), case.id

    first = [Kill(result.case, _signature(result)) for result in sorted(lost, key=rank)[:SHOWN]]
    return Row(mutant.name, len(asked), len(lost), tuple(first))


def _signature(result: CaseResult) -> str:
    return result.divergences[0].signature if result.divergences else result.reason


def needless(asked: Iterable[str], killing: Iterable[str]) -> list[str]:
    """Give the ids of the cases that killed no mutant, in order."""
    useful = set(killing)
    return sorted(set(asked) - useful)


def by_suite(ids: Iterable[str]) -> dict[str, int]:
    """Count cases by suite."""
    return dict(sorted(Counter(each.rpartition("/")[0] for each in ids).items()))


def read_record(path: Path = RECORD) -> dict[str, Row]:
    """Give the recorded rows by name. Raises ConfigurationError where there is no record."""
    try:
        rows = msgspec.json.decode(path.read_bytes(), type=list[Row])
    except (OSError, msgspec.DecodeError) as problem:
        raise ConfigurationError(
            f"no record of the kill matrix: {problem}", where=str(path), hint="make it: gguf-conformance mutants --record"
        ) from None
    return {row.name: row for row in rows}


def write_record(rows: Iterable[Row], path: Path = RECORD) -> None:
    """Write rows in their order."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(list(rows)), indent=1) + b"\n")
