"""Runs that do not come to their end: interrupted, killed, or stopped by an error. What was found is kept."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.run.conftest import Bench

ROOT = Path(__file__).resolve().parents[2]
MANY = "suite: many/files\ndefaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}\ncases:\n" + "".join(
    f"  c{number:03}: {{build: {{kv: [{{key: a, u32: {number}}}]}}}}\n" for number in range(200)
)


@pytest.fixture
def slow_subject(tmp_path: Path) -> Path:
    """A subject that takes a fifth of a second for each request."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "slow.py").write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'impl'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "for line in iter(sys.stdin.buffer.readline, b''):\n"
        "    time.sleep(0.2 if b'\"path\"' in line else 0)\n"
        "    child.stdin.write(line); child.stdin.flush()\n"
        "    sys.stdout.buffer.write(child.stdout.readline()); sys.stdout.buffer.flush()\n"
    )
    (folder / "adapter.yaml").write_text('name: slow\nlanguage: python\ncommand: ["{python}", "{dir}/slow.py"]\n')
    return folder


def _start(bench: Bench, subject: Path, folder: Path) -> subprocess.Popen[str]:
    bench.write("many/files", MANY)
    bench.record()
    command = [sys.executable, "-m", "conformance.cli", "run", "--subject", str(subject), "--oracle", "golden"]
    command += ["--cases", str(bench.root), "--report", str(folder), "--jobs", "1", "-s", "many"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _wait_for_results(events: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if events.exists() and events.read_bytes().count(b'"event":"result"') >= count:
            return
        time.sleep(0.05)
    raise AssertionError("no results came")


def _report(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.cli", "report", str(folder / "events.ndjson")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_closes_its_stream(bench: Bench, slow_subject: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = _start(bench, slow_subject, tmp_path / "out")
    _wait_for_results(tmp_path / "out" / "events.ndjson", 3)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "interrupted" in out
    assert "Traceback" not in err
    last = json.loads((tmp_path / "out" / "events.ndjson").read_bytes().splitlines()[-1])
    assert (last["event"], last["ended_early"]) == ("run-finished", "interrupted")
    assert (tmp_path / "out" / "summary.md").exists()
    assert (tmp_path / "out" / "junit.xml").exists()


def test_a_killed_run_is_reported_as_truncated_with_what_there_is(bench: Bench, slow_subject: Path, tmp_path: Path) -> None:
    process = _start(bench, slow_subject, tmp_path / "out")
    _wait_for_results(tmp_path / "out" / "events.ndjson", 3)
    process.kill()
    process.communicate()
    told = _report(tmp_path / "out")
    assert "TRUNCATED" in told.stdout
    assert " of 200 cases" in told.stdout
    assert told.returncode == 3
