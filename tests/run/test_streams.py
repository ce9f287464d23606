"""Streams and folders that break: a pipe nobody reads, a full disk, a closed stdout. One clear line, and nothing is lost."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from conformance.errors import ConfigurationError
from conformance.report.events import EventLog, KnownProblem
from conformance.run import execute, scratch
from conformance.run.scratch import require_room, scratch_folder
from tests.run.conftest import Bench

ROOT = Path(__file__).resolve().parents[2]
SUITE = """
suite: own/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  plain: {build: {kv: [{key: a, u32: 7}]}}
  wrong: {build: {kv: [{key: a, u32: 8}]}}
"""


@pytest.fixture
def cases(bench: Bench) -> Path:
    shutil.rmtree(bench.root / "small")
    bench.write("own/files", SUITE)
    bench.record()
    golden = bench.store.path("own/files")
    golden.write_text(golden.read_text().replace('"value":"8"', '"value":"9"'))  # so that the run's exit code is 1
    return bench.root


def _run(cases: Path, redirection: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell whose exit code is the command's, not that of the pipe's other end."""
    command = f'"$0" -m conformance.cli "$@" {redirection}'
    if "|" in redirection:
        command += "; exit ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["/bin/bash", "-c", command, sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


def _words(cases: Path) -> list[str]:
    folder = str(cases.parent / "out")
    return ["run", "-S", "impl", "--oracle", "golden", "--cases", str(cases), "--report", folder]


def _reports(cases: Path) -> set[str]:
    return {path.name for path in (cases.parent / "out").glob("*.*")}


WHOLE = {"events.ndjson", "summary.md", "junit.xml"}


def test_a_reader_that_has_seen_enough_changes_neither_reports_nor_exit_code(cases: Path) -> None:
    done = _run(cases, "| true", *_words(cases))
    assert (done.returncode, done.stderr) == (1, "")
    assert _reports(cases) >= WHOLE
    assert json.loads((cases.parent / "out" / "events.ndjson").read_bytes().splitlines()[-1])["event"] == "run-finished"


def test_other_commands_end_well_too_when_nobody_reads_on() -> None:
    for words in (("list",), ("list", "--json"), ("--help",)):
        done = _run(ROOT, "| true", *words)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_full_stdout_is_told_and_the_reports_are_written(cases: Path) -> None:
    done = _run(cases, ">/dev/full", *_words(cases))
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == "gguf-conformance: cannot write to stdout: No space left on device"
    assert _reports(cases) >= WHOLE


@pytest.mark.parametrize("words", [("list",), ("--help",), ("--version",)])
def test_a_full_or_closed_stdout_is_told_by_every_command(words: tuple[str, ...]) -> None:
    done = _run(ROOT, ">/dev/full", *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 2)
    done = _run(ROOT, ">&-", *words)
    assert (done.returncode, done.stderr.splitlines()[0]) == (3, "gguf-conformance: stdout is closed")


def test_closed_and_full_stderr_change_nothing(cases: Path) -> None:
    for redirection in ("2>&-", "2>/dev/full", "<&-", "<&- 2>&-"):
        assert _run(cases, redirection, *_words(cases)).returncode == 1
        assert _reports(cases) >= WHOLE
        (cases.parent / "out" / "events.ndjson").unlink()
    assert _run(cases, "2>/dev/full", "run", "-S", "nobody", "--cases", str(cases)).returncode == 2


def test_a_reports_folder_that_takes_no_more_is_told(cases: Path) -> None:
    (cases.parent / "out").mkdir()
    (cases.parent / "out" / "events.ndjson").symlink_to("/dev/full")
    done = _run(cases, "", *_words(cases))
    assert done.returncode == 3
    assert done.stderr.splitlines()[0].endswith("cannot write the event stream: No space left on device")


def test_an_event_is_written_whole_by_a_file_that_takes_parts(tmp_path: Path) -> None:
    written = bytearray()

    class Slow:
        def write(self, data: memoryview) -> int:
            written.extend(data[:7])
            return len(data[:7])

        def flush(self) -> None:
            pass

    event = KnownProblem(subject="s", kind="stale", pattern="p", signature="x", file="f", edit="e")
    EventLog(Slow()).write(event)  # type: ignore[arg-type] # all that a log uses of a file
    whole = (tmp_path / "whole").open("wb")
    EventLog(whole).write(event)
    assert bytes(written) == (tmp_path / "whole").read_bytes()


def test_no_place_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(scratch.tempfile, "TemporaryDirectory", nowhere)
    with pytest.raises(ConfigurationError, match=r"no place for temporary files: No usable.*\n  .*TMPDIR"), scratch_folder():
        pass


def test_a_full_folder_for_temporary_files_ends_the_run_and_blames_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x/input.gguf")

    monkeypatch.setattr(execute, "prepare", full)
    with pytest.raises(ConfigurationError, match=r"x/input\.gguf: temporary files: No space left on device\n.*TMPDIR"):
        bench.run(bench.impl)


def test_a_subject_is_not_asked_to_write_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: namedtuple("Status", "f_bavail f_frsize")(2, 4096))
    require_room(tmp_path, 8192)
    with pytest.raises(ConfigurationError, match="8193 bytes are to be written, 8192 are free"):
        require_room(tmp_path, 8193)
