"""The reader that knows the layout alone: held to the builder's field map, and to files that end early."""

from __future__ import annotations

import struct

import pytest

from conformance.cases.build import build
from conformance.cases.fieldmap import Field
from conformance.cases.model import FileInput
from conformance.cases.walk import fields_of, walk
from conformance.values import Boxed, HexText, Pair, TensorInfo
from tests.corpus import corpus

CASES = [case for case in corpus() if isinstance(case.input, FileInput)]
WRITTEN = [case for case in CASES if "write" in case.ask]


def without_padding(fields: list[Field]) -> list[Field]:
    """The builder keeps empty fields of padding."""
    return [field for field in fields if field.length or field.kind != "padding"]


@pytest.mark.parametrize("case", WRITTEN, ids=[case.id for case in WRITTEN])
def test_the_fields_are_the_builders(case):
    built = build(case.input.recipe)
    walked = walk(built.data)
    assert walked.problem == ""
    assert without_padding(list(walked.fields)) == without_padding(list(built.fields))
    assert list(fields_of(built.data)) == list(walked.fields)


def test_every_file_cut_anywhere_is_tiled_and_told_of():
    whole = build(WRITTEN[0].input.recipe).data
    for size in range(len(whole)):
        fields = list(walk(whole[:size]).fields)
        assert sum(field.length for field in fields) == size
        ends = [0, *(field.end for field in fields)]
        assert [field.offset for field in fields] == ends[:-1]
    assert walk(whole[:40]).problem == "ends at 40, within kv[0].key, which takes 20 bytes from 32 on"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "ends at 0, within magic, which takes 4 bytes from 0 on"),
        (b"GGUX" + bytes(20), "does not start with GGUF"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(16), "has version 50331648, or is big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "has version 1, or is big-endian"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<I", 13), "value type 13 at kv[0].type"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 4, 2**61), "within kv[0].value"),
    ],
)
def test_what_is_no_file_is_told_of(data, problem):
    walked = walk(data)
    assert problem in walked.problem
    assert sum(field.length for field in walked.fields) == len(data)


def test_what_a_file_says():
    recipe = {
        "kv": [
            {"key": {"hex": "ff"}, "f32": "0x7f800001"},
            {"key": "b", "bool": "2"},
            {"key": "c", "array": {"array": [{"u8": ["1", "2"]}, {"str": ["x", {"hex": "c0"}]}]}},
            {"key": "d", "array": {"f64": ["-0.0"]}},
            {"key": "b", "i64": "-2^63"},
            {"key": "general.alignment", "u32": "64"},
        ],
        "tensors": [{"name": "t", "type": "Q8_0", "dims": ["32", "2"]}, {"name": "t", "type": "F16", "dims": ["3", "1"]}],
    }
    data = build(recipe).data
    header = walk(data).header
    assert header.kv == [
        Pair(HexText("ff"), "f32", "0x7f800001"),
        Pair("b", "bool", "true"),
        Pair("c", "array", [Boxed(items="u8", value=["1", "2"]), Boxed(items="str", value=["x", Boxed(hex="c0")])], "array"),
        Pair("d", "array", ["0x8000000000000000"], "f64"),
        Pair("b", "i64", "-9223372036854775808"),
        Pair("general.alignment", "u32", "64"),
    ]
    assert header.tensors == [TensorInfo("t", 8, ["32", "2"], "0", "68"), TensorInfo("t", 1, ["3", "1"], "128", "6")]
    assert (header.version, header.alignment, len(data) - header.data_offset) == (3, 64, 192)


def test_a_size_that_type_and_shape_do_not_tell_goes_up_to_the_next_tensor():
    tensors = [
        {"name": "a", "type": "99", "dims": ["7"], "data": {"fill": "1", "count": "40"}},
        {"name": "b", "type": "Q8_0", "dims": ["33"], "data": {"fill": "2", "count": "35"}, "offset": "64"},
    ]
    header = walk(build({"tensors": tensors, "pad_last": "false"}).data).header
    assert [tensor.nbytes for tensor in header.tensors] == ["64", "35"]
