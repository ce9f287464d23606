"""Writes the views of a stream into a folder: ``summary.md``, ``junit.xml``, and ``cases/<id>.md`` and ``.json``."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from conformance.errors import ConfigurationError
from conformance.report.case_results import CaseResults, group
from conformance.report.casejson import case_json
from conformance.report.events import Event, RunStarted, read_events
from conformance.report.junit import junit_xml
from conformance.report.markdown import case_markdown, summary_markdown
from conformance.report.paths import case_path
from conformance.report.summary import summarize

EVENTS = "events.ndjson"
SUMMARY = "summary.md"
JUNIT = "junit.xml"
CASES = "cases"
# Lists what was written below cases/, so that the next run can take away its own old reports and nothing else.
WRITTEN = ".written"


class Written(NamedTuple):
    """What was written: the run's two reports and the number of cases with a report each."""

    summary: Path
    junit: Path
    cases: int


def fresh_folder(wanted: Path) -> Path:
    """Make the folder ``wanted`` and give it; where it is there, as of a run that began in the same second, ``wanted-2`` and so on.

    Raises ConfigurationError where no folder can be made there.
    """
    with writing(wanted):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                break
    return folder


def prepare_folder(folder: Path) -> Path:
    """Make ``folder`` and give the path of the event stream in it, for a run that is about to start.

    Raises ConfigurationError, naming the folder and the reason, where reports could not be written there later.
    """
    events = folder / EVENTS
    with writing(folder):
        (folder / CASES).mkdir(parents=True, exist_ok=True)
        for place in (folder, folder / CASES):
            with tempfile.TemporaryFile(dir=place):
                pass
        for path in (events, folder / SUMMARY, folder / JUNIT, folder / CASES / WRITTEN):
            if path.exists():
                with path.open("ab"):
                    pass
    return events


@contextmanager
def open_events(folder: Path) -> Iterator[IO[bytes]]:
    """Prepare ``folder`` for a run that begins, and open its event stream, empty: it is this run's alone until it is closed.

    Raises ConfigurationError as ``prepare_folder``, and where another run is writing there: each would spoil the other's.
    """
    with prepare_folder(folder).open("ab", buffering=0) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                "another run writes its reports there", where=str(folder), hint="wait for its end, or name another folder: --report"
            ) from None
        except OSError:  # a file system without locks
            pass
        if os.fstat(stream.fileno()).st_size:  # a device has none, and cannot be cut
            with writing(folder):
                stream.truncate(0)
        yield stream


def write_reports(source: Path | Iterable[Event], folder: Path) -> Written:
    """Write all reports on the stream ``source`` (events, or the path of a file of them) into ``folder``.

    Reports on cases that an earlier call wrote there and that this stream does not have are removed.
    Raises ConfigurationError for a stream that is none, and, naming the folder and the reason, where writing fails.
    """
    events = list(read_events(source) if isinstance(source, Path) else source)
    summary, cases = summarize(events, str(source) if isinstance(source, Path) else ""), group(events)
    started = summary.close()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / SUMMARY, summary_markdown(summary, started).encode())
        _write(folder / JUNIT, junit_xml(summary, started, cases))
        _write_cases(folder / CASES, cases, started, summary.warning)
    return Written(folder / SUMMARY, folder / JUNIT, len(cases))


def _write_cases(folder: Path, cases: list[CaseResults], started: RunStarted, warning: str) -> None:
    folder.mkdir(exist_ok=True)
    _remove_old(folder)
    names = [f"{case_path(case.id)}.{ending}" for case in cases for ending in ("md", "json")]
    _write(folder / WRITTEN, "".join(f"{name}\n" for name in names).encode())
    for case in cases:
        path = case_path(case.id)
        _write(folder / f"{path}.md", case_markdown(case, started, warning).encode())
        _write(folder / f"{path}.json", case_json(case, started, warning).encode())


def _remove_old(folder: Path) -> None:
    """Remove the reports that the list of an earlier call names; whatever else is in the folder is not ours."""
    for name in listed(folder / WRITTEN):
        path = PurePosixPath(name)
        if not path.is_absolute() and ".." not in path.parts and path.suffix in (".md", ".json"):
            (folder / path).unlink(missing_ok=True)


def listed(path: Path) -> list[str]:
    """Give the names of files that the list ``path`` holds; none where there is no list. What can be no name is left out."""
    if not path.exists():
        return []
    names = path.read_bytes().decode("utf-8", "replace").split("\n")
    return [name for name in names if name.isprintable() and "\N{REPLACEMENT CHARACTER}" not in name]


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what goes wrong while writing below ``folder`` into a ConfigurationError that names it and the reason."""
    try:
        yield
    except OSError as problem:
        raise ConfigurationError(
            f"cannot write {problem.filename or 'reports'}: {problem.strerror or problem}",
            where=str(folder),
            hint="name a folder that can be written to, or make room in this one",
        ) from problem
