"""Verdicts: what satisfies an expectation, and by what a subject is judged in each profile."""

import pytest

from conformance.cases.model import Expect
from conformance.errors import ConfigurationError
from conformance.judge.measure import Given, Measure
from conformance.judge.verdict import (
    Bench,
    expectation_text,
    is_determined,
    judge_authority,
    judge_subject,
    satisfies,
)
from conformance.outcomes import Crash, Error, Memory, Ok, Outcome, Protocol, Reject, Timeout, Unsupported
from conformance.values import Header

OK = Ok(Header(3, 32, 24, [], []))
OTHER = Ok(Header(2, 32, 24, [], []))
ACCEPT = (Expect("accept"),)
MAGIC = (Expect("reject", "bad-magic"),)
FAILED: list[Outcome] = [Crash("SIGSEGV"), Timeout(1.0), Memory(2, 1), Protocol("not JSON"), Error("boom"), Unsupported("no")]


@pytest.mark.parametrize(
    ("outcome", "expects", "holds"),
    [
        (OK, ACCEPT, True),
        (Reject("bad-magic"), ACCEPT, False),
        (Reject("bad-magic"), MAGIC, True),
        (Reject("other"), MAGIC, True),
        (Reject("bad-version"), MAGIC, False),
        (OK, MAGIC, False),
        (OK, (Expect("either"),), True),
        (Crash("SIGABRT"), (Expect("either"),), False),
        (Crash("SIGABRT"), (Expect("crash", "SIGABRT"),), True),
        (Crash("SIGSEGV"), (Expect("crash", "SIGABRT"),), False),
        (Crash("SIGSEGV"), (Expect("crash"),), True),
        (Timeout(2.0), (Expect("timeout"),), True),
        (Memory(2, 1), (Expect("timeout"), Expect("memory")), True),
        (Error("x"), (Expect("observe"),), True),
        (Unsupported("x"), (Expect("unsupported"),), True),
    ],
)
def test_what_satisfies_an_expectation(outcome: Outcome, expects: tuple[Expect, ...], holds: bool) -> None:
    assert satisfies(outcome, expects) is holds


def test_expectations_in_words() -> None:
    assert expectation_text((Expect("reject", "bad-size"), Expect("crash", "SIGABRT"))) == "reject bad-size or crash SIGABRT"


def test_only_a_single_firm_expectation_is_recorded() -> None:
    assert is_determined(ACCEPT)
    assert not is_determined((Expect("observe"),))
    assert not is_determined((*ACCEPT, Expect("crash")))


def _judge(profile: str, expects: tuple[Expect, ...], given: Outcome, **authorities: Outcome) -> list[str]:
    names = {"c": "llama.cpp", "py": "gguf-py"}
    measures = {names[key]: Measure(names[key], outcome) for key, outcome in authorities.items()}
    verdict = judge_subject("header", "-", Bench(profile, expects, measures), Given(given), None)
    return [divergence.signature for divergence in verdict.divergences]


@pytest.mark.parametrize("outcome", FAILED, ids=lambda outcome: type(outcome).__name__)
@pytest.mark.parametrize("kind", ["accept", "either", "observe", "crash", "timeout", "fault"])
def test_a_failure_satisfies_nothing(outcome: Outcome, kind: str) -> None:
    expects = (Expect(kind),)  # type: ignore[arg-type]  # parametrized over the admissible kinds
    assert _judge("llama.cpp", expects, outcome, c=OK)


def test_a_subject_is_held_to_its_profiles_answer() -> None:
    assert _judge("llama.cpp", ACCEPT, OK, c=OK, py=OTHER) == []
    assert _judge("gguf-py", ACCEPT, OK, c=OK, py=OTHER) == ["header:-:value:version"]


def test_accept_for_reject_and_the_reverse() -> None:
    assert _judge("llama.cpp", MAGIC, OK, c=Reject("bad-magic")) == ["header:-:ok-for-reject-bad-magic:-"]
    assert _judge("llama.cpp", ACCEPT, Reject("bad-magic"), c=OK) == ["header:-:reject-for-ok:-"]
    assert _judge("llama.cpp", MAGIC, Reject("bad-version"), c=Reject("bad-magic")) == [
        "header:-:reject-class:bad-magic/bad-version"
    ]
    assert _judge("llama.cpp", MAGIC, Reject("other"), c=Reject("bad-magic")) == []


def test_where_the_authority_dies_a_subject_may_answer_either_way() -> None:
    crash = (Expect("crash", "SIGABRT"),)
    assert _judge("llama.cpp", crash, OK, c=Crash("SIGABRT")) == []
    assert _judge("llama.cpp", crash, Reject("bad-size"), c=Crash("SIGABRT")) == []


def test_nobody_has_to_repeat_an_authoritys_fault() -> None:
    fault = (Expect("fault", "accept"),)
    assert satisfies(OK, fault)
    assert not satisfies(Reject("bad-size"), fault)
    assert is_determined(fault)
    assert _judge("llama.cpp", fault, Reject("bad-size"), c=OK) == []
    assert _judge("llama.cpp", fault, OTHER, c=OK) == []


