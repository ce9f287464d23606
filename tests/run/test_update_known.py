"""``run --update-known``: the file says afterwards what the run showed, and waits for reasons."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from conformance.cases.load import load_suites
from conformance.cli import main
from conformance.errors import ConfigurationError
from conformance.judge.divergence import Divergence
from conformance.report.events import CaseResult
from conformance.run.known import KnownEntry, load_entries
from conformance.run.update_known import Corpus, known_text, update_known, updated
from conformance.subjects.manifest import Manifest, find_manifest
from tests.corpus import part_of_corpus

SUITE = """
suite: s/t
defaults: {expect: {llama.cpp: either, gguf-py: either, spec: either}}
cases:
  big: {build: {kv: [{key: a, u32: 1}]}}
  cut-1: {build: {}, cut: 11}
  cut-2: {build: {}, cut: 10}
  cut-3: {build: {}, cut: 12}
"""
A, B, C = "header:-:a:x", "load:-:a:x", "header:-:crash-SIGSEGV:-"
CUTS = ["s/t/cut-1", "s/t/cut-2", "s/t/cut-3"]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "t.yaml").write_text(SUITE)
    return Corpus(load_suites(tmp_path))


def result(case: str, *signatures: str, uncompared: tuple[str, ...] = ()) -> CaseResult:
    divergences = tuple(Divergence(signature=s, op="header", authority="llama.cpp", summary=s) for s in signatures)
    verdict = "diverge" if signatures else "pass"
    return CaseResult(
        case=case,
        who="x",
        role="subject",
        verdict=verdict,  # type: ignore[arg-type]  # one of the two
        profile="llama.cpp",
        divergences=divergences,
        uncompared=uncompared,
    )


def entry(signature: str | list[str], pattern: str | list[str], reason: str = "why", **more: object) -> KnownEntry:
    told = {"reason": reason, "kind": "policy", "signature": signature, "pattern": pattern, **more}
    return msgspec.convert(told, KnownEntry)


def test_cases_that_show_the_same_are_one_entry(corpus: Corpus) -> None:
    results = [result("s/t/big", A), *(result(name, A, B) for name in CUTS)]
    kept, new = updated([], results, corpus)
    assert kept == []
    assert [(e.signature, e.pattern, e.smallest, e.reason) for e in new] == [
        ([A, B], "s/t/cut-*", "s/t/cut-2", ""),
        (A, "s/t/big", "s/t/big", ""),
    ]


def test_what_still_holds_keeps_its_reason_and_what_is_new_is_apart(corpus: Corpus) -> None:
    before = [entry([A, B], "s/t/cut-*"), entry(A, "s/t/big", "another", link="https://x")]
    results = [result("s/t/big", A, C), result(CUTS[0], A, B), result(CUTS[1], A), result(CUTS[2], A, B)]
    kept, new = updated(before, results, corpus)
    assert [(e.signature, e.pattern, e.reason, e.smallest) for e in kept] == [
        ([A, B], [CUTS[0], CUTS[2]], "why", CUTS[0]),
        (A, "s/t/big", "another", "s/t/big"),
    ]
    assert {(str(e.signature), str(e.pattern), e.reason) for e in new} == {(C, "s/t/big", ""), (A, CUTS[1], "")}


def test_what_no_longer_happens_is_gone(corpus: Corpus) -> None:
    kept, new = updated([entry(A, "s/t/*")], [result(name) for name in corpus.ids], corpus)
    assert (kept, new) == ([], [])


def test_cases_that_were_not_run_or_not_compared_keep_theirs(corpus: Corpus) -> None:
    before = [entry("header:-:value:x", "s/t/*", smallest="s/t/big")]
    kept, new = updated(before, [result("s/t/big", uncompared=("header",))], corpus)
    assert (kept, new) == (before, [])
    kept, _ = updated(before, [result("s/t/big", uncompared=("load",))], corpus)
    assert [(e.pattern, e.smallest) for e in kept] == [("s/t/cut-*", "s/t/cut-2")]


def test_what_happens_sometimes_stays(corpus: Corpus) -> None:
    before = [entry(C, "s/t/cut-*", sometimes=True, smallest="s/t/cut-3")]
    kept, new = updated(before, [result(CUTS[0], C), *(result(name) for name in CUTS[1:])], corpus)
    assert (kept, new) == (before, [])


def test_patterns_as_a_person_wrote_them_stay_where_all_of_it_holds(corpus: Corpus) -> None:
    before = [entry(A, ["s/t/cut-?"], smallest="s/t/cut-3")]
    kept, _ = updated(before, [result(name, A) for name in CUTS], corpus)
    assert kept == before


def test_the_file_reads_back(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "adapter.yaml").write_text('name: x\nlanguage: python\ncommand: ["{python}"]\n')
    manifest = find_manifest(tmp_path)
    path = tmp_path / "divergences.yaml"
    done = update_known(manifest, [result("s/t/big", A, "header:-:b:kv[*].value: y")], corpus)
    assert (done.path, done.unexplained, done.gone) == (path, 1, 0)
    entries = [msgspec.structs.replace(load_entries(path)[0], reason="no: 'it' #1 — " + 30 * "long ")]
    path.write_text(known_text(manifest, entries))
    assert load_entries(path) == [msgspec.structs.replace(entries[0], reason=entries[0].reason)]
    manifest = find_manifest(tmp_path)
    done = update_known(manifest, [result("s/t/big")], corpus)
    assert (done.entries, done.unexplained, done.gone) == ([], 0, 1)
    assert load_entries(path) == []


@pytest.mark.parametrize(
    "reason", ["a\u2028b\u2029c\x85d\re", "two\n\n  lines\n", "\x1b[0m 'q' \"d\" \\", "- x: [ # y", "😀" * 200]
)
def test_a_reason_of_any_signs_reads_back(reason: str, corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "adapter.yaml").write_text('name: x\nlanguage: python\ncommand: ["{python}"]\n')
    before = [entry(A, "s/t/big", reason, link=reason, smallest="s/t/big")]
    (tmp_path / "divergences.yaml").write_text(known_text(find_manifest(tmp_path), before))
    assert load_entries(tmp_path / "divergences.yaml") == before


def test_a_file_that_came_during_the_run_keeps_its_reasons(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "adapter.yaml").write_text('name: x\nlanguage: python\ncommand: ["{python}"]\n')
    manifest = find_manifest(tmp_path)
    (tmp_path / "divergences.yaml").write_text(known_text(manifest, [entry(A, "s/t/big")]))
    done = update_known(manifest, [result("s/t/big", A)], corpus)
    assert [one.reason for one in done.entries] == ["why"]


def test_what_is_ended_while_it_is_written_leaves_the_file_as_it_was(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adapter.yaml").write_text('name: x\nlanguage: python\ncommand: ["{python}"]\n')
    before = known_text(find_manifest(tmp_path), [entry(A, "s/t/big")])
    (tmp_path / "there.yaml").write_text(before)
    (tmp_path / "divergences.yaml").symlink_to("there.yaml")
    (tmp_path / "there.yaml").chmod(0o640)
    manifest = find_manifest(tmp_path)
    there = sorted(tmp_path.iterdir())
    write = os.write

    def ended(self: Path, data: bytes) -> int:
        write(descriptor := os.open(self, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), data[:20])
        os.close(descriptor)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", ended)
    monkeypatch.setattr(Path, "write_text", lambda self, text, **_: ended(self, text.encode()))
    with pytest.raises(KeyboardInterrupt):
        update_known(manifest, [result("s/t/big", A, C)], corpus)
    monkeypatch.undo()
    assert (tmp_path / "divergences.yaml").read_text() == before
    assert sorted(tmp_path.iterdir()) == there
    update_known(manifest, [result("s/t/big", A, C)], corpus)
    assert C in (tmp_path / "there.yaml").read_text()
    assert (tmp_path / "divergences.yaml").is_symlink()
    assert (tmp_path / "there.yaml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("empty", ["pattern", "signature"])
def test_an_entry_of_nothing_is_none(empty: str, tmp_path: Path) -> None:
    said = {"pattern": "s/t/big", "signature": A, empty: "[]"}
    text = "".join(f"  {key}: {value}\n" for key, value in said.items())
    (tmp_path / "divergences.yaml").write_text(f"divergences:\n- reason: why\n  kind: bug\n{text}")
    with pytest.raises(ConfigurationError, match="entry 1 is of no case, or of no signature: 'why'"):
        load_entries(tmp_path / "divergences.yaml")


WRONG = """
import sys
from impl.serve import main
from impl.subject import Subject
class Wrong(Subject):
    def header(self, request):
        answer = super().header(request)
        answer["alignment"] += 1
        return answer
    load = header
