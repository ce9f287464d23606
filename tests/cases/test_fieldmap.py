from __future__ import annotations

from typing import Any

import pytest

from conformance.cases.build import Built, build
from conformance.cases.fieldmap import Field, FieldMap

from .walker import Walker

RICH: dict[str, Any] = {
    "kv": [
        {"key": "u8", "u8": 255},
        {"key": "text", "str": "héllo"},
        {"key": "empty", "str": ""},
        {"key": "f64", "f64": "-0.5"},
        {"key": "numbers", "array": {"i16": [-1, 2, 3]}},
        {"key": "none", "array": {"u32": []}},
        {"key": "texts", "array": {"str": ["a", "", "ccc"]}},
        {"key": "same", "array": {"str": {"fill": "xy", "count": 5}}},
        {"key": "many", "array": {"u64": {"fill": 7, "count": 1000}}},
        {"key": "arrays", "array": {"array": [{"u32": [1]}, {"str": ["p", "q"]}, {"array": [{"u8": [9]}, {"u8": []}]}]}},
        {"key": "nest", "nested": {"levels": 4, "u16": [1, 2]}},
    ],
    "tensors": [
        {"name": "a", "type": "F32", "dims": [3, 2]},
        {"name": "b", "type": "Q8_0", "dims": [64]},
        {"name": "", "type": "F16", "dims": []},
    ],
}


def assert_tiles(built: Built) -> None:
    """Every byte of the file is in exactly one field, and fields come in file order."""
    position = 0
    for field in built.fields:
        assert field.offset == position, field
        assert field.length >= 0, field
        position = field.end
    assert position == len(built.data)


@pytest.mark.parametrize(
    ("extra", "sign", "long"),
    [({}, "<", "Q"), ({"byteorder": "big"}, ">", "Q"), ({"version": 1}, "<", "I"), ({"version": 2}, "<", "Q")],
)
def test_the_map_of_a_header_is_what_a_reader_walks_over(extra: dict[str, Any], sign: str, long: str) -> None:
    built = build({**RICH, **extra})
    walked = Walker(built.data, sign, long).header()
    mapped = [(field.path, field.offset, field.length) for field in built.fields]
    assert mapped[: len(walked)] == walked
    assert [path for path, _, _ in mapped[len(walked) :]] == [
        "padding",
        "data[0]",
        "data[0].padding",
        "data[1]",
        "data[1].padding",
        "data[2]",
        "data[2].padding",
    ]


def test_fields_tile_the_file() -> None:
    assert_tiles(build(RICH))


def test_find_at_index_and_iteration_agree() -> None:
    built = build(RICH)
    fields = list(built.fields)
    assert len(built.fields) == len(fields) > 1000
    for index, field in enumerate(fields):
        assert built.fields[index] == field
        assert built.fields.find(field.path) == field
        for offset in {field.offset, field.end - 1} if field.length else ():
            assert built.fields.at(offset) == field


@pytest.mark.parametrize(
    "path",
    [
        "",
        "kv",
        "kv[0]",
        "kv[11].key",
        "kv[4].value",
        "kv[4].value[3]",
        "kv[4].value[01]",
        "kv[4].value[-1]",
        "kv[4].value[0].length",
        "kv[6].value[3]",
        "kv[6].value[0].items",
        "kv[10].value[0][0][0][0][2]",
        "kv[10].value[0][0][0][0][0].items",
        "kv[10].value[1].items",
        "data[3]",
        "magi",
    ],
)
def test_there_is_no_field_at_a_wrong_path(path: str) -> None:
    assert build(RICH).fields.find(path) is None


def test_there_is_no_field_outside_the_file() -> None:
    built = build(RICH)
    assert built.fields.at(-1) is None
    assert built.fields.at(len(built.data)) is None
    for index in (-1, len(built.fields)):
        with pytest.raises(IndexError):
            built.fields[index]


def test_an_empty_map_has_nothing() -> None:
    empty = FieldMap([])
    assert (len(empty), list(empty), empty.find("magic"), empty.at(0)) == (0, [], None, None)


def test_the_whole_data_section_is_found() -> None:
    built = build(RICH)
    first, whole = built.fields.find("data[0]"), built.fields.find("data")
    assert first is not None
    assert whole is not None
    assert (whole.offset, whole.end) == (first.offset, len(built.data))


def test_a_million_levels_are_one_span_and_answer_by_arithmetic() -> None:
    built = build({"kv": [{"key": "a", "nested": {"levels": 10**6, "u32": [1]}}]})
    heads = 24 + 8 + 1 + 4
    assert len(built.data) == heads + 12 * 10**6 + 12 + 4
    assert len(built.fields) == 7 + 2 * 10**6 + 3
    deep = "kv[0].value" + "[0]" * 999_999 + ".length"
    assert built.fields.find(deep) == Field(deep, heads + 12 * 999_999 + 4, 8, "u64")
    inner = built.fields.at(len(built.data) - 1)
    assert inner is not None
    assert inner.path == "kv[0].value" + "[0]" * (10**6 + 1)
    second = built.fields.at(heads + 12)
    assert second is not None
    assert second.path == "kv[0].value[0].items"
    assert built.data[second.offset : second.end] == b"\x09\0\0\0"


def test_a_cut_leaves_what_is_before_it_at_every_length() -> None:
    recipe = {
        "kv": [
            {"key": "a", "array": {"str": ["x", "", "yz"]}},
            {"key": "b", "nested": {"levels": 2, "u8": [1, 2]}},
            {"key": "c", "array": {"u32": [1, 2]}},
        ]
    }
    recipe["tensors"] = [{"name": "t", "type": "F32", "dims": [1]}]
    whole = build(recipe)
    for size in range(len(whole.data)):
        built = build({**recipe, "cut": size})
        assert built.data == whole.data[:size]
        assert_tiles(built)
        assert len(built.fields) == len(list(built.fields))
        for offset in range(size):
            before, after = whole.fields.at(offset), built.fields.at(offset)
            assert before is not None
            assert after == before._replace(length=min(before.end, size) - before.offset)
            assert built.fields.find(before.path) == after
        for field in whole.fields:
            assert field.offset < size or built.fields.find(field.path) is None


def test_what_is_appended_is_a_field_too() -> None:
    built = build({**RICH, "cut": -5, "append": "00ff"})
    assert built.fields.at(len(built.data) - 1) == Field("appended", len(built.data) - 2, 2, "bytes")
    assert_tiles(built)
    whole = built.fields.find("data")
    assert whole is not None
    assert whole.end == len(built.data) - 2
    assert build({**RICH, "cut": 100}).fields.find("data") is None
