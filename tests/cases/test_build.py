from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader

from conformance.cases.build import build
from conformance.cases.directory import pattern
from conformance.cases.fieldmap import Field
from conformance.values import VALUE_TYPES

from .test_fieldmap import assert_tiles


def read(tmp_path: Path, recipe: dict[str, Any]) -> GGUFReader:
    path = tmp_path / "built.gguf"
    path.write_bytes(build(recipe).data)
    return GGUFReader(path)


@pytest.mark.parametrize(
    ("recipe", "size"),
    [
        ({"kv": [{"key": "general.alignment", "u32": 0}]}, 57),
        ({"kv": [{"key": "general.architecture", "str": ""}], "patch": {"kv[0].value.length": "2^40"}}, 64),
        ({"n_tensors": "2^40"}, 24),
        ({"kv": [{"key": "a", "nested": {"levels": 100, "u32": []}}]}, 1249),
    ],
)
def test_published_sizes_of_four_hostile_headers(recipe: dict[str, Any], size: int) -> None:
    assert len(build(recipe).data) == size


def test_the_empty_recipe_is_a_sound_empty_file() -> None:
    assert build({}).data == b"GGUF" + struct.pack("<IQQ", 3, 0, 0)


@pytest.mark.parametrize("order", ["little", "big"])
def test_gguf_py_reads_every_kind_of_value(tmp_path: Path, order: str) -> None:
    values: dict[str, Any] = {"u8": 200, "i8": -100, "u16": 60000, "i16": -30000, "u32": 2**32 - 1, "i32": -(2**31)}
    values |= {"f32": "0.1", "bool": "true", "str": "grüße", "u64": "2^64-1", "i64": "-2^63", "f64": "0.1"}
    reader = read(tmp_path, {"byteorder": order, "kv": [{"key": f"k.{kind}", kind: value} for kind, value in values.items()]})
    found = {kind: reader.fields[f"k.{kind}"].contents() for kind in values}
    expected = {**values, "f32": float(np.float32(0.1)), "f64": 0.1, "bool": True, "u64": 2**64 - 1, "i64": -(2**63)}
    assert found == expected
    assert [reader.fields[f"k.{kind}"].types[0] for kind in values] == [VALUE_TYPES.index(kind) for kind in values]


def test_gguf_py_reads_arrays(tmp_path: Path) -> None:
    arrays = {"u8": [1, 2, 255], "i64": [-1, 0, 7], "bool": ["true", "false"], "f32": ["1.5", "-2"], "str": ["a", "", "ççç"]}
    reader = read(tmp_path, {"kv": [{"key": kind, "array": {kind: items}} for kind, items in arrays.items()]})
    expected = {**arrays, "bool": [True, False], "f32": [1.5, -2.0]}
    assert {kind: reader.fields[kind].contents() for kind in arrays} == expected


def test_gguf_py_reads_filled_and_nested_arrays(tmp_path: Path) -> None:
    kv = [
        {"key": "fill", "array": {"u16": {"fill": 9, "count": 300}}},
        {"key": "texts", "array": {"str": {"fill": {"repeat": "ab", "count": 3}, "count": 2}}},
    ]
    nested = {"key": "in", "array": {"array": [{"u32": [1]}, {"u32": [2, 3]}]}}
    reader = read(tmp_path, {"kv": [*kv, nested, {"key": "deep", "nested": {"levels": 50, "u32": [4]}}]})
    assert reader.fields["fill"].contents() == [9] * 300
    assert reader.fields["texts"].contents() == ["ababab"] * 2
    assert reader.fields["in"].contents() == [1, 2, 3]
    assert reader.fields["deep"].contents() == [4]


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("alignment", [8, 32, 64])
def test_gguf_py_finds_the_tensors_and_their_data(tmp_path: Path, order: str, alignment: int) -> None:
    tensors: list[dict[str, Any]] = [
        {"name": "numbers", "type": "F32", "dims": [2, 2], "data": [1, "-0.5", "1e-3", 4]},
        {"name": "pattern", "type": "Q4_0", "dims": [64, 3]},
        {"name": "hex", "type": "I16", "dims": [2], "data": "01020304"},
        {"name": "filled", "type": "I8", "dims": [5], "data": {"fill": 7}},
        {"name": "scalar", "type": 0, "dims": []},
    ]
    kv = [{"key": "general.alignment", "u32": alignment}]
    reader = read(tmp_path, {"byteorder": order, "kv": kv, "tensors": tensors})
    assert reader.alignment == alignment
    found = {tensor.name: tensor for tensor in reader.tensors}
    assert list(found) == [tensor["name"] for tensor in tensors]
    assert found["numbers"].data.tolist() == np.array([[1, -0.5], [1e-3, 4]], np.float32).tolist()
    assert found["pattern"].tensor_type == GGMLQuantizationType.Q4_0
    assert found["pattern"].data.tobytes() == pattern(1, 18 * 6)
    assert found["hex"].data.tobytes() == bytes([1, 2, 3, 4])
    assert found["filled"].data.tolist() == [7] * 5
    assert [int(tensor.data_offset - reader.data_offset) % alignment for tensor in reader.tensors] == [0] * 5


