"""pytest: the YAML suites as items, one a case and subject, judged by what the command judges them by.

    pytest cases -n 2 --subject impl

Nothing is collected without ``--subject``: an installed plugin must not touch other people's YAML files.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.cases.load import load_suite, load_suites
from conformance.cases.model import Case
from conformance.errors import GgufConformanceError
from conformance.judge.golden import GoldenStore
from conformance.report.events import FAILING, CaseResult, Counts, KnownProblem
from conformance.report.facts import fact_lines, facts_of, headline
from conformance.report.summary import Failure, failures_of
from conformance.report.text import compared
from conformance.run.engine import RunPlan, make_lane, require_golden
from conformance.run.execute import Lane
from conformance.run.known import KnownLedger, known_problems, load_known
from conformance.run.setup import Options, choose_oracle, live_authorities, locator, record_command, repeat_words
from conformance.subjects.manifest import find_manifest

_SUITE = re.compile(rb"^suite:\s*['\"]?([^\s'\"#]+)", re.MULTILINE)
_ATTRIBUTE = "gguf_conformance_results"
_RUNNER = pytest.StashKey["_Runner"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``gguf-conformance run`` that make sense here."""
    group = parser.getgroup("gguf-conformance", "conformance of GGUF implementations")
    group.addoption("--subject", action="append", default=[], metavar="NAME|PATH", help="collect the YAML cases for this subject")
    group.addoption("--oracle", choices=["live", "golden"], help="ask the authorities, or use recorded answers")
    group.addoption("--profile", choices=["llama.cpp", "gguf-py", "spec"], help="who judges")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare what all items share; the controller of xdist adds up, its workers run."""
    subjects = config.getoption("--subject")
    if subjects:
        options = Options(tuple(subjects), oracle=config.getoption("--oracle"), profile=config.getoption("--profile"))
        runner = _Runner(options)
        config.stash[_RUNNER] = runner
        config.pluginmanager.register(_Totals(config, runner))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes."""
    if _RUNNER in config.stash:
        config.stash[_RUNNER].close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect case files, if there is a subject."""
    if _RUNNER not in parent.config.stash or file_path.suffix != ".yaml":
        return None
    declared = _SUITE.search(file_path.read_bytes())
    if declared is None:
        return None
    parts = declared[1].decode().split("/")
    root = file_path.parents[len(parts) - 1] if len(parts) <= len(file_path.parents) else file_path.parent
    return SuiteFile.from_parent(parent, path=file_path, root=root)


class SuiteFile(pytest.File):
    """One YAML suite."""

    def __init__(self, *, root: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = root

    def collect(self) -> Iterator[pytest.Item]:
        """Give an item for each case and subject."""
        runner = self.config.stash[_RUNNER]
        try:
            runner.use(self.root)
            for case in load_suite(self.path, self.root):
                for subject in runner.subjects:
                    name = f"{case.id.rpartition('/')[2]}[{subject.name}]"
                    yield CaseItem.from_parent(self, name=name, case=case, subject=subject.name)
        except GgufConformanceError as problem:
            raise self.CollectError(str(problem)) from None


class CaseFailedError(Exception):
    """A verdict that fails the run; carries the results it is about."""

    def __init__(self, results: list[CaseResult]) -> None:
        super().__init__(results[0].reason)
        self.results = results


class CaseItem(pytest.Item):
    """One case for one subject; an authority that is not what the case declares fails it too."""

    def __init__(self, *, case: Case, subject: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.subject = subject
        self.results: list[CaseResult] = []

    def runtest(self) -> None:
        """Run the case and take its verdict as pytest's outcome."""
        self.results = self.config.stash[_RUNNER].results(self.case, self.subject)
        failed = [result for result in self.results if result.verdict in FAILING]
        if failed:
            raise CaseFailedError(failed)
        own = next(result for result in self.results if result.who == self.subject)
        if own.verdict == "skip":
            pytest.skip(own.reason)
        if own.verdict == "known":
            pytest.xfail("; ".join(own.known))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Give the located difference instead of a traceback."""
        if isinstance(excinfo.value, CaseFailedError):
            return "\n\n".join(_failure_text(result) for result in excinfo.value.results)
        if isinstance(excinfo.value, GgufConformanceError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where the case is declared."""
        return self.case.source, self.case.line - 1, f"{self.case.id}[{self.subject}]"


def _failure_text(result: CaseResult) -> str:
    """Say where a result diverges, one paragraph a divergence."""
    head = f"{result.case}[{result.who}]: {result.verdict}"
    paragraphs = ["\n".join([*_sentences(failure), *fact_lines(facts_of(failure))]) for failure in failures_of(result)]
    return "\n\n".join([head, *paragraphs])


