"""The command as a user meets it: what goes wrong ends with one clear message and the right exit code."""

import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from conformance import cli

ROOT = Path(__file__).resolve().parents[1]
GOOD = """
suite: own/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  plain: {build: {kv: [{key: a, u32: 7}]}}
"""
MODEL = """
suite: own/model
cases:
  tiny:
    model: {package: no-such-package, version: 1.0, archive: wheel, member: a.gguf, size: 4, sha256: %s}
    expect: {llama.cpp: accept, gguf-py: accept, spec: accept}
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def command(*words: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> Ended:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        [sys.executable, "-m", "conformance.cli", *words],
        capture_output=True,
        text=True,
        env=environment,
        cwd=cwd,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


def invoke(*words: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> Ended:
    """Do the same in this process: code and text are those of a process of its own, the second that its imports take is spared."""
    with chdir(cwd):
        done = CliRunner().invoke(cli.main, words, env=env, prog_name="python -m conformance.cli")
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.stderr
    return Ended(done.exit_code, done.stdout, done.stderr)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    (folder / "own").mkdir(parents=True)
    (folder / "own" / "files.yaml").write_text(GOOD)
    return folder


def run_on(cases: Path, *more: str, subject: str = "impl", env: dict[str, str] | None = None) -> Ended:
    return invoke("run", "-S", subject, "--cases", str(cases), "--oracle", "golden", *more, env=env, cwd=cases.parent)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("plain: {build", "plain: {biuld"), ["files.yaml:5", "biuld"]),
        (GOOD + "  plain: {build: {}}\n", ["files.yaml:6", "plain"]),
        (GOOD.replace("u32: 7", "u32: 2^33"), ["files.yaml:5", "2^33"]),
        (GOOD.replace("u32: 7", "u32: seven"), ["files.yaml:5", "seven"]),
        ("suite: [", ["files.yaml"]),
        ("", ["files.yaml"]),
    ],
)
def test_a_wrong_case_file_is_named_with_its_line(cases: Path, text: str, told: list[str]) -> None:
    (cases / "own" / "files.yaml").write_text(text)
    for words in (("list", "--cases", str(cases)), ("run", "-S", "impl", "--no-report", "--cases", str(cases))):
        ended = invoke(*words)
        assert ended.code == 3
        assert all(part in ended.err for part in told), ended.err
        assert len(ended.err.splitlines()) < 25


def test_a_pattern_that_selects_nothing_is_a_usage_error(cases: Path) -> None:
    ended = run_on(cases, "-s", "own/flies")
    assert (ended.code, ended.out) == (2, "")
    assert "`own/flies` selects no case" in ended.err
    assert "own/files" in ended.err


def test_an_unknown_subject_lists_the_known_ones(cases: Path) -> None:
    ended = run_on(cases, subject="imp")
    assert ended.code == 2
    assert "'imp'" in ended.err
    assert "impl" in ended.err


def test_a_manifest_whose_command_does_not_exist(cases: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter.yaml").write_text("name: x\nlanguage: c\ncommand: ['{dir}/nothing']\nbuild: [make]\n")
    ended = run_on(cases, subject=str(tmp_path))
    assert ended.code == 3
    assert f"{tmp_path}/nothing does not exist" in ended.err
    assert "gguf-conformance build " in ended.err


@pytest.mark.parametrize("fake", ["hello-old-protocol", "hello-never", "banner"])
def test_a_subject_that_gives_no_proper_hello(cases: Path, fake: str) -> None:
    (cases / "own" / "files.yaml").write_text(GOOD.replace("accept", "observe"))
    ended = run_on(cases, subject=str(ROOT / "tests" / "fakes" / fake))
    assert ended.code == 3
    assert f"subject {fake}: no hello" in ended.err
    assert len(ended.err.splitlines()) < 12


def test_an_unwritable_report_folder_ends_the_run_before_it_begins(cases: Path) -> None:
    (cases.parent / "taken").write_text("a file")
    ended = invoke("run", "-S", "impl", "-s", "own", "--cases", str(cases), "--report", str(cases.parent / "taken" / "x"))
    assert ended.code in {2, 3}
    assert "taken" in ended.err


def test_a_model_with_a_wrong_checksum_is_named(cases: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path = cache / "models" / "no-such-package-1.0" / "a.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    (cases / "own" / "model.yaml").write_text(MODEL % ("0" * 64))
    ended = invoke("fetch", "--cases", str(cases), env={"GGUF_CONFORMANCE_CACHE": str(cache)})
    assert ended.code == 3
    assert "0" * 64 in ended.err
    assert str(path) in ended.err


def test_list_in_a_pipe_and_for_a_machine(cases: Path) -> None:
    assert command("list", "--cases", str(cases)).out == "own/files/plain  header load\n"
    (row,) = json.loads(invoke("list", "--json", "--cases", str(cases)).out)
    assert row["id"] == "own/files/plain"


@pytest.mark.parametrize(
    "words", [(), ("run",), ("list",), ("explain",), ("record",), ("report",), ("doctor",), ("inspect",), ("fetch",)]
)
def test_each_command_has_help(words: tuple[str, ...]) -> None:
    ended = invoke(*words, "--help")
    assert ended.code == 0
    assert "Usage:" in ended.out


def test_a_process_of_its_own_says_the_same(cases: Path) -> None:
    here = ("--cases", str(cases))
    for words in (("list", *here), ("list", "--nothing"), ("run", "-S", "impl", *here, "-s", "own/flies")):
        assert command(*words) == invoke(*words)


def test_completion_of_cases_and_subjects() -> None:
    def complete(line: str) -> str:
        env = {"_GGUF_CONFORMANCE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        program = "from conformance.cli import main; main(prog_name='gguf-conformance')"
        done = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout

    assert "blocks/q8_0/special" in complete("gguf-conformance explain blocks/q8_0/s")
    assert "plain,impl" in complete("gguf-conformance run --subject im")


def test_runs_without_a_named_folder_do_not_share_one(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_default_folder", lambda: Path("reports/now"))
    (cases / "own" / "files.yaml").write_text(GOOD.replace("accept", "observe"))
    for _ in range(2):
        assert run_on(cases).code == 0
    assert sorted(path.name for path in (cases.parent / "reports").iterdir()) == ["now", "now-2"]
    assert all((cases.parent / "reports" / name / "summary.md").is_file() for name in ("now", "now-2"))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_sign_that_the_terminal_cannot_show_shows_its_escape(cases: Path, encoding: str) -> None:
    (cases / "own" / "files.yaml").write_text(GOOD.replace("cases:", "cases:\n  z: {build: {}, covers: [C…]}"), encoding="utf-8")
    ended = command("list", "--cases", str(cases), env={"PYTHONIOENCODING": f"{encoding}:strict"})
    assert ended.code == 0
    assert "[C…]" in ended.out if encoding == "utf-8" else r"[C\u2026]" in ended.out
