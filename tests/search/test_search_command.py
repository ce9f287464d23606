"""``search`` on the command line: exit codes, what it leaves behind, and promoted cases, red until the fault is mended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conformance.cases.load import load_suites
from conformance.places import adapters_root
from tests.test_cli import command

FAULTY = ("--subject", "q8_0-stored-scale", "--op", "quantize", "--type", "q8_0", "--examples", "3")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("search") / "reports"
    ended = command("search", *FAULTY, "--report", str(folder))
    assert ended.code == 1, ended.err
    assert "1 divergence of q8_0-stored-scale from llama.cpp; seed 0: 3 draws" in ended.out
    assert "found after" in ended.err
    return folder


def test_a_finding_is_a_case_with_a_report(reports: Path) -> None:
    (case,) = load_suites(reports / "declared")
    assert case.suite == "found/quantize"
    assert {name: expects["quantize"][0].kind for name, expects in case.expect.items()} == {
        "llama.cpp": "accept", "gguf-py": "accept", "spec": "observe",
    }  # fmt: skip
    report = (reports / "cases" / f"{case.id}.md").read_text("utf-8")
    assert "signature  quantize:Q8_0:bytes:qs" in report
    assert "q8_0-stored-scale | subject | **diverge**" in report


def test_the_case_repeats_the_finding_and_the_reference_passes_it(reports: Path) -> None:
    words = ("run", "--cases", str(reports / "declared"), "--oracle", "live", "--no-report", "--subject")
    assert command(*words, "q8_0-stored-scale").code == 1
    assert command(*words, "impl").code == 0


def test_what_its_author_knows_may_be_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(adapters_root() / "q8_0-stored-scale", folder)
    words = [str(folder) if word == "q8_0-stored-scale" else word for word in FAULTY]
    assert command("search", *words, "--skip-known", "--report", str(tmp_path / "a")).code == 1
    entry = "{pattern: 'blocks/q8_0/**', signature: 'quantize:Q8_0:bytes:qs', kind: bug, reason: stored scale}"
    (folder / "divergences.yaml").write_text(f"divergences: [{entry}]\n")
    ended = command("search", *words, "--skip-known", "--report", str(tmp_path / "b"))
    assert (ended.code, ended.err) == (0, "")
    assert " hits of 1 known signature\n" in ended.out
    assert command("search", *words, "--report", str(tmp_path / "c")).code == 1


def test_a_machine_is_told_the_same(reports: Path, tmp_path: Path) -> None:
    told = json.loads(command("search", *FAULTY, "--report", str(tmp_path / "again"), "--json").out)
    kept = json.loads((reports / "findings.json").read_text("utf-8"))
    for said in (told, kept):
        assert [finding["signature"] for finding in said["findings"]] == ["quantize:Q8_0:bytes:qs"]
        assert not said["findings"][0]["unstable"]
    assert told["findings"][0]["case"] == kept["findings"][0]["case"]


def test_a_promoted_finding_is_a_case_for_good_and_red_until_mended(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    cases.mkdir()
    words = ("search", *FAULTY, "--report", str(tmp_path / "reports"), "--cases", str(cases), "--promote")
    assert "promoted found/quantize/" in command(*words).out
    run = ("run", "--cases", str(cases), "--oracle", "golden", "--no-report", "--subject")
    assert command(*run, "q8_0-stored-scale").code == 1
    assert command(*run, "impl").code == 0
    before = (cases / "found" / "quantize.yaml").read_text("utf-8")
    assert "nothing to promote: every finding is a case already" in command(*words).out
    assert (cases / "found" / "quantize.yaml").read_text("utf-8") == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "a search has one object"),
        (("--subject", "impl", "--harness"), "a search has one object"),
        (("--subject", "impl", "--op", "sing"), "op 'sing' does not exist"),
        (("--subject", "impl", "--type", "Q9"), "type 'Q9' does not exist"),
        (("--subject", "impl", "--op", "quantize", "--type", "I8"), "have nothing in common to search: quantize, I8"),
    ],
)
def test_what_cannot_be_searched_is_told(words: tuple[str, ...], told: str) -> None:
    ended = command("search", *words)
    assert (ended.code, told in ended.err) == (2, True)


def test_nothing_found_is_0_and_leaves_no_folder(tmp_path: Path) -> None:
    what = ("--type", "Q8_0", "--op", "dequantize", "--examples", "3", "--report", str(tmp_path / "reports"))
    ended = command("search", "--subject", "impl", "--against", "impl-spec", *what)
    assert ended.code == 0, ended.err
    assert "0 divergences of impl from impl-spec" in ended.out
    assert not (tmp_path / "reports").exists()
