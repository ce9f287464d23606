"""What a column adds up to, and how rows and findings are grouped."""

from pathlib import Path

import msgspec
import pytest

from conformance.matrix.cell import Who
from conformance.matrix.findings import added, findings_of
from conformance.matrix.groups import suites_of
from conformance.matrix.html import index_html
from conformance.matrix.load import load_matrix
from conformance.matrix.markdown import markdown
from conformance.matrix.matrix import Matrix
from conformance.matrix.numbers import Compared, number_rows, percent
from conformance.matrix.summary import summary_rows
from conformance.report.events import OpCount
from tests.matrix.streams import LLAMA, accepted_wrongly, answer, authority_results, lax_results, mortal_results, stream, subject
from tests.report.samples import BYTE, result

LAX, MORTAL = Who("lax", is_authority=False), Who("mortal", is_authority=False)


def test_the_summary_counts_cases_by_verdict_and_by_what_happened(matrix: Matrix) -> None:
    llama, lax, mortal = summary_rows(matrix)
    assert (llama.name, llama.role, llama.judged_by, llama.cases, llama.passed, llama.crashes) == (
        "llama.cpp",
        "authority",
        "",
        6,
        6,
        1,
    )
    assert (lax.judged_by, lax.cases, lax.passed, lax.diverging, lax.known, lax.skipped, lax.blocks) == (
        "llama.cpp",
        6,
        2,
        2,
        2,
        0,
        4,
    )
    assert (mortal.language, mortal.passed, mortal.diverging, mortal.skipped, mortal.crashes, mortal.hangs) == ("go", 3, 1, 2, 1, 0)
    assert lax.shares == {"calm": 2, "lax": 2, "numbers": 2}
    assert mortal.shares == {"calm": 3, "dies": 1, "skip": 2}


def test_verdicts_add_up_to_the_cases(tmp_path: Path) -> None:
    extra = [result("files/c/gone", "error", who="lax", reason="no network"), answer("files/c/hang", "lax", "timeout", "known")]
    matrix = load_matrix([stream(tmp_path / "s", [*lax_results(), *extra], LLAMA, subject("lax"))])
    row = summary_rows(matrix)[1]
    assert (row.broken, row.hangs, row.known) == (1, 1, 3)
    assert row.cases == (row.passed or 0) + row.diverging + row.known + row.skipped + row.broken == sum(row.shares.values())


def test_cases_that_read_the_same_are_one_row_the_gravest_first(matrix: Matrix) -> None:
    suites = {suite.name: [[row.id for row in group.rows] for group in suite.groups] for suite in suites_of(matrix)}
    assert suites["files/a"] == [["files/a/one", "files/a/two"], ["files/a/three"]]
    assert list(suites) == ["files/a", "files/b", "numbers/q4_k"]


def test_cases_that_differ_for_one_subject_are_two_rows(tmp_path: Path) -> None:
    results = [*lax_results(), *mortal_results(), *authority_results()]
    changed = [answer(one.case, "lax") if one.case == "files/a/one" and one.who == "lax" else one for one in results]
    matrix = load_matrix([stream(tmp_path / "s", changed, LLAMA, subject("lax"), subject("mortal"))])
    first = suites_of(matrix)[0]
    assert sorted(len(group.rows) for group in first.groups) == [1, 1, 1]


def test_a_title_says_what_the_sign_leaves_open(matrix: Matrix) -> None:
    group = suites_of(matrix)[0].groups[0]
    assert group.title(LAX) == "accepts what is to be refused (known)"
    assert group.title(MORTAL) == "refuses: bad-alignment"
    assert suites_of(matrix)[2].groups[0].title(MORTAL) == "not claimed, or not compared: its hello does not declare dequantize"


def test_findings_are_by_signature_and_subjects_new_ones_first(matrix: Matrix) -> None:
    found = [(one.signature, [who.name for who in one.who], len(one.rows), one.state, one.mark) for one in findings_of(matrix)]
    assert found == [
        ("header:-:crash-SIGSEGV:-", ["mortal"], 1, "new", "dies"),
        ("dequantize:Q4_K:bits:value", ["lax"], 2, "new", "numbers"),
        ("header:-:ok-for-reject-bad-alignment:-", ["lax"], 2, "known", "lax"),
    ]


