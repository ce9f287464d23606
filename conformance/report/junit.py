"""JUnit XML of a run, as CI servers read it: one ``testsuite`` a suite, one ``testcase`` a case and participant.

``known`` is ``skipped`` with its reason, as test frameworks do with expected failures. A dead authority is an ``error``,
other failing verdicts are a ``failure``. What makes the run itself wrong (it is not whole, an entry of a divergences file no
longer holds) is a test case of the suite ``gguf-conformance``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from conformance.printable import lines_of, one_line
from conformance.report.case_results import CaseResults
from conformance.report.events import FAILING, CaseResult, KnownProblem, RunStarted
from conformance.report.facts import fact_lines, facts_of, headline
from conformance.report.summary import Failure, RunSummary, failures_of, key_of, suite_of

RUN_SUITE = "gguf-conformance"
_LIMIT = 2000


def junit_xml(summary: RunSummary, started: RunStarted, cases: Iterable[CaseResults]) -> bytes:
    """Give the XML document, UTF-8; characters that XML 1.0 does not allow are escaped as in the other reports."""
    suites: dict[str, list[ET.Element]] = {}
    for case in cases:
        suites.setdefault(suite_of(case.id), []).extend(_test_case(result) for result in case.results)
    if run_cases := _run_cases(summary):
        suites.setdefault(RUN_SUITE, []).extend(run_cases)
    root = ET.Element("testsuites", name="gguf-conformance")
    root.extend(_suite(name, started, suites[name]) for name in sorted(suites))
    _count(root, [test_case for test_cases in suites.values() for test_case in test_cases])
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(name: str, started: RunStarted, test_cases: list[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=one_line(name))
    _count(suite, test_cases)
    suite.set("timestamp", one_line(started.started))
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(started):
        ET.SubElement(properties, "property", name=one_line(key), value=one_line(value))
    suite.extend(test_cases)
    return suite


def _count(element: ET.Element, test_cases: list[ET.Element]) -> None:
    element.set("tests", str(len(test_cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(test_case.find(tag) is not None for test_case in test_cases)))
    element.set("time", f"{sum(float(test_case.get('time', 0)) for test_case in test_cases):.3f}")


def _properties(started: RunStarted) -> Iterable[tuple[str, str]]:
    yield "version", started.version
    yield "oracle", started.oracle
    yield "profile", started.profile
    for participant in started.participants:
        yield f"{participant.role} {participant.name}", participant.version
        yield from ((f"{participant.name} {key}", value) for key, value in participant.details.items())


def _test_case(result: CaseResult) -> ET.Element:
    name = f"{one_line(key_of(result.case))}[{one_line(result.who)}]"
    element = ET.Element("testcase", classname=one_line(suite_of(result.case)), name=name, time=f"{result.seconds:.3f}")
    failures = failures_of(result)
    if result.verdict in FAILING:
        tag = "error" if result.verdict in {"authority-crash", "error"} else "failure"
        ET.SubElement(element, tag, message=_message(failures[0]), type=one_line(failures[0].signature, _LIMIT))
    elif result.verdict in ("skip", "known"):
        reason = "; ".join(result.known) or result.reason or "no reason given"
        ET.SubElement(element, "skipped", message=one_line(f"{result.verdict}: {reason}", _LIMIT))
    if result.verdict in FAILING or result.verdict == "known":
        ET.SubElement(element, "system-out").text = "\n".join(_texts(failures))
    return element


def _message(failure: Failure) -> str:
    said = failure.divergence.summary if failure.divergence else failure.result.reason
    return one_line(f"{headline(failure)}: {said}" if said else headline(failure), _LIMIT)


def _texts(failures: list[Failure]) -> Iterable[str]:
    for failure in failures:
        yield _message(failure)
        yield from fact_lines(facts_of(failure))
        yield ""


def _run_cases(summary: RunSummary) -> list[ET.Element]:
    elements = [_problem(problem) for problem in summary.problems]
    if summary.warning:
        element = ET.Element("testcase", classname=RUN_SUITE, name="the run is whole", time="0.000")
        ET.SubElement(element, "error", message=summary.warning, type="incomplete")
        elements.append(element)
    return elements


def _problem(problem: KnownProblem) -> ET.Element:
    name = one_line(f"{problem.kind} {problem.pattern}[{problem.subject}] {problem.signature}", _LIMIT)
    element = ET.Element("testcase", classname=RUN_SUITE, name=name, time="0.000")
    message = f"{one_line(problem.file)}: {problem.kind} entry of known divergences"
    ET.SubElement(element, "failure", message=message, type=problem.kind).text = "\n".join(lines_of(problem.edit))
    return element
