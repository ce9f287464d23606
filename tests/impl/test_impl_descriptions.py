"""What is refused before anything is written: with class, field, the offending value, and what to do."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import impl

NAN = float("nan")
F32 = {"type": "F32", "shape": (1,)}


def one(**changes: Any) -> list[impl.NewTensor]:
    return [impl.NewTensor(**{"name": "t", "data": bytes(4), **F32, **changes})]


def twice(name: str) -> list[impl.NewTensor]:
    return [impl.NewTensor(name, bytes(4), **F32), impl.NewTensor(name, bytes(4), **F32)]


@pytest.mark.parametrize(
    ("metadata", "tensors", "options", "reject_class", "field", "shows"),
    [
        ({"": True}, (), {}, "bad-key", "kv[0].key", "the key is empty"),
        ([("a", True), ("b", True), ("a", "x")], (), {}, "duplicate-key", "kv[2].key", "'a' is kv[0]'s too"),
        ({"general.alignment": np.uint32(0)}, (), {}, "bad-alignment", "kv[0].value", "general.alignment is 0; it must be a power"),
        ({"a": "", "general.alignment": np.uint32(24)}, (), {}, "bad-alignment", "kv[1].value", "general.alignment is 24"),
        (
            {"general.alignment": np.int64(32)},
            (),
            {},
            "bad-alignment",
            "kv[0].type",
            "of type i64; give it as impl.value('u32'",
        ),
        ({"general.alignment\0": np.uint32(3)}, (), {}, "bad-alignment", "kv[0].value", "general.alignment is 3"),
        ({}, (), {"version": 1}, "bad-version", "version", "version 1; write version 3, or 2"),
        ({}, one(name="n" * 64), {}, "bad-name", "tensors[0].name", "has 64 bytes; ggml reads names of 63 bytes at most"),
        ({}, one(name="ü" * 32), {}, "bad-name", "tensors[0].name", "has 64 bytes"),
        ({}, twice("t"), {}, "duplicate-tensor", "tensors[1].name", "'t' is tensors[0]'s too"),
        ({}, one(shape=(1, 1, 1, 1, 1)), {}, "bad-dims", "tensors[0].n_dims", "5 dimensions"),
        ({}, one(shape=(-1,)), {}, "bad-dims", "tensors[0].dims", "are [-1]"),
        ({}, one(shape=(2**32, 2**32)), {}, "bad-dims", "tensors[0].dims", "at most 9223372036854775807"),
        ({}, one(shape=(0, 2**32, 2**32)), {}, "bad-dims", "tensors[0].dims", "[4294967296, 4294967296, 0]"),
        ({}, one(shape=(2**62, 1), type="F64"), {}, "bad-size", "tensors[0].dims", "takes 36893488147419103232 bytes"),
        (
            {},
            one(shape=(1, 33), type="Q8_0"),
            {},
            "bad-block",
            "tensors[0].dims[0]",
            "33 elements is no multiple of the 32",
        ),
        ({}, one(shape=(), type="Q8_0"), {}, "bad-block", "tensors[0].dims[0]", "a row of 1 elements"),
    ],
)
def test_what_ggmls_reader_would_refuse(
    tmp_path: Path, metadata: Any, tensors: Any, options: Any, reject_class: str, field: str, shows: str
) -> None:
    with pytest.raises(impl.DescriptionError) as refused:
        impl.write(tmp_path / "out", metadata, tensors, **options)
    assert (refused.value.reject_class, refused.value.field) == (reject_class, field)
    assert shows in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    again = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - made a line before
    assert (str(again), again.reject_class, again.field) == (str(refused.value), reject_class, field)


@pytest.mark.parametrize(
    ("metadata", "tensors", "says"),
    [
        ({"a": 7}, (), "kv[0] 'a': 7 (int) could be of several types: name one, impl.value('u32', 7)"),
        ({"x": True, "a": 0.5}, (), "kv[1] 'a': 0.5 (float) could be of several types"),
        ({"a": []}, (), "[] (list) could be of several types"),
        ({"a": ["x", True]}, (), "a list of several types, ['x', True]"),
        ({"a": None}, (), "None (NoneType) could be"),
        ({"a": np.zeros((2, 2), np.float32)}, (), "an array of 2 dimensions"),
        ({"a": np.float16(1)}, (), "could be of several types"),
        ({"a": np.ma.masked_array(np.zeros(2, np.int32))}, (), "kv[0] 'a': a masked array, whose mask would be lost"),
        (None, (), "metadata must be a mapping, or pairs of a key and a value, not None"),
        ("abc", (), "pairs of a key and a value, not 'a' as kv[0]"),
        ([("a", True), ("b", True, 1)], (), "pairs of a key and a value, not ('b', True, 1) as kv[1]"),
        ({}, None, "tensors must be a mapping of names to arrays, or impl.NewTensor one by one, not None"),
        ({7: True}, (), "the key of kv[0] must be text, as str or bytes, not int: 7"),
        ({"\ud800": True}, (), "the key of kv[0] holds U+D800, which UTF-8 cannot"),
        ({}, one(data=np.zeros(1)), "tensor 't' of type F32 is given as float64: it takes float32"),
        ({}, one(data=np.zeros(1, ">f4")), "is given as >f4: it takes float32"),
        ({}, one(data=np.zeros((2, 3), np.float32), shape=(3, 2)), "the array has the shape (2, 3), not (3, 2)"),
        ({}, [impl.NewTensor("t", np.zeros(1, np.uint16))], "tensor 't' is given as uint16, which is no ggml type: name it"),
        ({}, [impl.NewTensor("t", bytes(4))], "tensor 't' is given as bytes, which is no ggml type"),
        ({}, [impl.NewTensor("t", bytes(4), type="F32")], "tensor 't' has no shape: bytes do not tell it"),
        ({}, [impl.NewTensor("t", np.zeros(33, np.uint8), type="Q8_0")], "rows of 33 bytes are no whole Q8_0 blocks of 34 bytes"),
        ({}, one(shape=(1.5,)), "shape must be whole numbers, rows first, not (1.5,)"),
        ({}, one(shape=3), "shape must be whole numbers, rows first, not 3"),
        ({}, one(data="text"), "the data of tensor 't' must be bytes, an array, or an iterable of these, not str"),
        ({}, one(data=[1]), "the data of tensor 't' must come as bytes or arrays, not int"),
        ({}, one(data=np.ma.masked_array(np.zeros(1, np.float32))), "masked array"),
        ({}, one(name=7), "a tensor's name must be text"),
        ({}, [("t", np.zeros(1))], "tensors must be impl.NewTensor or an open file's, not tuple: make impl.NewTensor"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, metadata: Any, tensors: Any, says: str) -> None:
    with pytest.raises(impl.InputError) as refused:
        impl.write(tmp_path / "out", metadata, tensors)
    assert says in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"a": True, "abcdef": True}, "kv[1].key"),
        ({"a": "abcdef"}, "kv[0].value"),
        ({"a": ["abcde", "abcdef"]}, "kv[0].value[1]"),
    ],
)
def test_a_text_that_ggml_finds_too_long(tmp_path: Path, metadata: Any, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of 5 bytes in place of 2^30."""
    monkeypatch.setattr("impl.container.layout.MAX_STRING_LENGTH", 5)
    impl.write(tmp_path / "five", {"abcde": ["abcde"], "b": "abcde"})
    with pytest.raises(impl.DescriptionError, match="a text of 6 bytes") as refused:
        impl.write(tmp_path / "six", metadata)
    assert (refused.value.reject_class, refused.value.field) == ("bad-length", field)


