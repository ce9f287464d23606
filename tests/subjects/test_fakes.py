"""Each fake breaks once; the harness says how, loses that one request, and leaves no process behind."""

import sys

import psutil
import pytest
from subject_helpers import FAKES, carriers, wait_until

from conformance.subjects.guard import GUARD

sys.path.insert(0, str(FAKES))
import show

OK = "ok"
TRANSIENT = {
    "abort": "crash SIGABRT",
    "daemon": OK,
    "close-stdout": "protocol: closed its stdin or stdout",
    "eat-memory": "memory",
    "endless-line": "protocol: a line longer than",
    "exit-0": "crash exit 0",
    "exit-3": "crash exit 3",
    "hang": "timeout",
    "hang-deaf": "timeout",
    "hang-stubborn": "timeout",
    "late-answer": "timeout",
    "missing-field": "protocol: ok: Object missing required field `kv`",
    "noise": OK,
    "not-json": "protocol: not JSON",
    "orphan": "crash exit 3",
    "segfault": "crash SIGSEGV",
    "two-outcomes": "protocol: exactly one of ok, reject, unsupported, error is due; got ok and error",
    "unknown-class": "protocol: unknown reject class 'bad_magic'; did you mean 'bad-magic'?",
    "wrong-seq": "protocol: wrong seq: expected 3, got 2",
}
# The request after the one that the fake misbehaved at is the first that can notice.
NOTICED_LATER = {
    "exit-after-answer": "crash exit 0",
    "two-answers": "protocol: unsolicited output after its answer to header, seq 3",
}
FATAL = {
    "banner": ["no hello: not JSON", "it said: fake 1.0, copyright nobody"],
    "hello-never": ["no hello: no answer within 2 s"],
    "hello-old-protocol": ["it speaks protocol 99; this harness speaks 1"],
}


def _outcomes(fake, requests=4):
    return list(show.outcomes(fake, "x.gguf", requests))


def _nothing_left(mark):
    """Orphans reach their end in a moment; zombies of ours would stay."""
    return wait_until(lambda: not carriers(mark)) and not _zombies()


def _zombies():
    """Children that ended and were never waited for; other tests' living ones (a server of a whole module) do not count."""
    return [child for child in psutil.Process().children() if child.pid != GUARD.pid and child.status() == psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("fake", TRANSIENT)
def test_loses_the_one_request(fake, mark):
    first, broken, *rest = _outcomes(fake)
    assert first == OK
    assert broken.startswith(TRANSIENT[fake])
    assert (broken == OK) == (TRANSIENT[fake] == OK)
    assert rest == [OK, OK]
    assert _nothing_left(mark)


@pytest.mark.parametrize("fake", NOTICED_LATER)
def test_loses_the_request_that_notices(fake, mark):
    assert _outcomes(fake) == [OK, OK, NOTICED_LATER[fake], OK]
    assert _nothing_left(mark)


@pytest.mark.parametrize("fake", FATAL)
def test_a_subject_without_a_proper_hello_ends_the_run(fake, mark):
    (told,) = _outcomes(fake)
    assert told.startswith("ends the run: ")
    assert all(part in told for part in FATAL[fake])
    assert _nothing_left(mark)


def test_three_failed_restarts_end_the_run(mark):
    *before, last = _outcomes("hello-once", 9)
    assert before == [OK, "crash exit 4", "crash exit 4", "crash exit 4"]
    assert (
        last == "ends the run: subject hello-once: no hello in 3 successive restarts: the process ended (exit 4) before it answered"
    )
    assert _nothing_left(mark)


def test_a_fake_passes_its_requests_on_to_the_reference(monkeypatch, tmp_path):
    monkeypatch.delenv("FAKE_REFERENCE")
    (tmp_path / "bad.gguf").write_bytes(b"GGUX" + bytes(20))
    told = list(show.outcomes("segfault", tmp_path / "bad.gguf", 3))
    assert told == ["reject bad-magic", "crash SIGSEGV", "reject bad-magic"]


def test_every_fake_has_its_expectation():
    assert set(show.names()) == {*TRANSIENT, *NOTICED_LATER, *FATAL, "hello-once"}
