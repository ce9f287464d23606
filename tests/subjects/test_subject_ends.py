"""No process outlives its subject, nor the harness."""

import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from subject_helpers import HERE, PREAMBLE, asked, carriers, header, wait_until

from conformance.outcomes import Ok, Timeout
from conformance.subjects.guard import GUARD, Guard
from conformance.subjects.process import Subject


def test_a_descendant_in_a_session_of_its_own_dies_with_the_subject(make, mark):
    script = """
def answer(request, sound):
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(600)
serve(answer)
"""
    with Subject(make(PREAMBLE + script)) as subject:
        assert subject.ask(header(), time=1).outcome == Timeout(1)
        assert wait_until(lambda: not carriers(mark))


@pytest.fixture
def interruptible():
    """Python's own handler of SIGINT, even where the tests were started with the signal ignored (nohup, some CI)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_leaves_no_process(make, mark, interruptible):
    manifest = make(PREAMBLE + "serve(lambda request, sound: (os.kill(os.getppid(), signal.SIGINT), time.sleep(600)))")
    with pytest.raises(KeyboardInterrupt):
        asked(manifest)
    assert wait_until(lambda: not carriers(mark))


def test_after_an_interrupt_the_subject_answers_the_next_request_and_not_the_last(make, interruptible):
    script = """
def answer(request, sound):
    if request["seq"] == 2:
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(0.5)
    say(sound)
serve(answer)
"""
    with Subject(make(PREAMBLE + script)) as subject:
        with pytest.raises(KeyboardInterrupt):
            subject.ask(header())
        assert isinstance(subject.ask(header()).outcome, Ok)


HARNESS = f"""
import sys
sys.path[:0] = [{str(HERE)!r}]
from subject_helpers import FAKES, header
from conformance.subjects.manifest import find_manifest
from conformance.subjects.process import Subject
with Subject(find_manifest(FAKES / "hang-stubborn")) as subject:
    subject.ask(header())
    print("asked", flush=True)
    subject.ask(header(), time=600)
"""


@pytest.mark.parametrize(
    "end",
    [
        lambda pid: os.kill(pid, signal.SIGKILL),
        lambda pid: os.kill(pid, signal.SIGTERM),
        lambda pid: os.killpg(pid, signal.SIGKILL),  # as a CI runner ends a job
    ],
    ids=["SIGKILL", "SIGTERM", "SIGKILL of its group"],
)
def test_a_killed_harness_leaves_no_subject(end, mark):
    harness = subprocess.Popen([sys.executable, "-c", HARNESS], stdout=subprocess.PIPE, start_new_session=True)
    assert harness.stdout.readline() == b"asked\n"
    assert len(carriers(mark)) >= 4  # harness, guard, fake, its reference
    end(harness.pid)
    harness.wait()
    harness.stdout.close()
    assert wait_until(lambda: not carriers(mark))


def test_a_killed_harness_leaves_no_daemon(mark, monkeypatch):
    monkeypatch.setenv("FAKE_SEQ", "2")
    script = HARNESS.replace("hang-stubborn", "daemon").replace("subject.ask(header(), time=600)", "sys.stdin.read()")
    harness = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert harness.stdout.readline() == b"asked\n"
    assert len(carriers(mark)) >= 5  # harness, guard, fake, its reference, the daemon
    harness.kill()
    harness.communicate()
    assert wait_until(lambda: not carriers(mark))


@pytest.fixture
def sleepers():
    started = [subprocess.Popen([shutil.which("sleep"), "60"], start_new_session=True) for _ in range(3)]
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_a_guard_kills_what_is_noted_and_nothing_that_was_removed(sleepers):
    ended, removed, noted = sleepers
    guard = Guard()
    guard.add(ended.pid)
    guard.remove(ended.pid)
    os.kill(guard.pid, signal.SIGKILL)
    os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)
    for process in removed, noted:
        guard.add(process.pid)
    guard.remove(removed.pid)
    guard.stop()
    assert noted.wait(5) == -signal.SIGKILL
    for process in ended, removed:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)


def test_a_killed_guard_is_replaced_and_knows_the_subjects_of_before(make, mark):
    manifest = make(PREAMBLE + "serve(lambda request, sound: say(sound))")
    with Subject(manifest) as first:
        first.start()
        os.kill(GUARD.pid, signal.SIGKILL)
        os.waitid(os.P_PID, GUARD.pid, os.WEXITED | os.WNOWAIT)
        with Subject(manifest) as second:
            second.start()
            assert len(carriers(mark)) == 2
            GUARD.stop()
            assert wait_until(lambda: not carriers(mark))


@pytest.fixture
def core_files():
    """Let processes write core files, as far as the machine allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard in (0, 1):
        pytest.skip("this machine allows no core files: nothing to keep from being written")
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets one process limit another")
def test_a_crash_leaves_no_core_file(make, core_files):
    script = """
import resource
serve(lambda request, sound: say({"seq": request["seq"], "error": str(resource.getrlimit(resource.RLIMIT_CORE))}))
"""
    assert asked(make(PREAMBLE + script))[0].outcome.message == "(1, 1)"