sys.exit(main(Wrong(), sys.argv[1:]))
"""


@pytest.fixture
def wrong(tmp_path: Path) -> Manifest:
    folder = tmp_path / "wrong"
    folder.mkdir()
    (folder / "a.py").write_text(WRONG)
    (folder / "adapter.yaml").write_text('name: wrong\nlanguage: python\ncommand: ["{python}", "{dir}/a.py"]\n')
    return find_manifest(folder)


@pytest.fixture
def alignment(tmp_path: Path) -> list[str]:
    """One suite of the corpus, and what is recorded of it: all of them would be read anew by each run."""
    return ["--cases", str(part_of_corpus(tmp_path / "cases", ["container/alignment"])), "--no-report"]


def test_the_command_ends_with_a_file_that_holds_once_it_is_explained(wrong: Manifest, alignment: list[str], keeping: None) -> None:
    words = ["run", "--subject", str(wrong.folder), "--select", "container/alignment/1*", *alignment]
    refused = CliRunner().invoke(main, [*words, "--oracle", "golden", "--update-known"])
    assert (refused.exit_code, "add --oracle live" in refused.stderr) == (2, True)
    words += ["--oracle", "live"]
    done = CliRunner().invoke(main, [*words, "--update-known"])
    assert done.exit_code == 0, done.output
    path = wrong.folder / "divergences.yaml"
    *_, told, code = done.stdout.splitlines()
    assert told == f"wrong: 1 known divergence in {path}; 1 waits for a reason: until then a run fails"
    assert code.startswith("exit 0: ")
    unexplained = CliRunner().invoke(main, words)
    assert unexplained.exit_code == 1
    assert "known divergence unexplained" in unexplained.stdout
    assert "gives no reason" in unexplained.stdout
    path.write_text(path.read_text().replace("reason: ''", "reason: adds one"))
    assert CliRunner().invoke(main, words).exit_code == 0


def test_two_subjects_with_one_file_are_refused(wrong: Manifest, alignment: list[str]) -> None:
    for name in ("one", "two"):
        (wrong.folder / f"{name}.yaml").write_text(f'name: {name}\nlanguage: python\ncommand: ["{{python}}", "{{dir}}/a.py"]\n')
    words = [word for name in ("one", "two") for word in ("--subject", str(wrong.folder / f"{name}.yaml"))]
    done = CliRunner().invoke(
        main, ["run", *words, "-s", "container/alignment/1", *alignment, "--oracle", "live", "--update-known"]
    )
    assert (done.exit_code, "one and two have one file of known divergences" in done.stderr) == (2, True), done.output
    assert not (wrong.folder / "divergences.yaml").exists()


def test_a_run_that_is_not_taken_says_so(wrong: Manifest, alignment: list[str], keeping: None) -> None:
    path = wrong.folder / "divergences.yaml"
    path.write_text("divergences:\n- {pattern: container/gone/*, signature: a, kind: bug, reason: why}\n")
    before = path.read_text()
    words = ["run", "--subject", str(wrong.folder), "-s", "container/alignment/1", *alignment, "--oracle", "live"]
    done = CliRunner().invoke(main, [*words, "--update-known"])
    assert (done.exit_code, path.read_text()) == (3, before)
    assert "known divergences stay as they were" in done.stderr


def test_while_an_authority_drifts_nothing_is_written(wrong: Manifest, tmp_path: Path, keeping: None) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "t.yaml").write_text(
        "suite: own/t\ndefaults: {expect: {llama.cpp: {reject: bad-magic}, gguf-py: either, spec: either}}\n"
        "cases:\n  one: {build: {kv: [{key: a, u32: 1}]}}\n"
    )
    (tmp_path / "cases").mkdir()
    (tmp_path / "own").rename(tmp_path / "cases" / "own")
    words = ["run", "--subject", str(wrong.folder), "--cases", str(tmp_path / "cases"), "--no-report", "--oracle", "live"]
    done = CliRunner().invoke(main, [*words, "--update-known"])
    assert done.exit_code == 1, done.output
    assert "authority-drift" in done.stdout
    assert "known divergences stay as they were: an authority" in done.stderr
    assert not (wrong.folder / "divergences.yaml").exists()
