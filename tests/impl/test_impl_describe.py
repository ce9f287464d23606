"""The header in the protocol's words."""

from __future__ import annotations

from impl_build import ARR, F32, F64, U8, U64, array, gguf, pair, sound_file, tensor, u32

import impl
from impl.container.describe import describe


def described(data: bytes) -> dict[str, object]:
    return describe(impl.open(data).header)


def test_every_value_type_in_its_tagged_form() -> None:
    pairs = described(sound_file())["kv"]
    assert pairs == [
        {"key": "k0", "type": "u8", "value": "255"},
        {"key": "k1", "type": "i8", "value": "-128"},
        {"key": "k2", "type": "u16", "value": "65535"},
        {"key": "k3", "type": "i16", "value": "-32768"},
        {"key": "k4", "type": "u32", "value": "4294967295"},
        {"key": "k5", "type": "i32", "value": "-2147483648"},
        {"key": "k6", "type": "f32", "value": "0x3fc00000"},
        {"key": "k10", "type": "u64", "value": "18446744073709551615"},
        {"key": "k11", "type": "i64", "value": "-9223372036854775808"},
        {"key": "k12", "type": "f64", "value": "0x8000000000000000"},
        {"key": "bool", "type": "bool", "value": "true"},
        {"key": "text", "type": "str", "value": "größe"},
        {"key": "raw", "type": "str", "value": {"hex": "ff0061"}},
        {"key": "words", "type": "array", "value": ["one", "", {"hex": "fe"}], "items": "str"},
        {"key": "numbers", "type": "array", "value": ["1", "-2", "3"], "items": "i16"},
        {"key": "floats", "type": "array", "value": ["0x7fc00001", "0x80000000"], "items": "f32"},
        {"key": "flags", "type": "array", "value": ["false", "true", "true"], "items": "bool"},
        {"key": "none", "type": "array", "value": [], "items": "f64"},
    ]


def test_the_directory() -> None:
    said = described(sound_file())
    assert said["tensors"] == [
        {"name": "a", "type": 0, "dims": ["5", "2"], "offset": "0", "nbytes": "40"},
        {"name": "b.weight", "type": 8, "dims": ["32"], "offset": "64", "nbytes": "34"},
        {"name": "c", "type": 24, "dims": ["3"], "offset": "128", "nbytes": "3"},
    ]
    assert (said["version"], said["alignment"]) == (3, 32)
    assert said["data_offset"] == len(sound_file()) - 160


def test_names_and_keys_that_are_not_text() -> None:
    said = described(gguf([pair(b"\xff", U8, b"\1")], [tensor(b"t\xc3", [1, 1])], data=b""))
    assert said["kv"] == [{"key": {"hex": "ff"}, "type": "u8", "value": "1"}]
    assert said["tensors"] == [{"name": {"hex": "74c3"}, "type": 0, "dims": ["1", "1"], "offset": "0", "nbytes": "4"}]


def test_a_surrogate_in_utf8_is_no_text() -> None:
    assert described(gguf([pair(b"\xed\xa0\x80", U8, b"\1")]))["kv"] == [{"key": {"hex": "eda080"}, "type": "u8", "value": "1"}]


def test_no_dimensions_is_an_empty_list() -> None:
    said = described(gguf((), [tensor(b"t", [])], data=b""))
    assert said["tensors"] == [{"name": "t", "type": 0, "dims": [], "offset": "0", "nbytes": "4"}]


def test_a_signalling_nan_keeps_its_bits() -> None:
    nan = pair(b"n", F32, u32(0xFF800001))
    many = pair(b"m", ARR, array(F64, 1, b"\1" + bytes(5) + b"\xf0\x7f"))
    assert [said["value"] for said in described(gguf([nan, many]))["kv"]] == ["0xff800001", ["0x7ff0000000000001"]]


def test_floats_have_all_their_digits() -> None:
    pairs = [pair(b"n", F32, u32(1)), pair(b"m", F64, b"\1" + bytes(7))]
    assert [said["value"] for said in described(gguf(pairs))["kv"]] == ["0x00000001", "0x0000000000000001"]


def test_big_numbers_are_never_json_numbers() -> None:
    value = pair(b"m", ARR, array(U64, 1, b"\xff" * 8))
    assert described(gguf([value]))["kv"] == [{"key": "m", "type": "array", "value": ["18446744073709551615"], "items": "u64"}]
