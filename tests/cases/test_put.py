"""How requests are put: the grammar of ``put``, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from conformance.cases.load import load_suite
from conformance.cases.model import Case, Put
from conformance.errors import ConfigurationError
from conformance.run.extended import extended
from conformance.run.prepare import place_below
from conformance.run.result import recipe_text
from conformance.subjects.protocol import HeaderRequest, QuantizeRequest

ACCEPT = "expect: {llama.cpp: accept, gguf-py: accept, spec: accept}"


def load(tmp_path: Path, put: str, rest: str = "build: {}, ask: [header]") -> Case:
    path = tmp_path / "small" / "put.yaml"
    path.parent.mkdir()
    path.write_text(f"suite: small/put\ndefaults: {{{ACCEPT}}}\ncases:\n  one: {{{rest}, put: {put}}}\n")
    (case,) = load_suite(path, tmp_path)
    return case


def test_what_is_left_out_is_the_plain_way(tmp_path: Path) -> None:
    assert load(tmp_path, "{times: 3}").put == Put(times=3)


def test_a_report_shows_how_a_case_was_put(tmp_path: Path) -> None:
    assert "put: {folder: a b, over: 7}" in recipe_text(load(tmp_path, "{folder: a b, over: 7}"))


@pytest.mark.parametrize(
    ("put", "told"),
    [
        ("{}", "nothing is said"),
        ("{time: 3}", "did you mean `times`?"),
        ("{times: 1}", "the range is 2 to 10000"),
        ("{times: 3, ahead: 3}", "`times` and `ahead` exclude each other"),
        ("{folder: a, length: 300}", "`folder` and `length` exclude each other"),
        ("{length: 4000}", "the range is 1 to 3840"),
        ("{folder: a/../b}", "`a/../b` is no folder below another"),
        ("{folder: /a}", "`/a` is no folder below another"),
        ("{input: gone}", "`gone` is not known here"),
        ("{fields: '[1]'}", "is no JSON object"),
        ("{fields: '{1}'}", "is no JSON object"),
        ('{fields: \'{"a": ' + 3000 * "[" + 3000 * "]" + "}'}", "is no JSON object"),
        (r"""{fields: '{"a\"b": 1}'}""", "is no field's name"),
        (r"""{fields: '{"a\n": 1}'}""", "is no field's name"),
        ("""{fields: '{"seq": 1}'}""", "`seq` is the request's own"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, put: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, put)
    assert told in str(error.value)
    assert "put.yaml:" in error.value.where


@pytest.mark.parametrize("rest", ["build: {}, ask: [header, tensor]", "type: Q8_0, rows: {special: {zeros: {fill: 0}}}"])
def test_only_reading_a_header_is_asked_of_no_file(tmp_path: Path, rest: str) -> None:
    with pytest.raises(ConfigurationError, match="only `header` and `load` are asked"):
        load(tmp_path, "{input: missing}", rest)


@pytest.mark.parametrize("length", [200, 201, 202, 300, 401, 402, 403, 3840])
def test_a_folder_has_just_the_length_that_is_asked_for(tmp_path: Path, length: int) -> None:
    folder = place_below(tmp_path, Put(length=length))
    assert folder.is_dir()
    assert len(str(folder)) == length


def test_where_the_length_is_reached_already_the_folder_stays(tmp_path: Path) -> None:
    assert place_below(tmp_path, Put(length=3)) == tmp_path
    assert place_below(tmp_path, Put()) == tmp_path


def test_given_fields_come_before_the_request_s_own_and_take_the_place_of_those_left_out() -> None:
    given = {"later": {"path": "/nowhere"}, "imatrix": None}
    line = msgspec.json.encode(extended(QuantizeRequest(seq=0, type="Q8_0", rows=1, cols=32, input="a", out="b"), given))
    assert list(json.loads(line)) == ["op", "later", "imatrix", "seq", "type", "rows", "cols", "in", "out"]
    assert line.count(b"imatrix") == 1
    asked = extended(HeaderRequest(seq=0, path="a"), given)
    assert json.loads(msgspec.json.encode(msgspec.structs.replace(asked, seq=7)))["seq"] == 7
