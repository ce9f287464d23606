"""One line read as an outcome, and the same line held against the JSON Schema."""

import json

import jsonschema
import pytest

from conformance.outcomes import REJECT_CLASSES, Error, Ok, Protocol, Reject, Unsupported
from conformance.subjects.answers import excerpt, read_answer
from conformance.subjects.protocol import (
    DequantizeRequest,
    DotRequest,
    HeaderRequest,
    Hello,
    LoadRequest,
    MatvecRequest,
    QuantizeRequest,
    TensorRequest,
    WriteRequest,
)
from conformance.subjects.schema import SCHEMA_FILE, LineCheck, build_schema, schema_text
from conformance.values import Boxed, Header, HexText, Pair

CHECK = LineCheck()


def _header(*pairs, tensors=()):
    return {"version": 3, "alignment": 32, "data_offset": 64, "kv": list(pairs), "tensors": list(tensors)}


def _pair(kind, value, **more):
    return {"key": "k", "type": kind, "value": value, **more}


def _line(**fields):
    return json.dumps({"seq": 7, **fields}).encode()


TENSOR = {"name": "w", "type": 8, "dims": ["32", "2"], "offset": "0", "nbytes": "68"}

SOUND = [
    ("header", {"ok": _header()}, Ok(Header(3, 32, 64, [], []))),
    ("load", {"ok": _header(tensors=[TENSOR])}, None),
    ("header", {"ok": {**_header(), "new field": 1}}, None),
    ("header", {"ok": _header(), "elapsed": 0.5}, None),
    ("header", {"ok": _header(), "reject": None, "unsupported": None, "error": None}, None),
    ("quantize", {"ok": {}}, Ok()),
    ("dot", {"ok": {"threads": 4}}, Ok()),
    ("header", {"reject": {"class": "bad-magic", "message": "no", "at": 0}}, Reject("bad-magic", "no", 0)),
    ("header", {"reject": {}}, Reject("other")),
    ("header", {"ok": None, "reject": {"class": "other", "field": "kv[0].key"}}, Reject("other", "", None, "kv[0].key")),
    ("dot", {"unsupported": "no such type"}, Unsupported("no such type")),
    ("load", {"error": "KeyError: x"}, Error("KeyError: x")),
]


@pytest.mark.parametrize(("op", "fields", "outcome"), SOUND)
def test_sound_answers(op, fields, outcome):
    read = read_answer(_line(**fields), op, 7)
    assert read == outcome if outcome is not None else isinstance(read, Ok)
    assert CHECK.response(_line(**fields), op) is None


BROKEN = [
    ("header", {}, "exactly one of ok, reject, unsupported, error is due; got none"),
    ("header", {"ok": None}, "exactly one of ok, reject, unsupported, error is due; got none"),
    ("header", {"ok": _header(), "reject": {}}, "got ok and reject"),
    ("header", {"error": "a", "unsupported": "b"}, "got unsupported and error"),
    ("header", {"ok": {}}, "ok: Object missing required field `version`"),
    ("header", {"ok": []}, "ok: Expected `object`, got `array`"),
    ("dot", {"ok": True}, "ok: Expected `object`, got `bool`"),
    ("header", {"ok": _header(_pair("u32", 7))}, "ok: kv[0].value: Expected"),
    ("load", {"ok": _header(tensors=[{**TENSOR, "dims": [32]}])}, "ok: tensors[0].dims[0]: Expected `str`, got `int`"),
    ("header", {"reject": {"class": "bad_magic"}}, "unknown reject class 'bad_magic'; did you mean 'bad-magic'?"),
    ("header", {"reject": {"class": "xyz"}}, "unknown reject class 'xyz'; 'other' is for what has no class"),
    ("header", {"reject": "bad-magic"}, "reject: Expected `object | null`, got `str`"),
    ("header", {"seq": "7", "ok": _header()}, "seq: Expected `int`, got `str`"),
]


