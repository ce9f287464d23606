"""Joins event streams into a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformance.cases.select import select
from conformance.errors import ConfigurationError, UsageError
from conformance.matrix.cell import Cell, Who
from conformance.matrix.matrix import Column, Matrix, Row, Run
from conformance.matrix.stream import Stream, read_stream
from conformance.printable import one_line
from conformance.report.events import KnownProblem

# The authorities stand first, in this order; then others, then the subjects as they come.
_FIRST = ("llama.cpp", "gguf-py")


def load_matrix(paths: Iterable[Path], patterns: Iterable[str] = ()) -> Matrix:
    """Read event streams (or the folders that hold one) and join them; ``patterns`` choose cases as for a run.

    A subject that is in several streams is taken from the run that began last, whole: a column never mixes two runs.
    Raises UsageError where there is no stream or a pattern fits no case; ConfigurationError for a stream that is none, and where
    streams judge by different versions of an authority.
    """
    streams = sorted((read_stream(path) for path in paths), key=lambda stream: stream.when)
    if not streams:
        raise UsageError("no event stream", hint="name one: reports/NAME/events.ndjson, or its folder")
    _same_authorities(streams)
    taken, notes = _latest(streams)
    rows = _rows(streams, taken)
    wanted = list(patterns)
    return Matrix(
        tuple(Column(who, streams[taken[who]].participants[who], streams[taken[who]].started.oracle) for who in _ordered(taken)),
        tuple(select(rows, wanted) if wanted else rows),
        tuple(Run(stream.path, stream.started) for stream in streams),
        tuple(f"{stream.path}: {stream.warning}" for stream in streams if stream.warning),
        tuple(notes),
        tuple(_problems(streams, taken)),
        partial=bool(wanted),
    )


def _same_authorities(streams: Sequence[Stream]) -> None:
    seen: dict[Who, tuple[str, Stream]] = {}
    for stream in streams:
        for who, one in stream.participants.items():
            if not who.is_authority:
                continue
            version, other = seen.setdefault(who, (one.version, stream))
            if version != one.version:
                raise ConfigurationError(
                    f"streams judge by different versions of {one_line(who.name)}: "
                    f"{one_line(version)} in {other.path}, {one_line(one.version)} here",
                    where=str(stream.path),
                    hint="run one of them again with the other's authorities, or make two matrices",
                )


def _latest(streams: Sequence[Stream]) -> tuple[dict[Who, int], list[str]]:
    """Give the stream that each participant is taken from, and a note on each subject that is in several."""
    taken: dict[Who, int] = {}
    notes = []
    for index, stream in enumerate(streams):
        for who in stream.participants:
            if who.is_authority and who in taken and stream.started.oracle == "golden":
                continue  # a live one answers more than is recorded
            if who in taken and not who.is_authority:
                notes.append(f"{who.name} is in {streams[taken[who]].path} and {stream.path}: taken from the latter, the later run")
            taken[who] = index
    return taken, notes


def _problems(streams: Sequence[Stream], taken: dict[Who, int]) -> Iterator[KnownProblem]:
    """Give the entries of divergences files that no longer hold, of each subject those of the stream that it is taken from."""
    for index, stream in enumerate(streams):
        yield from (one for one in stream.problems if taken.get(Who(one.subject, is_authority=False), index) == index)


def _rows(streams: Sequence[Stream], taken: dict[Who, int]) -> list[Row]:
    """Give a row for each case, by id. What an authority does there is taken from the last live stream, else a recorded one."""
    cells: dict[str, dict[Who, Cell]] = {}
    for stream in sorted(streams, key=lambda one: one.started.oracle == "live"):
        for case, found in stream.cells.items():
            cells.setdefault(case, {}).update({who: cell for who, cell in found.items() if who.is_authority})
    for index, stream in enumerate(streams):
        for case, found in stream.cells.items():
            kept = {who: cell for who, cell in found.items() if not who.is_authority and taken.get(who) == index}
            cells.setdefault(case, {}).update(kept)
    about = {case: result for stream in streams for case, result in stream.about.items()}
    return [Row(case, about[case], found) for case, found in sorted(cells.items()) if found]


def _ordered(who: Iterable[Who]) -> list[Who]:
    def rank(one: Who) -> int:
        if not one.is_authority:
            return len(_FIRST) + 1
        return _FIRST.index(one.name) if one.name in _FIRST else len(_FIRST)

    return sorted(who, key=rank)
