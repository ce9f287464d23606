"""Subjects that are started anew for each file."""

import pytest
from subject_helpers import header

from conformance.errors import ConfigurationError
from conformance.outcomes import Crash, Memory, Ok, Protocol, Reject, Timeout, Unsupported
from conformance.subjects.process import Subject
from conformance.subjects.protocol import LoadRequest, TensorRequest
from conformance.values import Header

SCRIPT = """
import json, os, signal, sys, time
op, path = sys.argv[1], sys.argv[-1]
if op == "hello":
    print('{"name": "made", "version": "1", "language": "python", "protocol": 1, "ops": {"header": {}}}')
elif path == "reject":
    print('{"class": "bad-magic", "message": "no", "at": 0}')
    sys.exit(1)
else:
    exec(path)
    print(json.dumps({"version": 3, "alignment": 32, "data_offset": 64, "kv": [], "tensors": []}, indent=2))
"""
KEYS = "one_shot: true\nlimits: {time: 10, memory: 300MiB, line: 1MiB}"


@pytest.fixture
def subject(make):
    with Subject(make(SCRIPT, keys=KEYS)) as made:
        yield made


def test_hello_header_load_and_reject(subject):
    assert subject.identity.name == "made"
    assert subject.ask(header("pass")).outcome == Ok(Header(3, 32, 64, [], []))
    assert isinstance(subject.ask(LoadRequest(seq=0, path="pass")).outcome, Ok)
    assert subject.ask(header("reject")).outcome == Reject("bad-magic", "no", 0)


@pytest.mark.parametrize(
    ("deed", "outcome"),
    [
        ("1/0", "exit 1"),  # a traceback exits with 1 as a reject does; without its JSON it is a death
        ("sys.exit(2)", "exit 2"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
    ],
)
def test_deaths(subject, deed, outcome):
    answer = subject.ask(header(deed))
    assert answer.outcome == Crash(outcome, answer.stderr_tail)
    assert ("ZeroDivisionError" in answer.stderr_tail) == (deed == "1/0")


@pytest.mark.parametrize(
    ("deed", "problem"),
    [
        ("os._exit(0)", "exit 0, but nothing on stdout; the answer's JSON is due there"),
        ("print('reading')", "ok: JSON is malformed"),
        ("print('{}'); sys.exit(0)", "ok: Object missing required field `version`"),
        ("""print('{"class": "bad"}'); sys.exit(1)""", "unknown reject class 'bad'"),
        ("print('a' * 1_100_000)", f"a line longer than {1 << 20} bytes"),
    ],
)
def test_breaches(subject, deed, problem):
    outcome = subject.ask(header(deed)).outcome
    assert isinstance(outcome, Protocol)
    assert outcome.problem.startswith(problem)


def test_limits(subject):
    assert subject.ask(header("time.sleep(60)"), time=0.5).outcome == Timeout(0.5)
    assert isinstance(subject.ask(header("a = b'x' * (600 << 20); time.sleep(60)")).outcome, Memory)


def test_its_stdin_is_empty(subject):
    assert isinstance(subject.ask(header("sys.stdin.read()"), time=5).outcome, Ok)


def test_other_ops_are_not_for_it(subject):
    outcome = subject.ask(TensorRequest(seq=0, path="a", index=0, out="b")).outcome
    assert outcome == Unsupported("a one-shot subject does header and load, not tensor")


def test_validation(make):
    with Subject(make(SCRIPT, keys=KEYS), validate=True) as subject:
        assert isinstance(subject.ask(header("pass")).outcome, Ok)
        outcome = subject.ask(header("print('{}'); sys.exit(0)")).outcome
    assert outcome.problem == "schema: $.ok: 'version' is a required property"


def test_an_identity_is_due(make):
    with pytest.raises(ConfigurationError) as raised:
        Subject(make("print('hello')", keys=KEYS)).start()
    assert "no hello: ok: JSON is malformed" in raised.value.message
    assert raised.value.message.count("subject.py hello") == 1
