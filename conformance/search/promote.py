"""Findings made permanent: cases in ``cases/found/``, with what the authorities answer declared and recorded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.cases.load import load_suite, load_suites
from conformance.cases.model import Case
from conformance.cases.select import select
from conformance.cases.written import to_yaml
from conformance.errors import ConfigurationError
from conformance.judge.golden import GoldenStore
from conformance.packages import silent
from conformance.run.record import record
from conformance.run.setup import live_authorities, locator
from conformance.search.declared import suite_text
from conformance.search.observe import declare
from conformance.search.plan import Finding

_ABOUT = "found by `gguf-conformance search`; a case says in its note what it was found by"


def promote(findings: Sequence[Finding], root: Path, origin: str) -> Iterator[str]:
    """Add each finding's case to ``root`` and record what the authorities answer; gives a line to tell of each case.

    ``origin`` says who was searched, against whom; it stands in each case's note.

    A finding that is a case already is left alone, and one that new processes do not show. Raises AuthorityMissingError where an
    authority is not installed, ConfigurationError where a file cannot be written, or has a form that a case cannot be added to.
    """
    authorities = live_authorities()
    for finding in findings:
        if finding.unstable:
            yield f"not promoted, not seen again in fresh processes: {finding.suite}/{finding.slug}"
    findings = [finding for finding in findings if not finding.unstable]
    declared = declare(findings, authorities)
    notes = {finding.slug: f"found by search, {origin}: {finding.summary}" for finding in findings}
    added = [finding for finding in findings if _add(finding, {**declared[finding.slug], "note": notes[finding.slug]}, root)]
    if not added:
        yield "nothing to promote: " + ("every finding is a case already" if findings else "no finding is sure")
        return
    ids = [f"{finding.suite}/{finding.slug}" for finding in added]
    cases = select(load_suites(root), ids)
    refused = record(cases, authorities, GoldenStore(root / "golden"), locator(silent), _quietly).refused
    for name in ids:
        yield f"promoted {name}: {root / Path(name).parent}.yaml"
    for result in refused:
        yield f"not recorded: {result.case}: {result.who}: {result.reason}"


def _add(finding: Finding, case: Mapping[str, Any], root: Path) -> bool:
    """Add one case at the end of its file; tell whether it was not there yet."""
    path = root / f"{finding.suite}.yaml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(suite_text(finding.suite, {finding.slug: case}, {"note": _ABOUT}), encoding="utf-8")
            return True
        before = [one.id for one in load_suite(path, root)]
        if (name := f"{finding.suite}/{finding.slug}") in before:
            return False
        block = to_yaml({"cases": {finding.slug: case}}).partition("\n")[2]
        text = f"{path.read_text(encoding='utf-8').rstrip()}\n{block}"
        _require_cases(text, path, [*before, name])
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ConfigurationError(f"cannot write the case: {problem.strerror or problem}", where=str(path)) from problem
    return True


def _require_cases(text: str, path: Path, ids: Sequence[str]) -> None:
    """Make sure that a case file's new text has these cases. Raises ConfigurationError where the file has another form."""
    with tempfile.TemporaryDirectory(prefix="gguf-conformance-") as folder:
        copy = Path(folder) / "found" / path.name
        copy.parent.mkdir()
        copy.write_text(text, encoding="utf-8")
        try:
            found = [one.id for one in load_suite(copy, Path(folder))]
        except ConfigurationError:
            found = []
    if found != ids:
        raise ConfigurationError(
            f"{ids[-1]} cannot be added at its end, the file is left as it is",
            where=str(path),
            hint="let `cases` come last, each case indented by two spaces",
        )


def _quietly(_: Case) -> None:
    """Tell nothing of a case that is recorded: they are few."""
