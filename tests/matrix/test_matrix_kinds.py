"""The kind of a cell follows from signatures and outcomes."""

import pytest

from conformance.matrix.cell import Cell
from conformance.matrix.kinds import GRAVITY, KINDS, MARKS, PLAIN, mark_of_signature
from tests.matrix.streams import DEATH, accepted_wrongly, answer, authority, numbers, said
from tests.report.samples import result


@pytest.mark.parametrize(
    ("signature", "mark"),
    [
        ("header:-:crash-SIGSEGV:-", "dies"),
        ("load:-:timeout:-", "hangs"),
        ("load:-:memory:-", "memory"),
        ("load:-:error:-", "fails"),
        ("load:-:protocol:-", "fails"),
        ("dot:Q4_0:unsupported:-", "fails"),
        ("dequantize:Q4_K:bits:value", "numbers"),
        ("quantize:ref:Q8_0:bytes:qs", "numbers"),
        ("dot:simd:Q8_0:rounding:value", "numbers"),
        ("header:-:value:kv[*].value", "values"),
        ("write:-:bytes:kv[*].key", "values"),
        ("tensor:-:bytes:data", "values"),
        ("header:-:ok-for-reject-bad-alignment:-", "lax"),
        ("load:-:reject-for-ok:-", "strict"),
        ("header:-:reject-class:bad-count/bad-length", "reason"),
        ("header:-:expectation:crash-SIGABRT", "drift"),
    ],
)
def test_a_signature_tells_the_kind(signature: str, mark: str) -> None:
    assert mark_of_signature(signature) == mark


def test_signs_and_names_tell_kinds_apart() -> None:
    signs = [kind.sign for kind in (*MARKS, *PLAIN)]
    assert len(set(signs)) == len(signs) == len(KINDS)
    assert set(GRAVITY) == {kind.name for kind in MARKS}


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [(("ok",), "accepts"), (("reject bad-magic",), "refuses"), (("ok", "reject missing-data"), "half"), ((), "judged")],
)
def test_an_answer_as_expected_says_what_was_answered(outcomes: tuple[str, ...], kind: str) -> None:
    cell = Cell(result("a/b", answers=tuple(said("newreader", outcome) for outcome in outcomes)))
    assert (cell.kind, cell.marks, cell.state) == (kind, (), "")


def test_an_answer_of_somebody_else_says_nothing() -> None:
    cell = Cell(result("a/b", answers=(said("llama.cpp", "crash SIGABRT"), said("newreader", "reject bad-magic"))))
    assert (cell.kind, cell.marks) == ("refuses", ())


def test_the_gravest_mark_is_shown_and_all_are_kept() -> None:
    cell = Cell(
        answer("a/b", "lax", "crash SIGSEGV", "known", divergences=(numbers((1,), 0), accepted_wrongly("bad-magic"), DEATH))
    )
    assert cell.marks == ("dies", "numbers", "lax")
    assert (cell.kind, cell.state) == ("dies", "known")


def test_an_authority_that_dies_as_declared_dies_and_does_not_depart() -> None:
    cell = Cell(authority("a/b", "crash SIGABRT"))
    assert (cell.kind, cell.state, cell.failures) == ("dies", "", ())


def test_a_skip_and_a_case_that_could_not_be_put_are_told_apart() -> None:
    assert Cell(result("a/b", "skip", reason="no dot")).kind == "skip"
    broken = Cell(result("a/b", "error", reason="no network"))
    assert (broken.kind, broken.state) == ("unput", "new")
