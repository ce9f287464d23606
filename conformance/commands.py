"""What each command does, once its words are parsed: make a plan, run it, show it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
from rich.console import Console
from rich.markdown import Markdown

from conformance.cases.model import Case, ModelInput
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, UsageError
from conformance.judge.golden import GoldenStore
from conformance.printable import plural
from conformance.report.console import Color, make_console
from conformance.report.events import CaseResult, Event, EventLog
from conformance.report.terminal import TerminalView
from conformance.report.write import fresh_folder, open_events, write_reports, writing
from conformance.run.engine import RunPlan, run
from conformance.run.setup import Options, Oracle, choose_oracle, live_authorities, load_cases, locator, make_plan
from conformance.run.update_known import Corpus, collector, require_own_files, update_known, why_not

# Seconds that a step may take before it tells how far it is.
_PATIENCE = 2


def run_command(
    options: Options, folder: Path | None, color: str, *, by_type: bool = False, fresh: bool = False, update: bool = False
) -> int:
    """Run, show the result on the terminal and write reports to ``folder`` if there is one; gives the exit code.

    A ``fresh`` folder is this run's alone: where it is there already, another one beside it is made.
    Reports are written of a run that ends early too; one that could not begin leaves none. With ``update`` a run that came to its
    end brings the subjects' known divergences to what it showed.
    """
    _require_live(options.oracle, update=update)
    plan = make_plan(options, say)
    if update:
        require_own_files(plan.subjects)
    found, take = collector(manifest.name for manifest in plan.subjects)
    if folder is not None and fresh:
        folder = fresh_folder(folder)
    began = False
    with ExitStack() as stack:
        view = stack.enter_context(TerminalView(color=cast("Color", color), reports=folder))
        log = EventLog(stack.enter_context(open_events(folder))) if folder else None

        def sink(event: Event) -> None:
            nonlocal began
            if log is not None:
                log.write(event)  # first: what is shown is kept
            began = True
            take(event)
            view.on_event(event)

        try:
            run(plan, sink)
        finally:
            if began:
                try:
                    if folder is not None:  # first: what is shown is written, even where it cannot be shown
                        write_reports(folder / "events.ndjson", folder)
                finally:
                    view.finish(by_type=by_type)
    if not update:
        return view.summary.exit_code
    if reason := why_not(view.summary):
        say(f"known divergences stay as they were: {reason}")
        return view.summary.exit_code
    return _update(plan, found, Corpus(load_cases(options)[1]))


def _require_live(oracle: Oracle | None, *, update: bool) -> None:
    if update and choose_oracle(oracle) != "live":
        raise UsageError("known divergences are updated by a live run", hint="add --oracle live; recorded answers show less")


def _update(plan: RunPlan, found: Mapping[str, Sequence[CaseResult]], corpus: Corpus) -> int:
    """Write each subject's known divergences and tell what is left to explain; gives 0."""
    for manifest in plan.subjects:
        done = update_known(manifest, found[manifest.name], corpus)
        gone = f", {done.gone} no longer happen and are gone" if done.gone else ""
        wait = "waits" if done.unexplained == 1 else "wait"
        asked = f"; {done.unexplained} {wait} for a reason: until then a run fails" if done.unexplained else ""
        sys.stdout.write(f"{manifest.name}: {plural(len(done.entries), 'known divergence')} in {done.path}{gone}{asked}\n")
    sys.stdout.write(f"exit {EXIT_OK}: what this run showed is written down, whatever it exits with by itself\n")
    return EXIT_OK


class PeersRun(NamedTuple):
    """How the cases are run over several subjects: see ``run``. ``record`` puts the summary into docs/matrix.md."""

    select: tuple[str, ...]
    oracle: Oracle | None
    folder: Path
    color: str
    update: bool
    record: bool
    judges_only: bool


def check_peers(wanted: PeersRun) -> None:
    """Refuse what could not be run or kept, before minutes are spent on building. Raises GgufConformanceError."""
    _require_live(wanted.oracle, update=wanted.update)
    if wanted.record and wanted.select:
        raise UsageError("a part of the cases is not recorded", hint="leave out --select, or leave out --record")
    load_cases(Options((), wanted.select))
    with writing(wanted.folder):
        wanted.folder.mkdir(parents=True, exist_ok=True)


def run_peers(wanted: PeersRun, subjects: Sequence[str]) -> int:
    """Run the cases over several subjects, and show the matrix of them; gives the exit code of the run.

    A live run of all cases in a checkout is held to the summary in docs/matrix.md: what differs is told, and gives EXIT_DIVERGENCE.
    """
    from conformance.matrix.command import Wanted, show_matrix
    from conformance.matrix.load import load_matrix
    from conformance.matrix.record import PAGE, drift

    options = Options(tuple(subjects), wanted.select, wanted.oracle, judges_only=wanted.judges_only)
    code = run_command(options, wanted.folder, wanted.color, update=wanted.update)
    matrix = load_matrix([wanted.folder])
    show_matrix(matrix, Wanted(wanted.folder / "matrix", None, PAGE if wanted.record else None), wanted.color)
    sys.stdout.write(f"matrix {wanted.folder / 'matrix' / 'index.html'}\n")
    if wanted.record or wanted.select or not PAGE.is_file() or choose_oracle(wanted.oracle) != "live":
        return code
    drifted = drift(matrix, PAGE)
    sys.stdout.write("".join(f"docs/matrix.md: {line}\n" for line in drifted))
    return code or (EXIT_DIVERGENCE if drifted else EXIT_OK)


