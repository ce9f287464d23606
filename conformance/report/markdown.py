"""Markdown reports: one for the run, one a case. Templates are in ``templates/``; no data gets into them unescaped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance.judge.divergence import HexLine
from conformance.printable import lines_of, number, one_line, plural, tail_of
from conformance.report.case_results import CaseResults
from conformance.report.events import CaseResult, Participant, RunStarted
from conformance.report.facts import answer_text, fact_lines, facts_of, headline
from conformance.report.hexdump import hexdump_lines
from conformance.report.paths import case_path
from conformance.report.summary import Failure, RunSummary, choose, suite_of
from conformance.report.tally_table import AMOUNTS, tally_rows, verdict_columns
from conformance.report.text import compared, seconds
from conformance.report.type_table import type_tables

# Failures that the run's summary shows in full; each case's own report has all of its own.
FULL = 25
_STDERR_LINES = 40
# Characters of one line of data in a case's report; its JSON has all of them.
_LIMIT = 4000
# What begins a construct of CommonMark or of GitHub's dialect: anywhere in a line (`<` and `&` become entities), at its start.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_AT_START = re.compile(r"^(\d+(?=[.)](?: |$))|(?=[#>]|=+ *$)|(?=[-+](?:[ -]|$)))(.)")
_INDENT = re.compile(r"^ {4,}")


def prose(value: object) -> Markup:
    """Escape one line of data as Markdown text, in which nothing is markup any more."""
    if isinstance(value, Markup):
        return value
    escaped = _SPECIAL.sub(r"\\\g<0>", one_line(str(value), _LIMIT)).replace("&", "&amp;").replace("<", "&lt;")
    return Markup(_AT_START.sub(r"\1\\\2", _INDENT.sub("   ", escaped)))  # noqa: S704 - escaped just here


def code(value: object) -> Markup:
    """Give one line of data as a code span; its fence is longer than any run of backticks within."""
    text = one_line(str(value), _LIMIT)
    if not text.strip():
        return Markup("(empty)")
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return Markup(fence + pad + text + pad + fence)  # noqa: S704 - a code span, closed by a fence that the text cannot hold


def cell(value: object) -> Markup:
    """Give one line of data as a code span in a table, where a bar ends the cell unless it is escaped."""
    return Markup(code(value).replace("|", "\\|"))  # noqa: S704 - the code span from above


def block(lines: Sequence[str], language: str = "text") -> Markup:
    """Give printable lines as a fenced code block; its fence is longer than any run of backticks within."""
    fence = "`" * max(3, max(map(_longest_run, lines), default=0) + 1)
    return Markup("\n".join([f"{fence}{language}", *lines, fence]))  # noqa: S704 - a block, closed by a fence that no line holds


def case_link(case: str) -> Markup:
    """Give the link from the run's summary to the report on a case."""
    target = f"cases/{case_path(case)}.md".replace("%", "%25")
    return Markup(f"[{prose(case)}]({target})")  # noqa: S704 - prose escapes, case_path leaves nothing that ends a link


def details(participant: Participant) -> Markup:
    """Give what else is known of a participant, for a cell: the details of its hello, the limits of its interface."""
    parts = [Markup("{} {}").format(prose(key), cell(value)) for key, value in participant.details.items()]
    return Markup(", ").join([*parts, *(prose(f"limit: {limit}") for limit in participant.limits)])


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


@cache
def _environment() -> Environment:
    """Make the templates' environment: what is not said to be Markdown already is escaped as prose."""
    environment = Environment(
        loader=PackageLoader("conformance.report"),
        autoescape=True,
        finalize=prose,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        code=code,
        cell=cell,
        block=block,
        case_link=case_link,
        details=details,
        number=number,
        plural=plural,
        seconds=seconds,
        compared=compared,
    )
    return environment


def summary_markdown(summary: RunSummary, started: RunStarted) -> str:
    """Give the run's report, with links to the cases' reports in ``cases/`` beside it."""
    columns = (*verdict_columns(summary), *AMOUNTS)
    full, rest = choose(summary.failures, FULL)
    return (
        _environment()
        .get_template("summary.md.j2")
        .render(
            summary=summary,
            started=started,
            columns=columns,
            rows=tally_rows(summary, columns),
            full=[(failure, headline(failure), fact_lines(facts_of(failure))) for failure in full],
            rest=Counter((failure.result.who, failure.signature) for failure in rest).most_common(),
            more=len(rest),
            totals=[(who, total, compared(total.counts)) for who, total in summary.totals],
            command=lines_of(started.command),
            reasons=[("Known divergences", _by_reason(summary.known)), ("Not asked or not compared", _by_reason(summary.skipped))],
            types=[(table.who, list(table.lines())) for table in type_tables(summary)],
            problems=[(problem, problem.says, lines_of(problem.edit)) for problem in summary.problems],
        )
    )


def _by_reason(reasons: dict[tuple[str, str], list[str]]) -> list[tuple[str, str, int, str]]:
    """Give participant, reason, number of cases and the suites they are in."""
    rows = []
    for (who, reason), cases in sorted(reasons.items(), key=lambda item: (item[0][0], -len(item[1]))):
        suites = Counter(map(suite_of, cases))
        rows.append((who, reason, len(cases), ", ".join(f"{suite} ({number(count)})" for suite, count in suites.items())))
    return rows


def case_markdown(case: CaseResults, started: RunStarted, warning: str, *, full: bool = False) -> str:
    """Give the report on one case for all participants; short, unless ``full``, where all of them pass or were not asked."""
    template = "case.md.j2" if full or case.is_notable else "passing.md.j2"
    return (
        _environment()
        .get_template(template)
        .render(
            case=case,
            started=started,
            warning=warning,
            recipe=lines_of(case.recipe, _LIMIT),
            hexdump=_input_hexdump(case),
            answers=[(answer, answer_text(answer, _LIMIT), ", ".join(compared)) for answer, compared in case.answers],
            failed=_failed(case),
            stderr=[(answer, tail_of(answer.stderr, _STDERR_LINES, _LIMIT)) for answer, _ in case.answers if answer.stderr.strip()],
            repeats=[one_line(command) for command in case.repeats],
        )
    )


def _input_hexdump(case: CaseResults) -> list[str]:
    """Give the input's hexdump, unless a divergence shows the same one with the fault marked in it."""
    shown = [located.hexdump for result in case.results for located in result.divergences]
    return [] if case.input_hexdump in shown else hexdump_lines(case.input_hexdump)


def _failed(case: CaseResults) -> list[tuple[CaseResult, list[tuple[Failure, str, list[str], list[str]]]]]:
    """Give each failure's headline, facts and hexdump; a hexdump that stands further up already is not repeated."""
    shown: set[tuple[HexLine, ...]] = set()
    parts = []
    for result, failures in case.failures:
        of_result = []
        for failure in failures:
            dump = failure.divergence.hexdump if failure.divergence else ()
            facts = [fact for fact in facts_of(failure) if fact.label != "repeat"]
            of_result.append((failure, headline(failure), fact_lines(facts), [] if dump in shown else hexdump_lines(dump)))
            shown.add(dump)
        parts.append((result, of_result))
    return parts
