"""``search``: what is asked for becomes a plan, its findings become cases with reports, and, where asked, permanent ones."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import msgspec

from conformance.cases.model import AUTHORITIES
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, ConfigurationError, GgufConformanceError, UsageError
from conformance.ggml_types import BY_NAME
from conformance.interrupts import EXIT_INTERRUPTED
from conformance.places import cache_root, cases_root
from conformance.report.write import fresh_folder
from conformance.run.known import load_known
from conformance.run.setup import live_authorities
from conformance.search.engine import search
from conformance.search.plan import FILE_OPS, NUMBER_OPS, Plan
from conformance.search.promote import promote
from conformance.search.results import write_results
from conformance.search.view import told
from conformance.subjects.manifest import find_manifest

DEFAULT_SECONDS = 60.0


class SearchOptions(NamedTuple):
    """What the command is told."""

    subject: str
    against: str
    ops: tuple[str, ...]
    types: tuple[str, ...]
    seconds: float | None
    examples: int | None
    seed: int
    database: Path | None
    no_database: bool
    stop_at_first: bool
    promote: bool
    skip_known: bool
    cases: Path | None


def search_command(options: SearchOptions, folder: Path | None, *, fresh: bool, as_json: bool) -> int:
    """Search, write what was found below ``folder``, print it; 1 where the subject departs from what it is held to.

    Raises UsageError for an op or a type that does not exist, ConfigurationError where a side cannot be started or nothing be kept,
    AuthorityMissingError where an authority is wanting that is to answer to what is promoted.
    """
    plan = make_plan(options)
    if options.promote:
        _require_authority(plan.against.name)
        live_authorities()  # who is missing is told before the search, not after it
    searched = search(plan, _say)
    if folder is None or not searched.findings:
        folder = None
    else:
        folder = fresh_folder(folder) if fresh else folder
        try:
            searched = write_results(plan, searched, folder)
        except KeyboardInterrupt:
            searched = msgspec.structs.replace(searched, interrupted=True)
        except GgufConformanceError:
            sys.stdout.write(told(plan, searched, None, as_json=as_json))
            raise
    sys.stdout.write(told(plan, searched, folder, as_json=as_json))
    if options.promote and searched.divergences:
        for line in promote(
            searched.divergences, options.cases or cases_root(), f"{plan.subject.name} against {plan.against.name}"
        ):
            (sys.stderr if as_json else sys.stdout).write(f"{line}\n")
    if searched.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_DIVERGENCE if searched.departs else EXIT_OK


def _require_authority(against: str) -> None:
    """Make sure that what is found is a difference from an authority: a case holds what these answer, and no other."""
    names = [name for name in AUTHORITIES if name != "spec"]
    if against not in names:
        raise UsageError(
            f"what departs from {against!r} cannot be promoted",
            hint=f"cases are judged by authorities: --against {' or '.join(names)}",
        )


def make_plan(options: SearchOptions) -> Plan:
    """Make the plan of a search: by time where nothing else is said, and then with what earlier ones kept."""
    for name in options.ops:
        if name not in (*FILE_OPS, *NUMBER_OPS):
            raise UsageError(f"op {name!r} does not exist", hint=f"These do: {', '.join((*FILE_OPS, *NUMBER_OPS))}.")
    types = tuple(name.upper() for name in options.types)
    for name in types:
        if name not in BY_NAME:
            known = ", ".join(kind.name for kind in BY_NAME.values() if not kind.removed)
            raise UsageError(f"type {name!r} does not exist", hint=f"These do: {known}.")
    if options.database is not None and options.no_database:
        raise UsageError("a database is named, and none is wanted", hint="leave out --database or --no-database")
    if options.database is not None:
        _require_folder(options.database)
    seconds = options.seconds if options.seconds or options.examples else DEFAULT_SECONDS
    # A search by draws is one that is to be repeated: what others found before it would be in its way.
    kept = None if options.no_database or seconds is None else cache_root() / "search"
    subject = find_manifest(options.subject)
    return Plan(
        subject=subject,
        against=find_manifest(options.against),
        # Who names a type means numbers: files have tensors of all types.
        ops=options.ops or (NUMBER_OPS if types else ()),
        types=types,
        seconds=seconds,
        examples=options.examples,
        seed=options.seed,
        stop_at_first=options.stop_at_first,
        database=options.database or kept,
        known=frozenset(entry.signature for entry in load_known(subject.divergences)) if options.skip_known else frozenset(),
    )


def _require_folder(folder: Path) -> None:
    """Make sure that finds can be kept in it. hypothesis itself says nothing where they cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        hint = "name another by --database, or say --no-database"
        raise ConfigurationError(f"finds cannot be kept: {problem.strerror or problem}", where=str(folder), hint=hint) from problem


def _say(text: str) -> None:
    """Tell on stderr what is found, when it is."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