def test_the_default_data_is_never_zero_and_differs_between_tensors() -> None:
    first, second = pattern(0, 600), pattern(1, 600)
    assert 0 not in first + second
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert first[0] == 1
    assert first[251] == 1
    assert second[0] == 38


def test_random_data_is_the_generators_bytes() -> None:
    built = build({"tensors": [{"name": "t", "type": "I8", "dims": [11], "data": {"random": 0}}]})
    spot = built.fields.find("data[0]")
    assert spot is not None
    # SplitMix64 with seed 0 gives E220A8397B1DCDAF, then 6E789E6AA1B965F4.
    assert built.data[spot.offset : spot.end] == bytes.fromhex("afcd1d7b39a820e2 f465b9")


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        ({"bool": 2}, b"\2"),
        ({"f32": "0x7f800001"}, b"\x01\x00\x80\x7f"),
        ({"f64": "-inf"}, struct.pack("<d", float("-inf"))),
        ({"str": {"hex": "fffe"}}, struct.pack("<Q", 2) + b"\xff\xfe"),
        ({"raw": {"type": 13, "hex": "abcd"}}, b"\xab\xcd"),
        ({"str": "\x00a"}, struct.pack("<Q", 2) + b"\0a"),
    ],
)
def test_a_value_that_no_writer_writes(value: dict[str, Any], raw: bytes) -> None:
    built = build({"kv": [{"key": "k", **value}]})
    assert built.data[24 + 8 + 1 + 4 :] == raw


def test_a_raw_value_has_the_type_that_it_states() -> None:
    assert build({"kv": [{"key": "k", "raw": {"type": 13}}]}).data[-4:] == b"\x0d\0\0\0"


def test_typed_data_may_be_filled() -> None:
    built = build(
        {"tensors": [{"name": "t", "type": "I8", "dims": [12], "data": {"f32": {"fill": "-0.0", "count": 3}}}], "pad_last": "false"}
    )
    assert built.data[-12:] == b"\0\0\0\x80" * 3


def test_a_long_key_and_name_need_not_be_written_out() -> None:
    built = build(
        {
            "kv": [{"key": {"repeat": "x", "count": 65536}, "u8": 1}],
            "tensors": [{"name": {"repeat": "ab", "count": 40}, "type": "I8", "dims": [1]}],
        }
    )
    key, name = built.fields.find("kv[0].key"), built.fields.find("tensors[0].name")
    assert key is not None
    assert name is not None
    assert built.data[key.offset : key.end] == b"x" * 65536
    assert built.data[name.offset : name.end] == b"ab" * 40


def test_version_1_has_32_bit_counts_lengths_and_dims() -> None:
    built = build(
        {
            "version": 1,
            "kv": [{"key": "k", "str": "v"}],
            "tensors": [{"name": "t", "type": "I8", "dims": [3]}],
            "data": "none",
            "pad_header": "false",
        }
    )
    pairs = struct.pack("<I", 1) + b"k" + struct.pack("<II", 8, 1) + b"v"
    tensors = struct.pack("<I", 1) + b"t" + struct.pack("<IIIQ", 1, 3, 24, 0)
    assert built.data == b"GGUF" + struct.pack("<III", 1, 1, 1) + pairs + tensors


TENSORS: list[dict[str, Any]] = [{"name": "a", "type": "F32", "dims": [4]}, {"name": "b", "type": "F32", "dims": [4]}]
DIRECTORY_END = 24 + 2 * (8 + 1 + 4 + 8 + 4 + 8)