def _sentences(failure: Failure) -> list[str]:
    return [headline(failure), *([failure.divergence.summary] if failure.divergence else [])]


class _Runner:
    """One lane of processes in this pytest process, and the results of the cases that it ran."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.subjects = [find_manifest(name) for name in options.subjects]
        self.root: Path | None = None
        self._lane: Lane | None = None
        self._work: tempfile.TemporaryDirectory[str] | None = None
        self._ledgers = {manifest.name: KnownLedger(load_known(manifest.divergences)) for manifest in self.subjects}
        self._last: tuple[str, list[CaseResult]] = ("", [])

    def use(self, root: Path) -> None:
        """Fix the folder of the cases, which is where golden answers are looked for."""
        if self.root not in (None, root):
            raise GgufConformanceError(f"cases of two folders in one run: {self.root} and {root}", hint="run pytest once for each")
        self.root = root

    def results(self, case: Case, subject: str) -> list[CaseResult]:
        """Give the results of the subject and, with the first subject, of the authorities."""
        if self._last[0] != case.id:
            self._last = (case.id, self._run(case))
        first = subject == self.subjects[0].name
        return [result for result in self._last[1] if result.who == subject or (first and result.role == "authority")]

    def _run(self, case: Case) -> list[CaseResult]:
        plan = self._plan(case)
        if not plan.live:
            require_golden(plan)
        if self._lane is None:
            self._work = tempfile.TemporaryDirectory(prefix="gguf-conformance-")
            self._lane = make_lane(plan, Path(self._work.name))
        results = self._lane.run(case)
        return [self._ledgers[r.who].apply(r) if r.role == "subject" else r for r in results]

    def _plan(self, case: Case) -> RunPlan:
        options = self.options._replace(cases=self.root)
        live = choose_oracle(options.oracle) == "live"
        return RunPlan(
            cases=[case],
            all_ids=[case.id],
            subjects=self.subjects,
            authorities=live_authorities() if live else (),
            store=GoldenStore(options.root / "golden"),
            locate=locator(lambda *_: None),
            profile=options.profile,
            jobs=1,
            command="pytest",
            repeat=shlex.join(repeat_words(options)),
            record=record_command(options),
        )

    def close(self) -> None:
        """End the processes and remove their scratch folder."""
        if self._lane is not None:
            self._lane.close()
        if self._work is not None:
            self._work.cleanup()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send the results along with pytest's report, through xdist too."""
    report = yield
    if isinstance(item, CaseItem) and call.when == "call":
        setattr(report, _ATTRIBUTE, [msgspec.json.encode(result).decode() for result in item.results])
    return report


def _verdicts_text(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))


class _Totals:
    """Adds up what the items bring home: the same numbers that the command prints."""

    def __init__(self, config: pytest.Config, runner: _Runner) -> None:
        self.config = config
        self.runner = runner
        self.verdicts: dict[str, Counter[str]] = {}
        self.counts: dict[str, Counts] = {}
        self.ledgers = {manifest.name: KnownLedger(load_known(manifest.divergences)) for manifest in runner.subjects}
        self.problems: list[KnownProblem] = []

    @property
    def is_worker(self) -> bool:
        """Whether this process is one of xdist's workers: its controller adds up."""
        return hasattr(self.config, "workerinput")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the results of one item."""
        for text in getattr(report, _ATTRIBUTE, ()):
            result = msgspec.json.decode(text, type=CaseResult)
            self.verdicts.setdefault(result.who, Counter())[result.verdict] += 1
            self.counts[result.who] = self.counts.get(result.who, Counts()) + result.counts
            if result.who in self.ledgers:
                self.ledgers[result.who].note(result)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session for known divergences that no longer hold, as the command does."""
        if self.is_worker or not self.verdicts:
            return
        ids = [case.id for case in load_suites(self.runner.options._replace(cases=self.runner.root).root)]
        for manifest in self.runner.subjects:
            self.problems += known_problems(manifest, self.ledgers[manifest.name], ids)
        idle = [m.name for m in self.runner.subjects if set(self.verdicts.get(m.name, ())) <= {"skip"}]
        if (self.problems or idle) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each participant."""
        if not self.verdicts:
            return
        terminalreporter.section("gguf-conformance")
        for who, verdicts in sorted(self.verdicts.items()):
            terminalreporter.write_line(f"{who}: {_verdicts_text(verdicts)} · {compared(self.counts[who])}")
        for problem in self.problems:
            terminalreporter.write_line(
                f"{problem.kind} known divergence of {problem.subject}: {problem.file}: {problem.edit}", red=True
            )