def test_either_compares_values_where_both_accept() -> None:
    either = (Expect("either"),)
    assert _judge("llama.cpp", either, OTHER, c=OK) == ["header:-:value:version"]
    assert _judge("llama.cpp", either, Reject("bad-key"), c=OK) == []


def test_the_spec_judges_by_the_cases_word_and_values_by_whoever_accepts() -> None:
    assert _judge("spec", ACCEPT, OK, c=Reject("bad-key"), py=OK) == []
    assert _judge("spec", ACCEPT, OTHER, c=Reject("bad-key"), py=OK) == ["header:-:value:version"]
    assert _judge("spec", MAGIC, OK, c=OK) == ["header:-:ok-for-reject-bad-magic:-"]
    assert _judge("spec", MAGIC, Reject("bad-key"), c=OK) == ["header:-:reject-class:bad-magic/bad-key"]


def test_the_specs_alternatives_are_all_admitted() -> None:
    several = (Expect("accept"), Expect("reject", "bad-key"), Expect("reject", "bad-name"))
    assert _judge("spec", several, OK, c=OK) == []
    assert _judge("spec", several, Reject("bad-name"), c=OK) == []
    assert _judge("spec", several, Reject("bad-magic"), c=OK) == ["header:-:reject-class:bad-key or bad-name/bad-magic"]
    assert _judge("spec", several[1:], OK, c=OK) == ["header:-:ok-for-reject-bad-key-or-reject-bad-name:-"]


def test_an_authority_that_drifted_does_not_judge() -> None:
    """The case's word holds: the authority's own result says that it drifted."""
    assert _judge("llama.cpp", MAGIC, Reject("bad-magic"), c=OK) == []
    assert _judge("llama.cpp", MAGIC, OK, c=OK) == ["header:-:ok-for-reject-bad-magic:-"]


def test_an_authority_is_held_to_the_case_and_to_its_record() -> None:
    recorded = Measure("recorded llama.cpp", OK)
    assert judge_authority("header", "-", ACCEPT, Given(OK), recorded, None).divergences == []
    (against_case,) = judge_authority("header", "-", MAGIC, Given(OK), None, None).divergences
    assert against_case.signature == "header:-:expectation:ok"
    (drift,) = judge_authority("header", "-", ACCEPT, Given(OTHER), recorded, None).divergences
    assert drift.signature == "header:-:value:version"
    assert judge_authority("header", "-", (Expect("observe"),), Given(OTHER), recorded, None).divergences == []


MATTER: list[Outcome] = [OK, OTHER, Reject("bad-magic"), Reject("bad-key"), *FAILED]


@pytest.mark.parametrize("expects", [ACCEPT, MAGIC, (*ACCEPT, *MAGIC)])
@pytest.mark.parametrize("recorded", MATTER, ids=repr)
@pytest.mark.parametrize("given", MATTER, ids=repr)
def test_nothing_passes_uncompared(expects: tuple[Expect, ...], recorded: Outcome, given: Outcome) -> None:
    """Where the case fixes what is right, an answer is compared, or it is said that it was not."""
    if not satisfies(recorded, expects):
        return  # a golden run does not begin with such an answer; a live one is red for it
    bench = Bench("llama.cpp", expects, {"llama.cpp": Measure("llama.cpp", recorded)})
    verdict = judge_subject("header", "-", bench, Given(given), None)
    assert verdict.same is (not verdict.divergences)
    assert verdict.same is (recorded == given)


@pytest.mark.parametrize("op", ["header", "dequantize"])
def test_answers_without_a_value_are_no_match(op: str) -> None:
    bench = Bench("llama.cpp", ACCEPT, {"llama.cpp": Measure("llama.cpp", Ok())})
    with pytest.raises(ConfigurationError, match=f"llama.cpp's answer to {op} has no value to compare with"):
        judge_subject(op, "-", bench, Given(Ok()), None)


GO = "panic: runtime error: index out of range [3]"
RUST = "thread 'main' (7) panicked at src/a.rs:1:2:\nattempt to divide by zero\nnote: run with `RUST_BACKTRACE=1`\n"


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("a line\nValueError: no\n", "ValueError: no"),
        (f"before\n{GO}\n\ngoroutine 1 [running]:\nmain.go:7 +0x1d\n", GO),
        ("fatal error: out of memory\n\ngoroutine 1:\n", "fatal error: out of memory"),
        (RUST, "attempt to divide by zero"),
        ("<--- GCs --->\n\nFATAL ERROR: heap out of memory\n 1: 0xb7\n", "FATAL ERROR: heap out of memory"),
        ("", ""),
    ],
)
def test_the_line_that_says_what_it_died_of(stderr: str, said: str) -> None:
    assert Crash("SIGABRT", stderr).last_words == said
