"""Many requests at once: answers in order, and a death among them is one request's."""

from subject_helpers import PREAMBLE, header

from conformance.outcomes import Crash, Ok, Protocol, Timeout
from conformance.search.asking import Side
from conformance.subjects.process import Subject

SOUND = PREAMBLE + "serve(lambda request, sound: say(sound))"


def kinds(answers):
    return [type(answer.outcome) for answer in answers]


def posed(manifest, count, **limits):
    with Subject(manifest) as subject:
        subject.pose([header()] * count)
        return subject.collect(**limits)


def test_each_request_has_its_answer(make):
    assert kinds(posed(make(SOUND), 100)) == [Ok] * 100


def test_many_requests_and_long_answers_do_not_block_each_other(make):
    script = """
PAIR = {"key": "k", "type": "str", "value": "x" * 5000}
serve(lambda request, sound: say({**sound, "ok": {**OK, "kv": [PAIR]}}))
"""
    answers = posed(make(PREAMBLE + script), 2000)
    assert kinds(answers) == [Ok] * 2000


def test_a_death_ends_the_answers_and_is_the_last(make):
    answers = posed(make(PREAMBLE + 'serve(lambda request, sound: os._exit(3) if request["seq"] == 4 else say(sound))'), 6)
    assert kinds(answers) == [Ok, Ok, Crash]
    assert answers[-1].outcome.how == "exit 3"


def test_each_request_has_its_own_time(make):
    script = PREAMBLE + 'serve(lambda request, sound: (time.sleep(30 if request["seq"] == 5 else 0.3), say(sound)))'
    assert kinds(posed(make(script), 6, time=1.5)) == [Ok, Ok, Ok, Timeout]


def test_an_answer_that_nobody_asked_for_is_found_before_the_next_requests(make):
    with Subject(make(PREAMBLE + "serve(lambda request, sound: (say(sound), say(sound)))")) as subject:
        subject.pose([header()])
        assert kinds(subject.collect()) == [Ok]
        subject.pose([header()])
        assert kinds(subject.collect()) == [Protocol]


def test_a_side_asks_again_what_a_death_left_unanswered(make):
    script = 'serve(lambda request, sound: os._exit(3) if request["path"] == "bad" else say(sound))'
    asked = ["good", "bad", "good", "bad", "bad", "good"]
    with Side(make(PREAMBLE + script)) as side:
        side.pose([header(path) for path in asked])
        outcomes = side.collect()
        assert [isinstance(outcome, Ok) for outcome in outcomes] == [path == "good" for path in asked]
        assert side.deaths == 3
        side.pose([header("good")])
        assert isinstance(side.collect()[0], Ok)
