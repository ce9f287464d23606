"""One request after the other: outcomes, limits, output, restarts."""

import resource
import time

import pytest
from subject_helpers import PREAMBLE, asked, header

from conformance.outcomes import Crash, Memory, Ok, Protocol, Timeout
from conformance.subjects.child import STDERR_TAIL
from conformance.subjects.process import Subject
from conformance.values import Header


def test_an_answer_carries_the_header_and_the_time(make):
    (answer,) = asked(make(PREAMBLE + "serve(lambda request, sound: say(sound))"))
    assert answer.outcome == Ok(Header(3, 32, 64, [], []))
    assert answer.stderr_tail == ""
    assert 0 < answer.elapsed < 5


def test_the_hello_identifies_and_is_asked_once(make):
    with Subject(make(PREAMBLE + "serve(lambda request, sound: say(sound))")) as subject:
        assert subject.identity.name == "made"
        assert subject.identity is subject.start()
        assert subject.identity.ops.header is not None
        assert subject.identity.ops.load is None


def test_requests_are_numbered_over_restarts(make, tmp_path):
    log = tmp_path / "log"
    script = f"""
def note(request, sound):
    with open({str(log)!r}, "a") as log:
        log.write(f"{{request['seq']}} ")
    os._exit(3) if request["seq"] == 3 else say(sound)
serve(note)
"""
    answers = asked(make(PREAMBLE + script), 4)
    assert [type(answer.outcome) for answer in answers] == [Ok, Crash, Ok, Ok]
    assert log.read_text().split() == ["2", "3", "5", "6"]  # 1 and 4 are hellos


def test_a_slow_answer_within_its_limit_is_measured(make):
    (answer,) = asked(make(PREAMBLE + "serve(lambda request, sound: (time.sleep(0.3), say(sound)))"))
    assert isinstance(answer.outcome, Ok)
    assert answer.elapsed >= 0.3
    assert answer.resident_peak > 1 << 20


def test_the_limits_of_a_request_override_the_manifest(make):
    manifest = make(PREAMBLE + "serve(lambda request, sound: time.sleep(60))")
    with Subject(manifest) as subject:
        started = time.monotonic()
        assert subject.ask(header(), time=0.3).outcome == Timeout(0.3)
        assert time.monotonic() - started < 10
        outcome = subject.ask(header(), memory=1 << 20).outcome
    assert isinstance(outcome, Memory)
    assert outcome.limit == 1 << 20
    assert outcome.resident > 1 << 20


def test_memory_of_a_child_process_counts(make):
    hog = "import sys, time; block = b'x' * (300 << 20); time.sleep(60)"
    script = f"serve(lambda request, sound: subprocess.run([sys.executable, '-c', {hog!r}]))"
    (answer,) = asked(make(PREAMBLE + script, keys="limits: {memory: 200MiB, time: 20}"))
    assert isinstance(answer.outcome, Memory)


def test_crash_keeps_what_stderr_said_last(make):
    script = "serve(lambda request, sound: (os.write(2, b'x' * 9000 + b'last words'), os.abort()))"
    (answer,) = asked(make(PREAMBLE + script))
    assert answer.outcome == Crash("SIGABRT", answer.stderr_tail)
    assert answer.stderr_tail.endswith("last words")
    assert len(answer.stderr_tail) == STDERR_TAIL


def test_stderr_of_one_request_is_not_told_of_the_next(make):
    script = "serve(lambda request, sound: (os.write(2, b'said at %d' % request['seq']), say(sound)))"
    assert [answer.stderr_tail for answer in asked(make(PREAMBLE + script), 2)] == ["said at 2", "said at 3"]


def test_stderr_without_end_does_not_stop_the_clock(make):
    script = "serve(lambda request, sound: [os.write(2, b'x' * 65536) for _ in iter(int, 1)])"
    (answer,) = asked(make(PREAMBLE + script, keys="limits: {time: 1}"))
    assert answer.outcome == Timeout(1)


def test_a_request_larger_than_the_pipe_reaches_a_subject_that_reads(make):
    path = "p" * 1_000_000
    script = "serve(lambda request, sound: say({**sound, 'ok': {**OK, 'version': len(request['path'])}}))"
    with Subject(make(PREAMBLE + script)) as subject:
        assert subject.ask(header(path)).outcome.header.version == 1_000_000


def test_a_request_larger_than_the_pipe_to_a_deaf_subject_is_a_timeout(make):
    script = """
line = sys.stdin.readline()
say({"seq": 1, "ok": HELLO})
time.sleep(60)
"""
    with Subject(make(PREAMBLE + script)) as subject:
        assert subject.ask(header("p" * 1_000_000), time=0.5).outcome == Timeout(0.5)


