"""The library's face: values, tensors and their data, by path and from bytes."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from impl_build import ARR, F32, STR, U8, alignment, array, gguf, pair, sound_file, string, tensor, u32

import impl
from impl import GgufError, InputError


def test_values_are_python_values() -> None:
    meta = impl.open(sound_file()).metadata
    scalars = {key: meta[key] for key in list(meta)[:13]}
    assert scalars == {
        "k0": 255,
        "k1": -128,
        "k2": 65535,
        "k3": -32768,
        "k4": 2**32 - 1,
        "k5": -(2**31),
        "k6": 1.5,
        "k10": 2**64 - 1,
        "k11": -(2**63),
        "k12": -0.0,
        "bool": True,
        "text": "größe",
        "raw": "\udcff\0a",
    }
    assert np.signbit(meta["k12"])
    assert meta["bool"] is True
    assert [meta[key] for key in ("words", "numbers", "flags", "none")] == [
        ["one", "", "\udcfe"],
        [1, -2, 3],
        [False, True, True],
        [],
    ]


def test_values_keep_their_bytes_and_types() -> None:
    meta = impl.open(sound_file()).metadata
    assert meta.value("raw").raw == b"\xff\0a"
    assert meta.value("bool").raw == b"\2"
    assert meta.value("words").raw() == [b"one", b"", b"\xfe"]
    assert meta.value("floats").raw == u32(0x7FC00001) + u32(0x80000000)
    assert [meta.type(key) for key in ("k0", "text", "words", "none")] == ["u8", "str", "array", "array"]
    assert [meta.items_type(key) for key in ("k0", "words", "none")] == [None, "str", "f64"]


def test_a_missing_key_is_a_key_error() -> None:
    meta = impl.open(gguf()).metadata
    assert "a" not in meta
    with pytest.raises(KeyError):
        meta["a"]


def test_keys_that_are_not_text_stay_apart() -> None:
    meta = impl.open(gguf([pair(b"\xff", U8, b"\1"), pair(b"\xfe", U8, b"\2")])).metadata
    assert list(meta.items()) == [("\udcff", 1), ("\udcfe", 2)]


def test_values_are_made_when_asked_for_not_before() -> None:
    words = array(STR, 1000, string(b"\xff" * 10) * 1000)
    opened = impl.open(gguf([pair(b"a", ARR, words)]))
    value = opened.metadata.value("a")
    assert not any(isinstance(part, list) for part in value)
    assert opened.metadata["a"] == ["\udcff" * 10] * 1000


def test_tensors_tell_what_the_directory_says(tmp_path: Path) -> None:
    path = tmp_path / "sound.gguf"
    path.write_bytes(sound_file())
    opened = impl.open(path)
    told = [(t.name, t.type, t.ne, t.shape, t.offset, t.nbytes) for t in opened.tensors]
    assert told == [
        ("a", "F32", (5, 2), (2, 5), 0, 40),
        ("b.weight", "Q8_0", (32,), (32,), 64, 34),
        ("c", "I8", (3,), (3,), 128, 3),
    ]
    assert (opened.version, opened.alignment) == (3, 32)
    assert opened.tensors[0].data.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert opened.tensors[1].data.tolist() == list(range(34))
    assert opened.tensors[2].data.tobytes() == b"xyz"


def test_rows_are_rows() -> None:
    """Values 0..39 as 4 rows of 10 stand in the file with dimensions 10, 4."""
    data = struct.pack("<40f", *range(40))
    (only,) = impl.open(gguf((), [tensor(b"t", [10, 4])], data=data)).tensors
    assert only.data[3, 7] == 37


def test_data_is_a_view_of_the_mapping_and_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "sound.gguf"
    path.write_bytes(sound_file())
    opened = impl.open(path)
    data = opened.tensors[0].data
    assert np.shares_memory(data, np.frombuffer(opened.buffer, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        data[0, 0] = 1
    del opened
    assert data[1, 4] == 9  # the view keeps the mapping


@pytest.mark.parametrize(
    ("kind", "number", "dtype"),
    [
        ("F32", 0, "f4"),
        ("F16", 1, "f2"),
        ("F64", 28, "f8"),
        ("I8", 24, "i1"),
        ("I16", 25, "i2"),
        ("I32", 26, "i4"),
        ("I64", 27, "i8"),
    ],
)
def test_numbers_that_numpy_has_come_as_such(kind: str, number: int, dtype: str) -> None:
    values = np.array([[1, 2], [3, 4], [-5, 6]], dtype)
    (only,) = impl.open(gguf((), [tensor(b"t", [2, 3], number)], data=values.tobytes().ljust(64, b"\0"))).tensors
    assert (only.type, only.data.dtype) == (kind, np.dtype(f"<{dtype}"))
    assert (only.data == values).all()


def test_blocks_come_as_rows_of_bytes() -> None:
    (only,) = impl.open(gguf((), [tensor(b"t", [64, 3, 2], 2)], data=bytes(range(216)) + bytes(8))).tensors
    assert only.data.shape == (2, 3, 36)
    assert only.data[1, 0, 0] == 108


def test_data_that_lies_at_an_odd_place() -> None:
    data = gguf([alignment(1), pair(b"ab", U8, b"\0")], [tensor(b"t", [2])], data=struct.pack("<2f", 1.5, -2), align=1)
    opened = impl.open(data)
    assert opened.data_offset % 4 != 0
    assert opened.tensors[0].data.tolist() == [1.5, -2.0]


def test_no_dimensions_is_one_number() -> None:
    (only,) = impl.open(gguf((), [tensor(b"t", [])], data=struct.pack("<f", 2.5) + bytes(28))).tensors
    assert (only.shape, only.data.shape, float(only.data)) == ((), (), 2.5)


def test_data_that_is_missing_is_told_by_the_tensor_that_misses_it() -> None:
    data = gguf((), [tensor(b"t", [8]), tensor(b"u", [8], 0, 32)], data=bytes(40))
    first, second = impl.open(data).tensors
    assert first.data.tolist() == [0] * 8
    with pytest.raises(GgufError, match=r"'u' takes 32 bytes, but the file ends 8 bytes on, at 136") as caught:
        second.data  # noqa: B018 - the property is what raises
    assert (caught.value.reject_class, caught.value.field, caught.value.at) == ("missing-data", "tensors[1].data", 128)


@pytest.mark.parametrize("ne", [[2**62, 0, 4], [2**61, 0]])
def test_a_shape_that_numpy_cannot_make_is_refused(ne: list[int]) -> None:
    (only,) = impl.open(gguf((), [tensor(b"t", ne)], data=b"")).tensors
    with pytest.raises(GgufError) as caught:
        only.data  # noqa: B018 - the property is what raises
    assert caught.value.reject_class == "bad-dims"


def test_a_path_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        impl.open(tmp_path / "none.gguf")


def test_an_empty_file_is_refused_like_empty_bytes(tmp_path: Path) -> None:
    path = tmp_path / "empty.gguf"
    path.touch()
    with pytest.raises(GgufError, match="magic at byte 0"):
        impl.open(path)


def test_an_error_says_what_to_do_next() -> None:
    with pytest.raises(GgufError, match=r"cut short.*compare its size"):
        impl.open(gguf(n_kv=1))


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'close'"):
        impl.close  # noqa: B018 - it is not there
    assert {name for name in impl.__all__ if getattr(impl, name) is not None} == set(impl.__all__)


def test_f32_data_can_be_dequantized_as_it_comes() -> None:
    (only,) = impl.open(gguf([pair(b"x", F32, u32(0))], [tensor(b"t", [32, 2], 8)], data=bytes(96))).tensors
    assert impl.dequantize(only.type, only.data, only.shape).tolist() == [[0.0] * 32] * 2


@pytest.mark.parametrize(
    "make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")], ids=["fifo", "folder", "device"]
)
def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / "x.gguf"
    make(path)
    with pytest.raises(InputError, match=r"x\.gguf is no regular file.*copy what it gives to a file"):
        impl.open(path)


def test_a_refusal_goes_through_another_process() -> None:
    with pytest.raises(GgufError) as raised:
        impl.open(b"GGUX")
    again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
    assert type(again) is GgufError
    assert (str(again), again.reject_class, again.problem) == (str(raised.value), "bad-magic", raised.value.problem)
    assert (again.field, again.at, again.hint) == ("magic", 0, raised.value.hint)