@pytest.mark.parametrize(("op", "fields", "problem"), BROKEN)
def test_answers_of_the_wrong_shape(op, fields, problem):
    outcome = read_answer(_line(**fields), op, 7)
    assert isinstance(outcome, Protocol)
    assert problem in outcome.problem
    assert CHECK.response(_line(**fields), op) is not None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"loading...", "not JSON: "),
        (b"", "not JSON: an empty line"),
        (b'{"seq":7,"ok":{}} {"seq":8}', "not JSON: "),
        (b'{"seq":7,"error":"\xff"}', "not JSON: Invalid UTF-8 encoded string"),
        (b'{"seq":7,"ok":' + b"[" * 100_000, "not JSON: maximum recursion depth"),
        (b'{"seq":6,"ok":{}}', "wrong seq: expected 7, got 6"),
    ],
)
def test_lines_that_are_no_answer(line, problem):
    outcome = read_answer(line, "dot", 7)
    assert isinstance(outcome, Protocol)
    assert outcome.problem.startswith(problem)


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        (_pair("uint32", "7"), "kv[0].type: unknown value type 'uint32'; one of u8, "),
        (_pair("u32", "07"), "kv[0].value: u32 is a decimal string without leading zeros, got '07'"),
        (_pair("u32", "0x7"), "kv[0].value: u32 is a decimal"),
        (_pair("i8", "-0"), "kv[0].value: i8 is a decimal"),
        (_pair("f32", "1.5"), "kv[0].value: f32 is 0x and 8 hex digits in lower case, got '1.5'"),
        (_pair("f32", "0x7FC00000"), "kv[0].value: f32 is 0x"),
        (_pair("f64", "0x7fc00000"), "kv[0].value: f64 is 0x and 16"),
        (_pair("bool", "True"), 'kv[0].value: bool is "true" or "false"'),
        (_pair("u8", ["1"]), "kv[0].value: a value of type u8 is one string"),
        (_pair("str", {"hex": "FF"}), "kv[0].value.hex: pairs of hex digits in lower case are due, got 'FF'"),
        (_pair("str", {"hex": "fff"}), "kv[0].value.hex: pairs"),
        (_pair("str", ["a"]), "kv[0].value: a string is text, or"),
        (_pair("array", "a", items="str"), "kv[0].value: an array's value is a list"),
        (_pair("array", ["1", "x"], items="u8"), "kv[0].value[1]: u8 is a decimal"),
        (_pair("array", ["a"], items="string"), "kv[0].items: unknown value type 'string'"),
        (_pair("array", ["1"], items="array"), "kv[0].value[0]: an array within an array is"),
        (_pair("array", [{"items": "f32", "value": ["1"]}], items="array"), "kv[0].value[0].value[0]: f32 is 0x"),
        (_pair("array", [{"items": "f32"}], items="array"), "kv[0].value[0].value: an array's value is a list"),
    ],
)
def test_values_whose_form_is_not_their_types(pair, problem):
    outcome = read_answer(_line(ok=_header(pair)), "header", 7)
    assert isinstance(outcome, Protocol)
    assert outcome.problem.startswith(f"ok: {problem}")


@pytest.mark.parametrize(
    ("pair", "read"),
    [
        (_pair("i64", "-9223372036854775808"), Pair("k", "i64", "-9223372036854775808")),
        (_pair("f64", "0x7ff8000000000001"), Pair("k", "f64", "0x7ff8000000000001")),
        (_pair("str", {"hex": "fffe"}), Pair("k", "str", Boxed(hex="fffe"))),
        ({**_pair("bool", "true"), "key": {"hex": "ff"}}, Pair(HexText("ff"), "bool", "true")),
        (_pair("array", [], items="f32"), Pair("k", "array", [], "f32")),
        (_pair("array", []), Pair("k", "array", [])),
        (_pair("array", ["a", {"hex": "ff"}], items="str"), Pair("k", "array", ["a", Boxed(hex="ff")], "str")),
        (
            _pair("array", [{"items": "u8", "value": ["1"]}], items="array"),
            Pair("k", "array", [Boxed(items="u8", value=["1"])], "array"),
        ),
    ],
)
def test_values_of_their_types(pair, read):
    outcome = read_answer(_line(ok=_header(pair)), "header", 7)
    assert outcome == Ok(Header(3, 32, 64, [read], []))
    assert CHECK.response(_line(ok=_header(pair)), "header") is None