def say(phase: str, done: int | None = None, total: int | None = None) -> None:
    """Tell on stderr what a long step does; percentages only where somebody watches."""
    if done is None or total is None:
        sys.stderr.write(f"{phase}\n")
    elif sys.stderr.isatty():
        sys.stderr.write(f"\r{phase}: {100 * done // max(total, 1)}%{'' if done < total else chr(10)}")
    sys.stderr.flush()


def build_command(subjects: Sequence[str], *, again: bool) -> int:
    """Build adapters one after the other; one that fails ends it. Gives the exit code.

    One that is not the project's own is built each time: it may take in a library that stands elsewhere, and what builds it
    (cargo, go, make) knows best what has changed there.
    """
    from conformance.subjects.building import build, self_contained
    from conformance.subjects.manifest import find_manifest, require_command

    for subject in subjects:
        manifest = find_manifest(subject, check_command=False)
        if not manifest.build:
            require_command(manifest)
            say(f"{manifest.name}: its manifest has no build commands, nothing to do")
            continue
        say(f"building {manifest.name} into {manifest.built}")
        seconds = build(manifest, say, again=again or not self_contained(manifest))
        say(f"{manifest.name}: nothing has changed" if seconds is None else f"{manifest.name}: built in {seconds:.0f} s")
    return EXIT_OK


def list_command(options: Options, *, as_json: bool) -> None:
    """Print the selected cases, one a line."""
    chosen, _ = load_cases(options)
    if as_json:
        rows = [{"id": c.id, "ask": c.ask, "covers": c.covers, "spec": c.spec, "note": c.note, "expect": c.expect} for c in chosen]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows), indent=1).decode() + "\n")
        return
    width = max(len(case.id) for case in chosen)
    for case in chosen:
        sys.stdout.write(f"{case.id:<{width}}  {' '.join(case.ask)}{_about(case)}\n")


def _about(case: Case) -> str:
    return f"  [{' '.join(case.covers)}]" if case.covers else ""


def explain_command(options: Options, color: str) -> int:
    """Run the cases and print each one's full report; gives the exit code of the run."""
    from conformance.report.case_results import group
    from conformance.report.markdown import case_markdown
    from conformance.report.summary import summarize

    events: list[Event] = []
    code = run(make_plan(options, say), events.append)
    summary = summarize(events)
    assert summary.started is not None  # noqa: S101 - a run's first event
    console = make_console(sys.stdout, cast("Color", color), None)
    for case in group(events):
        _print_markdown(console, case_markdown(case, summary.started, summary.warning, full=True))
    return code


# Columns that an annotated hexdump takes.
RENDERED_WIDTH = 110


def _print_markdown(console: Console, text: str) -> None:
    """Render for a person at a terminal wide enough for its hexdumps; leave the Markdown as it is in a pipe."""
    if console.is_terminal and console.width >= RENDERED_WIDTH:
        console.print(Markdown(text))
    else:
        sys.stdout.write(text)


def record_command(options: Options) -> int:
    """Record golden answers; 1 where an authority is not what a case declares."""
    from conformance.run.record import record

    chosen, _ = load_cases(options)
    with _counter(len(chosen)) as count:
        recorded = record(chosen, live_authorities(), GoldenStore(options.root / "golden"), locator(say), count)
    for path in recorded.files:
        sys.stdout.write(f"recorded {path}\n")
    for result in recorded.refused:
        sys.stderr.write(f"not recorded: {result.case}: {result.who}: {result.reason}\n")
    return EXIT_DIVERGENCE if recorded.refused else EXIT_OK


class _Counter:
    """Counts cases on stderr."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def __call__(self, case: Case) -> None:
        self.done += 1
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{self.done}/{self.total} {case.id}")
        elif self.done % 50 == 0:
            sys.stderr.write(f"{self.done}/{self.total}\n")
        sys.stderr.flush()


@contextmanager
def _counter(total: int) -> Iterator[_Counter]:
    yield _Counter(total)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


def doctor_command(color: str, *, as_json: bool) -> int:
    """Print the diagnosis; 0 if nothing fails, else the exit code of the gravest finding."""
    from conformance.doctor import diagnose
    from conformance.doctor_view import exit_code, render

    checks = diagnose()
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(checks), indent=1).decode() + "\n")
    else:
        render(checks, make_console(sys.stdout, cast("Color", color), None))
    return exit_code(checks)


def scan_command(file: Path, color: str, *, as_json: bool) -> int:
    """Print what is remarkable in a file's blocks; 1 where something is wrong."""
    from conformance.scan import scan, to_json
    from conformance.scan_view import render

    with _percentage("scanning") as told:
        scanned = scan(file, told)
    if as_json:
        sys.stdout.write(to_json(scanned) + "\n")
    else:
        render(scanned, make_console(sys.stdout, cast("Color", color), None))
    return EXIT_DIVERGENCE if scanned.found else EXIT_OK


@contextmanager
def _percentage(phase: str) -> Iterator[Callable[[int, int], None]]:
    """Tell on stderr how far a step is, once it has taken two seconds, where somebody watches; in the end leave the line empty."""
    began, watched = time.monotonic(), sys.stderr.isatty()

    def told(done: int, total: int) -> None:
        if watched and time.monotonic() - began > _PATIENCE:
            sys.stderr.write(f"\r{phase}: {100 * done // max(total, 1)}%")
            sys.stderr.flush()

    try:
        yield told
    finally:
        if watched:
            sys.stderr.write("\r\x1b[K")


def fetch_command(options: Options) -> int:
    """Fetch the files of the selected model cases; prints where each is."""
    from conformance.models import fetch_all

    chosen, _ = load_cases(options)
    for path in fetch_all(_models(chosen), say):
        sys.stdout.write(f"{path}\n")
    return EXIT_OK


def _models(cases: Sequence[Case]) -> list[ModelInput]:
    return [case.input for case in cases if isinstance(case.input, ModelInput)]
