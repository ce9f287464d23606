"""The recorded answers and the cases belong together: none lacks, none is left over, each is what its case declares."""

from pathlib import Path

import pytest

from conformance.cases.model import Case, FileInput, ModelInput
from conformance.judge.golden import GoldenFile, GoldenStore, unfold
from conformance.judge.verdict import is_determined, satisfies
from conformance.places import cases_root
from tests.corpus import corpus

STORE = GoldenStore(cases_root() / "golden")
CASES = corpus()
AUTHORITIES = ("llama.cpp", "gguf-py")
FILE_OPS = {"header", "load"}


def _file(case: Case) -> GoldenFile:
    file = STORE.file(case.suite)
    assert file is not None, f"no golden file of {case.suite}: gguf-conformance record -s {case.suite}"
    return file


def _determined(case: Case) -> list[tuple[str, str]]:
    """Authority and op of each answer that has to be recorded; of files, the tensors' steps depend on the directory."""
    ops = [op for op in case.ask if not isinstance(case.input, FileInput | ModelInput) or op in FILE_OPS]
    authorities = AUTHORITIES if isinstance(case.input, FileInput | ModelInput) else AUTHORITIES[:1]
    return [(authority, op) for authority in authorities for op in ops if is_determined(case.expect[authority][op])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_a_case_fixes_is_recorded_and_as_declared(case: Case) -> None:
    key = case.id.rpartition("/")[2]
    for authority, op in _determined(case):
        steps = _file(case).cases.get(key, {})
        answer = unfold(steps, authority, op)
        assert answer is not None, f"{authority} {op}"
        assert satisfies(answer.outcome, case.expect[authority][op])


def test_no_recorded_answer_is_left_over() -> None:
    keys: dict[str, set[str]] = {}
    for case in CASES:
        keys.setdefault(case.suite, set()).add(case.id.rpartition("/")[2])
    for path in sorted(STORE.folder.rglob("*.json")):
        suite = path.relative_to(STORE.folder).with_suffix("").as_posix()
        file = STORE.file(suite)
        assert file is not None
        assert set(file.cases) <= keys.get(suite, set()), suite


def test_golden_files_name_the_versions_that_answered() -> None:
    versions = {
        (name, origin.version)
        for path in STORE.folder.rglob("*.json")
        if (file := STORE.file(path.relative_to(STORE.folder).with_suffix("").as_posix()))
        for name, origin in file.authorities.items()
    }
    assert versions == {("llama.cpp", "0.3.36"), ("gguf-py", "0.19.0")}


def test_golden_files_hold_no_path_of_a_machine() -> None:
    for path in STORE.folder.rglob("*.json"):
        text = path.read_text("utf-8")
        head = text.partition('"cases"')[0]
        assert "/" not in head, path
        assert str(Path.home()) not in text
