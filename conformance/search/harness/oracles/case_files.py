"""Whatever stands in a case file: cases with sound ids, all listed, and a whole run of them; or a refusal that names the file."""

from __future__ import annotations

import json
import re
from pathlib import Path

from conformance.cases.load import load_suites
from conformance.cases.model import Case, ModelInput
from conformance.errors import GgufConformanceError
from conformance.search.harness.broken import require
from conformance.search.harness.invoke import invoke
from conformance.search.harness.oracles.refusals import no_traceback, require_refusal
from conformance.search.harness.oracles.streams import require_reports, require_sound_run
from conformance.search.harness.stub import Setup, run_small, sound

SUITE = "own/files"
# Inputs beyond this are right, and too large to be made thousands of times.
_MOST_CASES = 12
_LARGE = re.compile(rb"\d{5,}|[\^*]|[eE]\d|0x[0-9a-f]{4,}|levels")


def check(document: bytes, folder: Path) -> None:
    """Load, list and run the cases of the file ``own/files.yaml`` that holds ``document``."""
    root = folder / "cases"
    path = root / f"{SUITE}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document)
    try:
        with no_traceback("loading the cases"):
            cases = load_suites(root)
    except GgufConformanceError as problem:
        require_refusal(problem, 3, path)
        ended = invoke("list", "--cases", str(root))
        require(ended.code == 3, f"load refuses the file, list ends with {ended.code}")
        return
    _require_ids(cases)
    _require_listed(cases, root)
    if len(cases) <= _MOST_CASES and not _LARGE.search(document) and not any(isinstance(case.input, ModelInput) for case in cases):
        _require_run(cases, folder)


def _require_ids(cases: list[Case]) -> None:
    ids = [case.id for case in cases]
    require(len(set(ids)) == len(ids), "two cases have one id")
    require(all(name.startswith(f"{SUITE}/") for name in ids), "an id that does not begin with the file's place")
    for case in cases:
        unanswered = [f"{who} of {op}" for who, ops in case.expect.items() for op in case.ask if not ops.get(op)]
        require(not unanswered, f"{case.id} expects nothing of {', '.join(unanswered[:3])}")


def _require_listed(cases: list[Case], root: Path) -> None:
    listed = invoke("list", "--cases", str(root), "--json")
    require(listed.code == 0, f"list of sound cases ends with {listed.code}: {listed.err.strip()[:200]}")
    rows = json.loads(listed.out)
    require([row["id"] for row in rows] == [case.id for case in cases], "list does not give all cases")
    require(invoke("list", "--cases", str(root), encoding="ascii").code == 0, "list gives JSON, but no lines")


def _require_run(cases: list[Case], folder: Path) -> None:
    with no_traceback("running the cases"):
        ran = run_small(folder / "golden", folder, sound, Setup(cases, profile="spec"))
    require_sound_run(ran.stream, ran.code, [case.id for case in cases], ["small"])
    require_reports(folder / "events.ndjson", ran.code)