def test_one_signature_of_other_subjects_is_another_finding(tmp_path: Path) -> None:
    also = [one for one in lax_results("twin") if one.case == "files/a/one"]
    rest = [answer(one.case, "twin") for one in lax_results("twin") if one.case != "files/a/one"]
    results = [*lax_results(), *also, *rest]
    found = findings_of(load_matrix([stream(tmp_path / "s", results, subject("lax"), subject("twin"))]))
    lax = {tuple(who.name for who in one.who): one for one in found if "alignment" in one.signature}
    assert {who: [row.id for row in one.rows] for who, one in lax.items()} == {
        ("lax",): ["files/a/two"],
        ("lax", "twin"): ["files/a/one"],
    }
    assert len({one.slug for one in found}) == len(found)


def test_the_smallest_case_has_the_fewest_bytes_then_the_shortest_recipe(matrix: Matrix) -> None:
    known = findings_of(matrix)[2]
    assert known.smallest.id == "files/a/two"
    assert known.reasons == {"policy: reads on": ["lax"]}


def test_a_reason_is_told_of_its_own_divergence_alone(tmp_path: Path) -> None:
    """A case that shows two has both reasons."""
    name, key = (accepted_wrongly("bad-name", "bug: long names"), accepted_wrongly("bad-key", "policy: any key"))
    two = (msgspec.structs.replace(name, remarks=(*name.remarks, "another remark")), key)
    reasons = ("bug: long names", "policy: any key")
    results = [
        answer("a/b/both", "lax", verdict="known", divergences=two, known=reasons),
        answer("a/b/both", "twin", verdict="known", divergences=two[:1], known=reasons[:1]),
    ]
    matrix = load_matrix([stream(tmp_path / "s", results, subject("lax"), subject("twin"))])
    found = {one.signature.split("-")[-2]: one.reasons for one in findings_of(matrix)}
    assert found == {"name:": {"bug: long names": ["lax", "twin"]}, "key:": {"policy: any key": ["lax"]}}
    assert "| lax, twin: bug: long names |\n" in markdown(matrix)
    assert "| policy: any key |\n" in markdown(matrix)
    assert "lax, twin: bug: long names</td>" in index_html(matrix, findings_of(matrix))


def test_numbers_are_added_up_by_op_and_type(matrix: Matrix) -> None:
    (row,) = number_rows(matrix)
    assert (row.op, row.type, row.differs) == ("dequantize", "Q4_K", True)
    assert row.by_who == {LAX: Compared(2, 4, 2, (0, 3, 5, 0, 1), 9)}
    assert findings_of(matrix)[1].spread(LAX) == (0, 3, 5, 0, 1)


def test_of_blocks_the_share_of_bytes_is_told_each_case_once(tmp_path: Path) -> None:
    scales = msgspec.structs.replace(BYTE, signature="quantize:Q4_K:bytes:d", different=10, compared=100)
    codes = msgspec.structs.replace(scales, signature="quantize:Q4_K:bytes:qs")
    few = answer("n/few", "lax", "ok", "diverge", "quantize", divergences=(scales, codes), by_op=(_quantized("quantize"),))
    weighted = _quantized("quantize with imatrix")
    many = answer("n/many", "lax", "ok", "diverge", "quantize", divergences=(BYTE,), by_op=(weighted,))
    rows = number_rows(load_matrix([stream(tmp_path / "s", [few, many], subject("lax"))]))
    assert [(row.op, row.by_who[LAX].share) for row in rows] == [("quantize", 0.1), ("quantize with imatrix", 905 / 139468)]


def _quantized(op: str) -> OpCount:
    return OpCount("Q4_K", op, 1, 2, 1)


@pytest.mark.parametrize(("share", "text"), [(1.0, "100 %"), (0.125, "12 %"), (0.0003, "0.03 %"), (0.05, "5 %")])
def test_a_share_is_never_told_as_none(share: float, text: str) -> None:
    assert percent(share) == text


def test_spreads_of_other_lengths_are_added_place_by_place() -> None:
    assert added([(1,), (), (0, 2, 5), (3, 1)]) == (4, 3, 5)
