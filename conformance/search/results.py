"""The findings of a search on disk: case files that run like any other, the reports of such a run, and a list."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.cases.load import load_suites
from conformance.cases.model import AUTHORITIES, Case
from conformance.errors import ConfigurationError, UsageError
from conformance.judge.golden import GoldenStore
from conformance.packages import silent
from conformance.report.events import CaseResult, Event, EventLog
from conformance.report.write import open_events, write_reports
from conformance.run.engine import RunPlan, run
from conformance.run.setup import available_authorities, locator
from conformance.search.declared import suite_text
from conformance.search.observe import Expects, answers_of, declare
from conformance.search.plan import Finding, Plan, Searched
from conformance.subjects.manifest import Manifest, find_manifest

DECLARED = "declared"
FINDINGS = "findings.json"


def write_results(plan: Plan, searched: Searched, folder: Path) -> Searched:
    """Declare the findings as cases below ``folder``, run these in fresh processes, and write the run's reports beside them.

    Gives the search with findings that the run did not show again marked unstable. Raises ConfigurationError where a side cannot be
    started or nothing can be written.
    """
    authorities = _authorities(plan)
    declared = declare(searched.findings, [manifest for manifest in authorities if manifest.name in AUTHORITIES])
    root = folder / DECLARED
    _write_cases(root, searched.findings, declared)
    held_to = {} if plan.against.name in AUTHORITIES else answers_of(plan.against, searched.findings)
    repeated = _run(plan, authorities, held_to, root, folder)
    confirmed = msgspec.structs.replace(searched, findings=tuple(_confirmed(searched.findings, repeated)))
    (folder / FINDINGS).write_bytes(msgspec.json.format(msgspec.json.encode(confirmed), indent=1))
    return confirmed


def _authorities(plan: Plan) -> list[Manifest]:
    """Give who answers beside the subject: the authorities that are installed, and what it was held to."""
    installed = [manifest for manifest in available_authorities() if manifest.name != plan.against.name]
    return [plan.against, *installed]


def _write_cases(root: Path, findings: Sequence[Finding], declared: Mapping[str, Mapping[str, Any]]) -> None:
    suites: dict[str, dict[str, Mapping[str, Any]]] = {}
    for finding in findings:
        suites.setdefault(finding.suite, {})[finding.slug] = {**declared[finding.slug], "note": finding.summary}
    try:
        for suite, cases in suites.items():
            path = root / f"{suite}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(suite_text(suite, cases), encoding="utf-8")
    except OSError as problem:
        raise ConfigurationError(
            f"cannot write the cases: {problem.strerror or problem}", where=str(root), hint="name another folder by --report"
        ) from problem


def _run(
    plan: Plan, authorities: list[Manifest], held_to: Mapping[str, Expects], root: Path, folder: Path
) -> dict[str, CaseResult]:
    """Run the declared cases; gives the subject's result on each, by the case's key."""
    cases = [_held_to(case, plan.against.name, held_to) for case in load_suites(root)]
    subject = _as_subject(plan.subject, authorities)
    again = _search_command(plan)
    command = _run_command(plan, root) if _can_be_run(plan, subject) else again
    results: dict[str, CaseResult] = {}
    with open_events(folder) as stream:
        log = EventLog(stream)

        def sink(event: Event) -> None:
            if isinstance(event, CaseResult) and command == again:
                event = msgspec.structs.replace(event, repeat=again)  # a search has no cases to choose from
            log.write(event)
            if isinstance(event, CaseResult) and event.who == subject.name:
                results[event.case.rpartition("/")[2]] = event

        run(
            RunPlan(
                cases=cases,
                all_ids=[case.id for case in cases],
                subjects=[subject],
                authorities=authorities,
                store=GoldenStore(root / "golden"),
                locate=locator(silent),
                profile=plan.against.name,
                jobs=min(os.cpu_count() or 1, len(cases)),
                command=command,
                repeat=command,
                record="gguf-conformance record",
            ),
            sink,
        )
    write_reports(folder / "events.ndjson", folder)
    return results


def _can_be_run(plan: Plan, subject: Manifest) -> bool:
    """Tell whether ``run`` judges as the search did: by an authority, of a subject that is none itself."""
    return plan.against.name in AUTHORITIES and subject.name == plan.subject.name


def _run_command(plan: Plan, root: Path) -> str:
    """Give the command that runs the findings' cases again."""
    words = ["run", "--subject", _word_for(plan.subject), "--cases", str(root), "--oracle", "live", "--profile", plan.against.name]
    return shlex.join(["gguf-conformance", *words])


def _search_command(plan: Plan) -> str:
    """Give the command that searches again, by as many draws, or as long."""
    words = ["search", "--subject", _word_for(plan.subject), "--against", _word_for(plan.against), "--seed", str(plan.seed)]
    words += [word for op in plan.ops for word in ("--op", op)]
    words += [word for name in plan.types for word in ("--type", name)]
    words += ["--examples", str(plan.examples)] if plan.examples else ["--seconds", f"{plan.seconds:g}"]
    return shlex.join(["gguf-conformance", *words])


def _as_subject(manifest: Manifest, authorities: Sequence[Manifest]) -> Manifest:
    """Give the subject's manifest, under another name where it answers as an authority too; nothing is known of its divergences."""
    taken = any(manifest.name == other.name for other in authorities)
    name = f"{manifest.name}-as-subject" if taken else manifest.name
    return msgspec.structs.replace(manifest, name=name, divergences=None)


def _held_to(case: Case, against: str, held_to: Mapping[str, Expects]) -> Case:
    """Expect of whatever the subject is held to what it was seen to answer, where that is no authority with a name of its own."""
    if against in case.expect:
        return case
    return msgspec.structs.replace(case, expect={**case.expect, against: held_to[case.id.rpartition("/")[2]]})


def _word_for(manifest: Manifest) -> str:
    """Give what names a subject on a command line: its name where it is known by it, else its manifest."""
    try:
        known = find_manifest(manifest.name).source == manifest.source
    except UsageError:
        known = False
    return manifest.name if known else str(manifest.source)


def _confirmed(findings: Sequence[Finding], repeated: Mapping[str, CaseResult]) -> Iterator[Finding]:
    for finding in findings:
        result = repeated.get(finding.slug)
        shown = finding.against or (result is not None and bool(result.divergences))
        yield msgspec.structs.replace(finding, unstable=finding.unstable or not shown)
