"""The cases about the protocol: each fault of plumbing fails those that are about it, and no other; each case fails for one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.cases.load import load_suites
from conformance.cases.select import is_plumbing
from conformance.judge.golden import GoldenStore
from conformance.places import cases_root
from conformance.report.events import CaseResult
from conformance.report.summary import key_of
from conformance.run.engine import RunPlan, in_order, run
from conformance.subjects.manifest import Manifest, find_manifest, load_manifest

FAKES = Path(__file__).parents[1] / "fakes"
CASES = [case for case in load_suites(cases_root()) if is_plumbing(case.id)]
OVER = {"tensor-over", "write-over", "quantize-over", "dequantize-over", "dot", "matvec"}
# Of the types of which the size alone is looked at there are three rows.
SIZES = {key_of(case.id) for case in CASES if any(expect.kind == "observe" for (expect,) in case.expect["llama.cpp"].values())}

# By suite: the fault, and the cases that it fails.
ANSWERS = {
    "through-a-double": {"integers", "large-array"},
    "quiet-nan": {"floats"},
    "no-sign-of-zero": {"floats"},
    "true-itself": {"bools"},
    "control-as-it-is": {"strings"},
    "nul-as-it-is": {"strings-with-nul"},
    "replaced": {"strings-of-bytes"},
    "no-empty-arrays": {"arrays"},
    "null-for-an-empty-list": {"empty"},
    "dims-reversed": {"tensors"},
    "line-of-a-mebibyte": {"large-strings"},
    "line-of-a-pipe": {"large-strings", "large-array"},
    "exits-after-a-refusal": {"refusal"},
    # The first is about it; the second is the next that is asked after `refusal`.
    "remembers-a-refusal": {"after-a-refusal", "strings"},
}
REQUESTS = {
    "path-ends-at-space": {"path-with-spaces"},
    "path-without-quotes": {"path-with-quotes"},
    "path-without-controls": {"path-with-controls"},
    "path-through-a-shell": {"path-for-a-shell"},
    "path-in-ascii": {"path-not-ascii"},
    "path-in-a-buffer": {"path-long"},
    "first-path-in-the-line": {"unknown-fields"},
    "strict": {"unknown-fields", "null-fields"},
    "null-variant-is-one": {"null-fields"},
    "missing-dies": {"missing"},
    "missing-silent": {"missing"},
    "missing-is-empty": {"missing"},
    "folder-dies": {"folder"},
    "worn-out": {"again", "ahead"},
    "drop-what-is-read-ahead": {"ahead"},
    "answer-the-last-first": {"ahead"},
}
OUTPUTS = {
    "in-ends-at-space": {"quantize-with-spaces"},
    "null-imatrix-is-a-file": {"quantize-null"},
    "over-what-stood-there": OVER,
    "first-row-alone": SIZES | {"quantize-rows", "dequantize-rows", "dot", "matvec"},
    "last-row-first": {"quantize-rows", "dequantize-rows"},
    "with-padding": {"tensor", "tensor-over"},
}
# Nothing comes of these but the end of the time.
SILENT = {"missing-silent", "drop-what-is-read-ahead"}
FAULTS = [("answers", *item) for item in ANSWERS.items()]
FAULTS += [("requests", *item) for item in REQUESTS.items()]
FAULTS += [("outputs", *item) for item in OUTPUTS.items()]


def verdicts(subject: Manifest, suite: str) -> dict[str, str]:
    """Run a suite against recorded answers; give the verdicts by key."""
    cases = [case for case in CASES if case.suite == f"protocol/{suite}"]
    plan = RunPlan(
        cases=cases,
        all_ids=[case.id for case in CASES],
        subjects=[subject],
        authorities=(),
        store=GoldenStore(cases_root() / "golden"),
        locate=lambda model: Path(model.member),
        profile=None,
        jobs=1,
        command="gguf-conformance run",
        repeat="gguf-conformance run",
        record="gguf-conformance record",
    )
    found: list[CaseResult] = []
    run(plan, lambda event: found.append(event) if isinstance(event, CaseResult) else None)
    return {key_of(result.case): result.verdict for result in found}


@pytest.mark.parametrize(("suite", "fault", "failing"), FAULTS, ids=[fault for _, fault, _ in FAULTS])
def test_a_fault_of_plumbing_fails_the_cases_about_it(tmp_path: Path, suite: str, fault: str, failing: set[str]) -> None:
    limit = 2 if fault in SILENT else 20
    script = FAKES / "plumbing.py"
    (tmp_path / "adapter.yaml").write_text(
        f"name: {fault}\nlanguage: python\ncommand: ['{{python}}', {script}, {fault}]\nlimits: {{time: {limit}}}\n"
    )
    found = verdicts(load_manifest(tmp_path), suite)
    assert {key for key, verdict in found.items() if verdict != "pass"} == failing


def test_each_case_fails_for_a_fault() -> None:
    told = {f"protocol/{suite}/{key}" for suite, _, failing in FAULTS for key in failing}
    assert {case.id for case in CASES} == told


@pytest.mark.parametrize("suite", ["answers", "requests", "outputs"])
def test_the_reference_passes(suite: str) -> None:
    assert set(verdicts(find_manifest("impl"), suite).values()) == {"pass"}


def test_plumbing_comes_before_all_else() -> None:
    ids = [case.id for case in in_order(load_suites(cases_root()))]
    assert all(map(is_plumbing, ids[: len(CASES)]))
    assert not any(map(is_plumbing, ids[len(CASES) :]))


@pytest.mark.parametrize("suite", ["answers", "requests"])
def test_a_one_shot_subject_is_asked_once_and_only_of_files(tmp_path: Path, suite: str) -> None:
    """A process for each of 700 requests would show nothing that one does not; without a file it may end as it likes."""
    begun = tmp_path / "begun"
    (tmp_path / "adapter.yaml").write_text(
        "name: once\nlanguage: sh\none_shot: true\n"
        f"""command: [sh, -c, 'echo >> {begun}; exec "{sys.executable}" -m impl "$@"', sh]\n"""
    )
    found = verdicts(load_manifest(tmp_path), suite)
    apart = {"missing": "skip", "folder": "skip"} if suite == "requests" else {}
    assert {key: verdict for key, verdict in found.items() if verdict != "pass"} == apart
    requests = sum(len(case.ask) + len(case.before) for case in CASES if case.suite == f"protocol/{suite}" and not case.put.input)
    assert len(begun.read_text()) == requests + 1  # and the hello