@pytest.mark.parametrize(
    ("extra", "size"),
    [
        ({}, 96 + 32 + 32),
        ({"pad_last": "false"}, 96 + 32 + 16),
        ({"data": "none"}, 96),
        ({"pad_header": "false"}, DIRECTORY_END),
        ({"align": 8}, 96 + 16 + 16),
        ({"align": 24, "pad_last": "false"}, 96 + 24 + 16),
        ({"cut": 10}, 10),
        ({"cut": -1}, 159),
        ({"append": {"count": 7, "fill": 255}}, 167),
        ({"n_tensors": 3, "n_kv": "2^63"}, 160),
    ],
)
def test_size_follows_from_the_layout(extra: dict[str, Any], size: int) -> None:
    assert DIRECTORY_END == 90
    built = build({"tensors": TENSORS, **extra})
    assert len(built.data) == size
    assert_tiles(built)


def test_padding_of_a_file_without_tensors_is_there_when_asked_for() -> None:
    assert len(build({"pad_header": "true"}).data) == 32


@pytest.mark.parametrize(("value", "align"), [(0, 32), (1, 1), (24, 24), (64, 64)])
def test_the_layout_follows_general_alignment_where_it_can(value: int, align: int) -> None:
    built = build({"kv": [{"key": "general.alignment", "u32": value}], "tensors": TENSORS})
    start = built.fields.find("data[0]")
    assert start is not None
    assert start.offset == -(-(57 + 66) // align) * align


@pytest.mark.parametrize("value", [{"i32": 256}, {"u64": 256}, {"str": "256"}])
def test_the_layout_does_not_follow_an_alignment_of_another_type(value: dict[str, Any]) -> None:
    built = build({"kv": [{"key": "general.alignment", **value}], "tensors": [{"name": "a", "type": "I8", "dims": [1]}]})
    assert len(built.data) < 256


def test_dims_may_be_many() -> None:
    built = build(
        {
            "tensors": [
                {"name": "t", "type": "F32", "dims": {"fill": 1, "count": 70}},
                {"name": "u", "type": "F32", "dims": {"fill": 2, "count": 1}},
            ]
        }
    )
    assert built.fields.find("tensors[0].dims[70]") is None
    found = [built.fields.find(f"tensors[{number}].n_dims") for number in (0, 1)]
    assert [built.data[spot.offset] for spot in found if spot] == [70, 1]


def offsets(recipe: dict[str, Any]) -> list[int]:
    built = build(recipe)
    spots = [built.fields.find(f"tensors[{index}].offset") for index in range(len(recipe["tensors"]))]
    return [int.from_bytes(built.data[spot.offset : spot.end], "little") for spot in spots if spot]


def test_offsets_stated_and_derived() -> None:
    stated: list[dict[str, Any]] = [
        {"name": "a", "type": "I8", "dims": [5], "offset": 64},
        {"name": "b", "type": "I8", "dims": [5]},
    ]
    assert offsets({"tensors": stated}) == [64, 96]
    # 3 * 2^63 bytes are beyond any file: such a tensor takes no room in the layout.
    assert offsets({"tensors": [{"name": "a", "type": "F32", "dims": ["2^61", 3]}, stated[1]]}) == [0, 0]
    # 2^42 bytes are claimed by a sound directory, so the next tensor lies after them.
    assert offsets({"tensors": [{"name": "a", "type": "F32", "dims": ["2^40"]}, stated[1]]}) == [0, 2**42]
    assert offsets({"tensors": [{**stated[0], "offset": "-32", "data": "none"}]}) == [2**64 - 32]


def test_a_gap_before_the_first_tensor_is_padding_of_the_section() -> None:
    built = build({"tensors": [{"name": "a", "type": "I8", "dims": [5], "offset": 64}]})
    assert [field.path for field in built.fields][-4:] == ["padding", "data.padding", "data[0]", "data[0].padding"]
    assert_tiles(built)


def test_swapped_tensors_tile_in_order_of_their_place() -> None:
    swapped = [{"name": "a", "type": "I8", "dims": [32], "offset": 32}, {"name": "b", "type": "I8", "dims": [32], "offset": 0}]
    built = build({"tensors": swapped})
    assert [field.path for field in built.fields][-2:] == ["data[1]", "data[0]"]
    assert built.data[-64:] == pattern(1, 32) + pattern(0, 32)
    assert_tiles(built)


def test_overlapping_tensors_still_tile_and_are_found_whole() -> None:
    overlapping = [
        {"name": "a", "type": "I8", "dims": [48]},
        {"name": "b", "type": "I8", "dims": [40], "offset": 32},
        {"name": "c", "type": "I8", "dims": [8], "offset": 0},
    ]
    built = build({"tensors": overlapping})
    assert_tiles(built)
    start = len(built.data) - 96
    assert built.fields.find("data[1]") == Field("data[1]", start + 32, 40, "data")
    assert built.fields.find("data[2]") == Field("data[2]", start, 8, "data")
    assert built.data[start : start + 8] == pattern(2, 8)


@pytest.mark.parametrize(
    "broken",
    [
        {"type": 4, "dims": [32]},
        {"type": 99, "dims": [32]},
        {"type": -1, "dims": [32]},
        {"type": "Q8_0", "dims": [33]},
        {"type": "F32", "dims": [-1]},
        {"type": "F32", "dims": ["2^62", 4]},
        {"type": "F32", "dims": [0]},
        {"type": "F32", "dims": ["2^40"]},
        {"type": "I8", "dims": [1], "offset": "2^50"},
    ],
)
def test_a_tensor_that_cannot_be_filled_has_no_data(broken: dict[str, Any]) -> None:
    built = build({"tensors": [{"name": "t", **broken}]})
    assert built.fields.find("data") is None
    assert len(built.data) % 32 == 0


def test_data_given_for_a_broken_tensor_is_written() -> None:
    built = build({"tensors": [{"name": "t", "type": 4, "dims": [32], "data": "0102"}, {"name": "u", "type": "I8", "dims": [1]}]})
    spot, next_one = built.fields.find("data[0]"), built.fields.find("data[1]")
    assert spot is not None
    assert next_one is not None
    assert built.data[spot.offset : spot.end] == b"\1\2"
    assert next_one.offset == spot.offset + 32


@pytest.mark.parametrize(
    ("patch", "value", "raw"),
    [
        ("magic", {"hex": "67677566"}, b"gguf"),
        ("version", 0x03000000, b"\0\0\0\3"),
        ("n_kv", "-1", b"\xff" * 8),
        ("kv[0].key", {"hex": "ff"}, b"\xff"),
        ("kv[0].value", "nan", b"\0\0\xc0\x7f"),
        ("kv[1].value.items", 13, b"\x0d\0\0\0"),
        ("kv[1].value.length", "2^61", struct.pack("<Q", 2**61)),
        ("kv[1].value[1]", 77, struct.pack("<H", 77)),
        ("kv[2].value[0].length", "2^40", struct.pack("<Q", 2**40)),
        ("tensors[0].dims[0]", "-2^63", struct.pack("<q", -(2**63))),
        ("tensors[0].offset", 1, struct.pack("<Q", 1)),
        ("padding", {"hex": "00" * 22 + "ff"}, b"\0" * 22 + b"\xff"),
        ("padding", {"fill": 255}, b"\xff" * 23),
    ],
)
def test_a_patch_writes_over_exactly_its_field(patch: str, value: object, raw: bytes) -> None:
    kv = [{"key": "f", "f32": 1}, {"key": "a", "array": {"u16": [1, 2]}}, {"key": "s", "array": {"str": ["x"]}}]
    recipe: dict[str, Any] = {"kv": kv, "tensors": [{"name": "t", "type": "F32", "dims": [4]}]}
    before, after = build(recipe), build({**recipe, "patch": {patch: value}})
    spot = after.fields.find(patch)
    assert spot is not None
    assert after.data[spot.offset : spot.end] == raw
    assert after.data[: spot.offset] == before.data[: spot.offset]
    assert after.data[spot.end :] == before.data[spot.end :]


def test_a_patch_keeps_to_the_files_byte_order() -> None:
    built = build({"byteorder": "big", "patch": {"n_kv": 1}})
    assert built.data[16:24] == b"\0" * 7 + b"\1"


def test_raw_bytes_are_the_whole_file() -> None:
    built = build({"bytes": "4747 55"})
    assert built.data == b"GGU"
    assert list(built.fields) == [Field("bytes", 0, 3, "bytes")]
    assert build({"bytes": ""}).data == b""
