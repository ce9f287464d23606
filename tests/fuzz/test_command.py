"""``fuzz`` as its user meets it."""

from __future__ import annotations

import importlib.util
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from conformance.cases.load import load_suite
from conformance.cases.model import Case
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, ConfigurationError
from conformance.fuzz import command
from conformance.fuzz.command import Plan, fuzz_command
from conformance.fuzz.seeds import MAX_SEED, write_dictionary, write_seeds
from conformance.places import cases_root
from impl.container.strings import load_compiled
from tests.corpus import corpus

SUITES = ("counts", "keys", "articles")


def plan(folder: Path, seconds: int = 1) -> Plan:
    return Plan(seconds, 1, folder / "findings", None)


def test_without_atheris_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"atheris.*\n.*gguf-conformance\[fuzz\]"):
        fuzz_command(plan(tmp_path), [])


def test_files_are_looked_at_again_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert fuzz_command(plan(tmp_path), [path]) == EXIT_OK
    assert capsys.readouterr().out == f"{path}: truncated\n"


def test_all_files_are_looked_at_and_a_broken_rule_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(data: bytes) -> str:
        if not data:
            raise IndexError("beyond the end")
        return "accepted"

    monkeypatch.setattr(command, "check", breaks)
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").write_bytes(b"x")
    assert fuzz_command(plan(tmp_path), [tmp_path / "a", tmp_path / "b"]) == EXIT_DIVERGENCE
    assert capsys.readouterr().out == f"{tmp_path}/a: BROKEN, IndexError: beyond the end\n{tmp_path}/b: accepted\n"


def ended(stderr: str, code: int = 77) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], code, "", stderr)


def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stderr: str) -> int:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(command, "_run", lambda *_: ended(stderr))
    monkeypatch.setattr(command, "load_suites", lambda _: some_cases()[:1])
    return fuzz_command(plan(tmp_path), [])


def test_a_finding_is_shown_with_its_input_and_how_to_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " === Uncaught Python exception: ===\nIndexError: beyond\nTraceback\n==1== ERROR: libFuzzer: fuzz target exited\n"
    assert told(monkeypatch, tmp_path, text + "artifact_prefix='f/'; Test unit written to f/crash-1\n") == EXIT_DIVERGENCE
    assert capsys.readouterr().out == (
        "found: IndexError: beyond\n  the input: f/crash-1\n  again: gguf-conformance fuzz f/crash-1\n"
    )


def test_a_hang_is_a_finding_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "==1== ERROR: libFuzzer: timeout after 20 seconds\nTest unit written to f/timeout-1\n"
    assert told(monkeypatch, tmp_path, text) == EXIT_DIVERGENCE
    assert "libFuzzer: timeout" in capsys.readouterr().out


def test_a_fuzzer_that_does_not_start_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="ended with code 77 and found nothing"):
        told(monkeypatch, tmp_path, "ImportError: no such library\n")


def some_cases() -> list[Case]:
    root = cases_root()
    return [case for suite in SUITES for case in load_suite(root / f"container/{suite}.yaml", root)]


def test_seeds_are_the_small_files_each_once(tmp_path: Path) -> None:
    cases = some_cases()
    count = write_seeds(cases, tmp_path)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert 20 < count == len(sizes) < len(cases)
    assert max(sizes) <= MAX_SEED


def test_the_dictionary_has_the_numbers_that_the_format_turns_on(tmp_path: Path) -> None:
    write_dictionary(tmp_path / "d")
    lines = (tmp_path / "d").read_text().splitlines()
    assert len(lines) == len(set(lines))
    for number in (2**31, 2**63, 2**64 - 1):
        assert '"' + "".join(f"\\x{byte:02x}" for byte in number.to_bytes(8, "little")) + '"' in lines


def test_the_reader_keeps_the_rules_on_every_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the fuzzed process does it: with the compiled loop beside the other, and with memory counted."""
    (tmp_path / "seeds").mkdir()
    count = write_seeds(corpus(), tmp_path / "seeds")
    load_compiled()
    tracemalloc.start()
    try:
        assert fuzz_command(plan(tmp_path), sorted((tmp_path / "seeds").iterdir())) == EXIT_OK
    finally:
        tracemalloc.stop()
    assert len(capsys.readouterr().out.splitlines()) == count > 1000


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs the extra `fuzz`")
def test_a_second_of_fuzzing_finds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From few seeds: it first runs them all, and instrumented code is slow. The test above holds the reader to all of them."""
    monkeypatch.setattr(command, "load_suites", lambda _: some_cases())
    assert fuzz_command(plan(tmp_path), []) == EXIT_OK
    assert "nothing found" in capsys.readouterr().out
