"""Streams are joined: columns, rows, and what happens to a subject that is in several."""

from pathlib import Path

import msgspec
import pytest

from conformance.errors import ConfigurationError, UsageError
from conformance.matrix.cell import Who
from conformance.matrix.load import load_matrix
from conformance.matrix.matrix import Matrix
from conformance.matrix.summary import summary_rows
from conformance.report.events import CaseResult
from tests.matrix.streams import (
    CASES,
    GGUF_PY,
    GOLDEN,
    LLAMA,
    answer,
    authority_results,
    both,
    lax_results,
    mortal_results,
    said,
    stream,
    subject,
)
from tests.report.samples import result

LAX, MORTAL = Who("lax", is_authority=False), Who("mortal", is_authority=False)


def _names(matrix: Matrix) -> list[str]:
    return [column.who.name for column in matrix.columns]


def test_authorities_stand_before_subjects_and_rows_by_id(tmp_path: Path) -> None:
    others = [msgspec.structs.replace(one, who="gguf-py") for one in authority_results()]
    results = [*mortal_results(), *authority_results(), *others]
    matrix = load_matrix([stream(tmp_path / "s", results, subject("mortal"), GGUF_PY, LLAMA)])
    assert _names(matrix) == ["llama.cpp", "gguf-py", "mortal"]
    assert [row.id for row in matrix.rows] == sorted(CASES)
    assert matrix.warnings == matrix.notes == ()


def test_streams_of_different_subjects_are_joined(tmp_path: Path) -> None:
    one = stream(tmp_path / "one", [*authority_results(), *lax_results()], LLAMA, subject("lax"))
    two = stream(tmp_path / "two", [*authority_results(), *mortal_results()], LLAMA, subject("mortal", language="go"))
    joined, together = load_matrix([one, two]), load_matrix([both(tmp_path)])
    assert summary_rows(joined) == summary_rows(together)
    assert [row.cells.keys() for row in joined.rows] == [row.cells.keys() for row in together.rows]


def test_a_folder_stands_for_the_stream_in_it(tmp_path: Path) -> None:
    path = both(tmp_path)
    assert load_matrix([path.parent]).rows == load_matrix([path]).rows


def test_the_run_that_began_last_has_a_subject_whole(tmp_path: Path) -> None:
    new = [answer("files/a/one", "lax", "reject bad-alignment")]
    later = stream(tmp_path / "later", new, LLAMA, subject("lax", "2.0"), at="2031-02-03T05:00:00+00:00")
    for order in ([later, both(tmp_path / "a")], [both(tmp_path / "b"), later]):
        matrix = load_matrix(order)
        assert [cell.result.verdict for cell in matrix.by_who[LAX]] == ["pass"]
        assert next(column.participant.version for column in matrix.columns if column.who == LAX) == "2.0"
        assert len(matrix.by_who[MORTAL]) == len(CASES)
        assert len(matrix.notes) == 1
        assert "later" in matrix.notes[0]


def test_a_start_is_compared_as_a_time_and_not_as_a_text(tmp_path: Path) -> None:
    new = [answer("files/a/one", "lax", "reject bad-alignment")]
    earlier = stream(tmp_path / "e", new, LLAMA, subject("lax", "0.9"), at="2031-02-03T05:00:00+05:00")
    matrix = load_matrix([both(tmp_path), earlier])
    assert len(matrix.by_who[LAX]) == len(CASES)


def test_different_versions_of_an_authority_are_not_joined(tmp_path: Path) -> None:
    other = stream(tmp_path / "o", lax_results("other"), msgspec.structs.replace(LLAMA, version="0.4"), subject("other"))
    with pytest.raises(ConfigurationError, match=r"different versions of llama\.cpp: 0\.3\.36 in .*, 0\.4 here"):
        load_matrix([both(tmp_path), other])


def test_a_recorded_authority_is_known_from_what_subjects_were_held_to(tmp_path: Path) -> None:
    answers = (said("lax", "ok", same=False), said("llama.cpp", "reject bad-alignment", same=False))
    results = [answer("files/a/one", "lax", "ok", answers=answers), answer("files/a/two", "lax", "ok")]
    matrix = load_matrix([stream(tmp_path / "g", results, GOLDEN, subject("lax"))])
    (cell,) = matrix.by_who[Who("llama.cpp", is_authority=True)]
    assert (cell.result.case, cell.kind, cell.state) == ("files/a/one", "refuses", "")
    assert cell.result.answers[0].same is None
    assert summary_rows(matrix)[0].passed is None


def test_a_recorded_authority_shows_where_only_the_second_subject_was_asked(tmp_path: Path) -> None:
    answers = (said("second", "ok"), said("llama.cpp", "ok"))
    results = [result("files/a/one", "skip", who="first"), answer("files/a/one", "second", answers=answers)]
    matrix = load_matrix([stream(tmp_path / "g", results, GOLDEN, subject("first"), subject("second"))])
    assert [cell.kind for cell in matrix.by_who[Who("llama.cpp", is_authority=True)]] == ["accepts"]


def test_a_live_authority_stays_where_a_later_run_has_it_recorded(tmp_path: Path) -> None:
    answers = (said("other", "ok"), said("llama.cpp", "ok"))
    results = [answer("files/b/dead", "other", answers=answers), answer("files/c/new", "other", answers=answers)]
    later = stream(tmp_path / "g", results, GOLDEN, subject("other"), at="2031-02-04T00:00:00+00:00", oracle="golden")
    matrix = load_matrix([both(tmp_path), later])
    llama = {cell.result.case: cell.kind for cell in matrix.by_who[Who("llama.cpp", is_authority=True)]}
    assert (llama["files/b/dead"], llama["files/c/new"]) == ("dies", "accepts")
    assert (matrix.columns[0].participant.role, matrix.columns[0].oracle) == ("authority", "live")


def test_a_subject_may_bear_an_authoritys_name(tmp_path: Path) -> None:
    results = [answer("files/a/one", "llama.cpp", answers=(said("llama.cpp", "ok"),))]
    matrix = load_matrix([stream(tmp_path / "g", results, GOLDEN, subject("llama.cpp"))])
    assert [column.who for column in matrix.columns] == [Who("llama.cpp", is_authority=True), Who("llama.cpp", is_authority=False)]


def test_patterns_choose_cases_and_the_whole_run_stays_the_measure(tmp_path: Path) -> None:
    matrix = load_matrix([both(tmp_path)], ["files/**", "!files/b"])
    assert {row.suite for row in matrix.rows} == {"files/a"}
    assert matrix.partial
    assert matrix.warnings == ()
    with pytest.raises(UsageError, match="selects no case"):
        load_matrix([both(tmp_path / "again")], ["nothing/*"])


def test_a_run_that_was_cut_short_is_told(tmp_path: Path) -> None:
    path = stream(tmp_path / "cut", lax_results(), subject("lax"), whole=False)
    (warning,) = load_matrix([path]).warnings
    assert "TRUNCATED" in warning
    assert str(path) in warning


def test_no_stream_and_no_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no event stream"):
        load_matrix([])
    with pytest.raises(ConfigurationError, match="cannot read the event stream"):
        load_matrix([tmp_path / "absent"])


def test_a_start_without_a_time_zone_or_without_sense_is_no_end(tmp_path: Path) -> None:
    paths = [
        stream(tmp_path / str(index), [_of(f"s{index}")], subject(f"s{index}"), at=at)
        for index, at in enumerate(["never", "2031-02-03T04:05:06", ""])
    ]
    assert _names(load_matrix(paths)) == ["s0", "s2", "s1"]


def _of(name: str) -> CaseResult:
    return answer("files/a/one", name)
