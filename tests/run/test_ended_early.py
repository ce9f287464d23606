"""Runs that do not come to their end: interrupted, killed, or stopped by an error. What was found is kept."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from conformance.interrupts import signals_to
from conformance.subjects.guard import GUARD
from tests.run.conftest import Bench

ROOT = Path(__file__).resolve().parents[2]
MANY = "suite: many/files\ndefaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}\ncases:\n" + "".join(
    f"  c{number:03}: {{build: {{kv: [{{key: a, u32: {number}}}]}}}}\n" for number in range(200)
)


@pytest.fixture
def slow_subject(tmp_path: Path) -> Path:
    """A subject that takes some time for each request, so that a run takes twenty seconds."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "slow.py").write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'impl'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "for line in iter(sys.stdin.buffer.readline, b''):\n"
        "    time.sleep(0.05 if b'\"path\"' in line else 0)\n"
        "    child.stdin.write(line); child.stdin.flush()\n"
        "    sys.stdout.buffer.write(child.stdout.readline()); sys.stdout.buffer.flush()\n"
    )
    (folder / "adapter.yaml").write_text('name: slow\nlanguage: python\ncommand: ["{python}", "{dir}/slow.py"]\n')
    return folder


GOLDEN: list[str] = []


@pytest.fixture(autouse=True)
def many(bench: Bench) -> None:
    """Have something to run, recorded once; before any test says where temporary files are, since who is asked may stay alive."""
    shutil.rmtree(bench.root / "small")
    bench.write("many/files", MANY)
    golden = bench.store.path("many/files")
    if not GOLDEN:
        bench.record()
        GOLDEN.append(golden.read_text())
    golden.parent.mkdir(parents=True, exist_ok=True)
    golden.write_text(GOLDEN[0])


def _start(bench: Bench, subject: Path, folder: Path, select: str = "many") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "conformance.cli", "run", "--subject", str(subject), "--oracle", "golden"]
    command += ["--cases", str(bench.root), "--report", str(folder), "--jobs", "1", "-s", select]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(autouse=True)
def not_under_nohup() -> Iterator[None]:
    """Runs inherit what is ignored: under ``nohup`` none of them would end at a hangup, which is as it should be."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


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


def test_a_killed_run_is_reported_as_truncated_with_what_there_is(
    bench: Bench, slow_subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _scratch(tmp_path, monkeypatch)  # who is killed cannot clear up
    process = _start(bench, slow_subject, tmp_path / "out")
    _wait_for_results(tmp_path / "out" / "events.ndjson", 3)
    process.kill()
    process.communicate()
    told = _report(tmp_path / "out")
    assert "TRUNCATED" in told.stdout
    assert " of 200 cases" in told.stdout
    assert told.returncode == 3


@pytest.fixture
def slow_starter(tmp_path: Path) -> Path:
    """A subject that takes its time for the hello, and tells by a file that it has begun."""
    folder = tmp_path / "starter"
    folder.mkdir()
    script = f"import time, pathlib\npathlib.Path({str(tmp_path / 'begun')!r}).touch()\ntime.sleep(60)\n"
    (folder / "starter.py").write_text(script)
    (folder / "adapter.yaml").write_text('name: starter\nlanguage: python\ncommand: ["{python}", "{dir}/starter.py"]\n')
    return folder


ALL = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ALL)
def test_a_signal_before_the_first_case_leaves_nothing(
    bench: Bench, slow_starter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    scratch = _scratch(tmp_path, monkeypatch)
    process = _start(bench, slow_starter, tmp_path / "out")
    _wait_for(tmp_path / "begun")
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "gguf-conformance: interrupted\n")
    assert list(scratch.iterdir()) == []
    assert not _processes_with(scratch)


@pytest.mark.parametrize("number", ALL)
def test_a_second_signal_does_not_keep_the_first_from_ending_the_run_well(
    bench: Bench, slow_subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    scratch = _scratch(tmp_path, monkeypatch)
    process = _start(bench, slow_subject, tmp_path / "out")
    _wait_for_results(tmp_path / "out" / "events.ndjson", 3)
    deadline = time.monotonic() + 15
    while process.poll() is None and time.monotonic() < deadline:  # to the very end, when Python gives up its handlers
        process.send_signal(number)
        time.sleep(0.01)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    last = json.loads((tmp_path / "out" / "events.ndjson").read_bytes().splitlines()[-1])
    assert (last["event"], last["ended_early"]) == ("run-finished", "interrupted")
    assert list(scratch.iterdir()) == []
    assert not _processes_with(scratch)


def test_a_run_that_is_to_outlive_its_terminal_does(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_to(pytest.fail):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


DAEMON = """
import os, shutil, sys
from impl.serve import main
from impl.subject import Subject
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(shutil.which("sleep"), [sys.argv[1], "600"], {})
    os._exit(0)
os.wait()
sys.exit(main(Subject(), sys.argv[2:]))
"""


def test_the_command_leaves_no_daemon_even_one_that_threw_its_environment_away(bench: Bench, tmp_path: Path) -> None:
    name = f"sleep-{tmp_path.name}-{os.getpid()}"
    (tmp_path / "daemon.py").write_text(DAEMON)
    (tmp_path / "adapter.yaml").write_text(f'name: d\nlanguage: p\ncommand: ["{{python}}", "{{dir}}/daemon.py", {name}]\n')
    process = _start(bench, tmp_path, tmp_path / "out", "many/files/c00?")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert not [one for one in psutil.process_iter() if _command(one)[:1] == [name]]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that what is started from now on inherits."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def _processes_with(scratch: Path) -> list[psutil.Process]:
    """Give what lives and was started with that folder for temporary files, our own guard apart; there is a second to end in."""
    deadline = time.monotonic() + 1
    while (found := [process for process in psutil.process_iter() if _has(process, scratch)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _has(process: psutil.Process, scratch: Path) -> bool:
    try:
        return process.pid not in (os.getpid(), GUARD.pid) and process.environ().get("TMPDIR") == str(scratch)
    except psutil.Error:
        return False