def test_an_answer_to_half_a_request_is_none(make):
    script = """
sys.stdin.readline()
say({"seq": 1, "ok": HELLO})
os.read(0, 10)
say({"seq": 2, "ok": OK})
time.sleep(60)
"""
    with Subject(make(PREAMBLE + script)) as subject:
        outcome = subject.ask(header("p" * 1_000_000)).outcome
    assert outcome.problem == "answered before it had read the whole request"


def test_a_closed_stdin_is_no_timeout(make):
    script = """
line = sys.stdin.readline()
os.close(0)
say({"seq": 1, "ok": HELLO})
time.sleep(60)
"""
    with Subject(make(PREAMBLE + script)) as subject:
        outcome = subject.ask(header(), time=30).outcome
    assert isinstance(outcome, Protocol)
    assert outcome.problem.startswith("closed its stdin or stdout")


@pytest.mark.parametrize(("length", "fits"), [(1000, True), (1001, False)])
def test_the_cap_on_a_line_is_exact(make, length, fits):
    script = f"serve(lambda request, sound: say(json.dumps(sound).ljust({length})))"
    (answer,) = asked(make(PREAMBLE + script, keys="limits: {line: 1000}"))
    assert isinstance(answer.outcome, Ok if fits else Protocol)
    assert fits or answer.outcome.problem == "a line longer than 1000 bytes"


def _high_water():
    """Give the most that this process ever held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def test_an_endless_line_costs_the_harness_no_more_than_the_cap(make):
    script = "serve(lambda request, sound: [os.write(1, b'a' * 65536) for _ in iter(int, 1)])"
    before = _high_water()
    (answer,) = asked(make(PREAMBLE + script, keys="limits: {line: 8MiB}"))
    assert answer.outcome.problem == f"a line longer than {8 << 20} bytes"
    assert len(answer.outcome.excerpt) < 300
    assert _high_water() - before < 40 << 20


def test_a_flood_while_it_is_closed_costs_the_harness_no_more_than_the_cap(make):
    script = "serve(lambda request, sound: [say(sound), [os.write(1, b'\\n' * 65536) for _ in iter(int, 1)]])"
    before = _high_water()
    (answer,) = asked(make(PREAMBLE + script, keys="limits: {line: 8MiB}"))
    assert isinstance(answer.outcome, Ok)
    assert _high_water() - before < 40 << 20


def test_an_answer_given_with_the_last_breath_counts(make):
    script = "serve(lambda request, sound: (say(json.dumps(sound).ljust(300_000)), os._exit(9)))"
    assert [type(answer.outcome) for answer in asked(make(PREAMBLE + script), 4)] == [Ok, Crash, Ok, Crash]


def test_error_and_unsupported_keep_the_process(make):
    script = """
def answer(request, sound):
    say({"seq": request["seq"], "error" if request["seq"] == 2 else "unsupported": str(os.getpid())})
serve(answer)
"""
    first, second = asked(make(PREAMBLE + script), 2)
    assert first.outcome.message == second.outcome.reason


def test_validation_names_the_place_and_changes_no_sound_answer(make):
    script = """
def answer(request, sound):
    sound["ok"] = {**OK, "version": "3"} if request["seq"] == 3 else OK
    say(sound)
serve(answer)
"""
    sound, broken, after = asked(make(PREAMBLE + script), 3, validate=True)
    assert isinstance(sound.outcome, Ok)
    assert broken.outcome.problem == "schema: $.ok.version: '3' is not of type 'integer'"
    assert isinstance(after.outcome, Ok)


def test_a_subject_can_be_asked_again_after_close(make):
    subject = Subject(make(PREAMBLE + "serve(lambda request, sound: say(sound))"))
    assert isinstance(subject.ask(header()).outcome, Ok)
    subject.close()
    assert isinstance(subject.ask(header()).outcome, Ok)
    subject.close()
    subject.close()


def test_close_lets_a_subject_end_by_itself(make, tmp_path):
    script = f"serve(lambda request, sound: say(sound))\nopen({str(tmp_path / 'ended')!r}, 'w').close()"
    asked(make(PREAMBLE + script))
    assert (tmp_path / "ended").exists()


def test_small_requests_are_all_answered(make, capsys):
    count = 2000
    manifest = make(PREAMBLE + "serve(lambda request, sound: say(sound))")
    with Subject(manifest) as subject:
        subject.start()
        started = time.monotonic()
        answers = [subject.ask(header()) for _ in range(count)]
        rate = count / (time.monotonic() - started)
    assert all(answer.outcome == Ok(Header(3, 32, 64, [], [])) for answer in answers)
    with capsys.disabled():
        print(f" [{rate:.0f} header requests a second] ", end="")  # noqa: T201 - the figure is what this test is for