def test_a_type_that_ggml_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(impl.UnsupportedError, match="unknown ggml type 'Q4_2'"):
        impl.write(tmp_path / "out", {}, one(type="Q4_2"))


@pytest.mark.parametrize("version", [3.0, "3", None])
def test_a_version_that_is_no_whole_number(tmp_path: Path, version: Any) -> None:
    with pytest.raises(impl.DescriptionError, match=f"version {version!r}"):
        impl.write(tmp_path / "out", {}, version=version)
    assert list(tmp_path.iterdir()) == []


def test_a_byte_order_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(impl.InputError, match="byteorder must be 'little' or 'big', not 'native'"):
        impl.write(tmp_path / "out", {}, byteorder="native")  # type: ignore[arg-type] # what is tested


LIMITS = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 2**16 - 1), "i16": (-(2**15), 2**15 - 1), "u32": (0, 2**32 - 1)}
LIMITS |= {"i32": (-(2**31), 2**31 - 1), "u64": (0, 2**64 - 1), "i64": (-(2**63), 2**63 - 1)}


@pytest.mark.parametrize("kind", LIMITS)
def test_a_number_out_of_range_is_shown_with_the_range(kind: str) -> None:
    low, high = LIMITS[kind]
    assert [impl.value(kind, number).get() for number in LIMITS[kind]] == [low, high]
    for number in (low - 1, high + 1):
        with pytest.raises(impl.InputError) as refused:
            impl.value(kind, [low, number])
        assert str(refused.value) == f"{number} is no {kind}, which holds whole numbers from {low} to {high}"


@pytest.mark.parametrize(
    ("kind", "content", "says"),
    [
        ("u32", 7.0, "7.0 is no u32"),
        ("u32", "7", "'7' is no u32"),
        ("f32", 1e39, "1e+39 is no f32"),
        ("f32", "x", "'x' is no f32"),
        ("bool", 1, "1 is no bool: give True or False"),
        ("str", 7, "a value must be text"),
        ("str", ["a", 7], "an element must be text"),
        ("u33", 7, "unknown value type 'u33': the known ones are u8"),
        ("array", [7], "unknown value type 'array'"),
        ("u32", [[7]], "[7] is no u32"),
        ("u32", np.zeros((2, 2), np.uint32), "an array of 2 dimensions"),
    ],
)
def test_a_value_that_its_type_does_not_hold(kind: str, content: object, says: str) -> None:
    with pytest.raises(impl.InputError) as refused:
        impl.value(kind, content)
    assert says in str(refused.value)