def test_every_reject_class_is_admissible_in_both_readings():
    for name in REJECT_CLASSES:
        line = _line(reject={"class": name})
        assert read_answer(line, "load", 7) == Reject(name)
        assert CHECK.response(line, "load") is None


def test_excerpts_are_short_and_printable():
    assert excerpt(b"\x1b[31mred\n\xff") == "\\x1b[31mred\\n\\xff"
    assert excerpt(b"a" * 500) == "a" * 200 + "... (500 bytes)"


# The schema


def test_the_schema_file_is_what_the_message_types_give():
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run: python -m conformance.subjects.schema"


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(build_schema())


REQUESTS = [
    Hello(seq=1, protocol=1),
    HeaderRequest(seq=2, path="a"),
    LoadRequest(seq=3, path="a"),
    TensorRequest(seq=4, path="a", index=0, out="b"),
    DequantizeRequest(seq=5, type="Q8_0", rows=1, cols=32, input="a", out="b"),
    QuantizeRequest(seq=6, type="Q4_K", rows=1, cols=256, input="a", imatrix="i", variant="ref", out="b"),
    DotRequest(seq=7, type="Q8_0", rows=1, cols=32, weights="w", x="x", out="y"),
    MatvecRequest(seq=8, type="Q8_0", rows=1, cols=32, weights="w", x="x", variant="simd", out="y"),
    WriteRequest(seq=9, description="d", data="a", out="b"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_requests_keep_to_the_schema_and_miss_no_field(request_):
    import msgspec  # noqa: PLC0415 - only here

    line = msgspec.json.encode(request_)
    assert CHECK.request(line) is None
    for field in json.loads(line):
        short = {name: value for name, value in json.loads(line).items() if name != field}
        if field not in ("imatrix", "variant"):
            assert CHECK.request(json.dumps(short).encode()) is not None


@pytest.mark.parametrize(
    ("op", "fields", "problem"),
    [
        ("dot", {}, "$: exactly one of ok, reject, unsupported, error is there and not null"),
        ("load", {"ok": _header(_pair("u32", 7))}, "$.ok.kv[0].value: 7 is not of type 'string'"),
        ("load", {"reject": {"class": "x"}}, "$.reject.class: 'x' is not one of ['truncated'"),
        ("load", {"ok": {**_header(), "version": "3"}}, "$.ok.version: '3' is not of type 'integer'"),
        ("load", {"ok": _header(tensors=[{}])}, "$.ok.tensors[0]: 'name' is a required property"),
        ("hello", {"ok": {"name": 3}}, "$.ok.name: 3 is not of type 'string'"),
    ],
)
def test_schema_problems_name_the_place(op, fields, problem):
    assert CHECK.response(_line(**fields), op).startswith(problem)


def _nested(levels):
    value = ["7"]
    for _ in range(levels - 1):
        value = [{"items": "array" if value[0] != "7" else "u8", "value": value}]
    return {"key": "a", "type": "array", "items": "array" if levels > 1 else "u8", "value": value}


@pytest.mark.parametrize("levels", [1, 2, 128])
def test_arrays_as_deep_as_an_answer_may_go(levels):
    line = json.dumps({"seq": 1, "ok": _header(_nested(levels))}).encode()
    (outcome,) = {type(read_answer(line, "header", 1))}
    assert outcome is Ok


@pytest.mark.parametrize("levels", [129, 300, 900, 5000])
def test_arrays_nested_deeper_are_a_breach_and_no_fault_of_the_harness(levels):
    value = '{"items":"array","value":[' * levels + '{"items":"u8","value":["7"]}' + "]}" * levels
    whole = json.dumps({"seq": 1, "ok": _header({"key": "a", "type": "array", "items": "array", "value": ["here"]})})
    line = whole.replace('"here"', value)
    outcome = read_answer(line.encode(), "header", 1)
    assert isinstance(outcome, Protocol)
    assert "nested more than 128 levels deep" in outcome.problem or "recursion" in outcome.problem.lower()
