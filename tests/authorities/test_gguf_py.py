"""What gguf-py 0.19.0 accepts, reads and refuses. Expected from gguf/gguf_reader.py, read line by line, and from the format."""

from __future__ import annotations

import struct

import pytest

from conformance.ggml_types import BY_NAME
from conformance.outcomes import Ok, Reject, Unsupported
from conformance.values import Pair
from tests.authorities.block_requests import Blocks, floats, gaussian, noise
from tests.authorities.files import (
    ARR,
    BOOL,
    F32,
    F64,
    HEAD,
    I32,
    STR,
    TYPE_F32,
    TYPE_I8,
    TYPE_Q4_0,
    TYPE_Q8_0,
    TYPE_Q8_1,
    U8,
    U64,
    alignment,
    array,
    big_endian,
    gguf,
    pair,
    string,
    tensor,
    u32,
)


@pytest.fixture
def blocks(gguf_py, tmp_path):
    return Blocks(gguf_py, tmp_path)


def nested(levels: int) -> bytes:
    value = array(U8, 1, b"\1")
    for _ in range(levels):
        value = array(ARR, 1, value)
    return pair(b"k", ARR, value)


VALUES = {
    "f32 with a NaN payload": (pair(b"k", F32, u32(0xFFC12345)), Pair("k", "f32", "0xffc12345")),
    "f32 signalling NaN": (pair(b"k", F32, u32(0x7F800001)), Pair("k", "f32", "0x7f800001")),
    "f64": (pair(b"k", F64, struct.pack("<Q", 0xFFF0000000000001)), Pair("k", "f64", "0xfff0000000000001")),
    "u64": (pair(b"k", U64, b"\xff" * 8), Pair("k", "u64", "18446744073709551615")),
    "bool of 2": (pair(b"k", BOOL, b"\2"), Pair("k", "bool", "true")),
    "string with NUL": (pair(b"k", STR, string(b"ab\0cd")), Pair("k", "str", "ab\0cd")),
    "empty key": (pair(b"", U8, b"\1"), Pair("", "u8", "1")),
    "key that starts like one of the reader's own": (pair(b"GGUF.mine", U8, b"\1"), Pair("GGUF.mine", "u8", "1")),
    "empty array loses its items' type": (pair(b"k", ARR, array(U8, 0)), Pair("k", "array", [])),
    "empty array of a type that does not exist": (pair(b"k", ARR, array(13, 0)), Pair("k", "array", [])),
    "array of strings": (pair(b"k", ARR, array(STR, 2, string(b"") + string(b"x"))), Pair("k", "array", ["", "x"], "str")),
    "arrays in an array come flattened": (
        pair(b"k", ARR, array(ARR, 2, array(I32, 2, struct.pack("<2i", -1, 2)) + array(I32, 1, struct.pack("<i", 3)))),
        Pair("k", "array", ["-1", "2", "3"], "i32"),
    ),
    "900 levels": (nested(900), Pair("k", "array", ["1"], "u8")),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(gguf_py, ask, name):
    written, expected = VALUES[name]
    outcome = ask(gguf_py, "header", gguf([pair(b"before", U8, b"\7"), written]))
    assert isinstance(outcome, Ok), outcome
    assert outcome.header.kv == [Pair("before", "u8", "7"), expected]


ROW = bytes(32)
ACCEPTED = {
    "5 dimensions": gguf([], [tensor(b"t", TYPE_F32, [1, 1, 1, 2, 1])], bytes(8)),
    "name of 64": gguf([], [tensor(b"n" * 64, TYPE_F32, [1])], ROW),
    "gap": gguf([], [tensor(b"t", TYPE_F32, [1]), tensor(b"u", TYPE_F32, [1], 64)], ROW * 3),
    "overlap": gguf([], [tensor(b"t", TYPE_F32, [1]), tensor(b"u", TYPE_F32, [1])], ROW),
    "swapped": gguf([], [tensor(b"t", TYPE_F32, [1], 32), tensor(b"u", TYPE_F32, [1])], ROW * 2),
    "unaligned": gguf([], [tensor(b"t", TYPE_F32, [1], 1)], ROW),
    "first offset 32": gguf([], [tensor(b"t", TYPE_F32, [1], 32)], ROW * 2),
    "last padding missing": gguf([], [tensor(b"t", TYPE_F32, [1])], bytes(4)),
    "string that claims more than there is, last of all": gguf([pair(b"k", STR, string(b"abc", 2**40))]),
    "array of u8 that claims more than there is, last of all": gguf([pair(b"k", ARR, array(U8, 5, b"abc"))]),
    "big endian": big_endian(),
    "big endian version 2": big_endian(2),
    "alignment 1": gguf([alignment(1)]),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_it_accepts(gguf_py, ask, name):
    outcome = ask(gguf_py, "header", ACCEPTED[name])
    assert isinstance(outcome, Ok), outcome


def test_big_endian_numbers(gguf_py, ask):
    header = ask(gguf_py, "load", big_endian()).header
    assert (header.version, header.kv) == (3, [Pair("a", "f32", "0x3fc00000")])
    assert [(t.name, t.dims, t.nbytes) for t in header.tensors] == [("t", ["2"], "8")]


def test_data_offset_is_padded_without_tensors(gguf_py, ask):
    assert ask(gguf_py, "header", gguf()).header.data_offset == 32


def test_an_offset_that_wraps_is_told_as_written(gguf_py, ask):
    """2^64-32 from the data section on is 32 bytes before it: the reader takes header bytes for data."""
    header = ask(gguf_py, "header", gguf([], [tensor(b"t", TYPE_F32, [1], 2**64 - 32)])).header
    assert header.tensors[0].offset == str(2**64 - 32)


def test_blocks_of_q8_1_are_taken_for_40_bytes(gguf_py, ask):
    header = ask(gguf_py, "header", gguf([], [tensor(b"t", TYPE_Q8_1, [256])], bytes(320))).header
    assert header.tensors[0].nbytes == "320"


CUT = gguf([pair(b"a", U64, bytes(8))])
INFO = gguf(n_tensors=1) + tensor(b"t", TYPE_F32, [1])
REJECTED = {
    "empty": (b"", "truncated"),
    "3 bytes": (b"GGU", "truncated"),
    "magic": (b"GGML" + gguf()[4:], "bad-magic"),
    "no version": (b"GGUF", "truncated"),
    "version 1": (gguf(version=1), "bad-version"),
    "version 65536": (gguf(version=65536), "bad-version"),
    "version 4": (gguf(version=4), "bad-version"),
    "one count": (gguf()[:16], "truncated"),
    "half a count": (gguf()[:20], "truncated"),
    "no pair": (gguf(n_kv=1), "truncated"),
    "n_kv beyond the file": (gguf(n_kv=2**32), "truncated"),
    "key length 2^40": (gguf(n_kv=1) + string(b"a", 2**40), "truncated"),
    "no value type": (CUT[: HEAD + 9], "truncated"),
    "half a value": (CUT[:-3], "truncated"),
    "no value": (CUT[:-8], "truncated"),
    "duplicate key": (gguf([pair(b"a", U8, b"\1"), pair(b"a", U8, b"\1")]), "duplicate-key"),
    "a key of the reader's own": (gguf([pair(b"GGUF.version", U8, b"\1")]), "duplicate-key"),
    "key that is not UTF-8": (gguf([pair(b"\xff", U8, b"\1")]), "bad-key"),
    "value type 13": (gguf([pair(b"a", 13, b"")]), "bad-value-type"),
    "array of type 13": (gguf([pair(b"a", ARR, array(13, 1, b"\0"))]), "bad-value-type"),
    "3000 levels": (gguf([nested(3000)]), "too-deep"),
    "string that is not UTF-8": (gguf([pair(b"a", STR, string(b"\xff"))]), "bad-value"),
    "alignment i32": (gguf([pair(b"general.alignment", I32, u32(32))]), "bad-alignment"),
    "alignment 0": (gguf([alignment(0)]), "bad-alignment"),
    "alignment 24": (gguf([alignment(24)]), "bad-alignment"),
    "name that is not UTF-8": (gguf([], [tensor(b"\xff", TYPE_F32, [0])]), "bad-name"),
    "duplicate name": (gguf([], [tensor(b"t", TYPE_F32, [0])] * 2), "duplicate-tensor"),
    "no type": (INFO[:-12], "truncated"),
    "half an offset": (INFO[:-3], "truncated"),
    "no offset": (INFO[:-8], "truncated"),
    "type 4": (gguf([], [tensor(b"t", 4, [32])]), "bad-tensor-type"),
    "type 42": (gguf([], [tensor(b"t", 42, [64])], bytes(18)), "bad-tensor-type"),
    "row of 31": (gguf([], [tensor(b"t", TYPE_Q8_0, [31, 32])], bytes(2000)), "bad-block"),
    "scalar of blocks": (gguf([], [tensor(b"t", TYPE_Q4_0, [])], bytes(18)), "bad-block"),
    "65 dimensions": (gguf([], [tensor(b"t", TYPE_F32, [1] * 65)], ROW), "bad-dims"),
    "2^64 elements": (gguf([], [tensor(b"t", TYPE_F32, [2**32, 2**32])], ROW), "bad-dims"),
    "a dimension of 2^63": (gguf([], [tensor(b"t", TYPE_I8, [2**63, 2])], ROW), "bad-dims"),
    "a dimension of 2^64-1": (gguf([], [tensor(b"t", TYPE_I8, [2**64 - 1])], ROW), "bad-dims"),
    "2^66 bytes but for a zero": (gguf([], [tensor(b"t", TYPE_F32, [2**62, 0, 4])], ROW), "bad-dims"),
    "data one byte short": (gguf([], [tensor(b"t", TYPE_I8, [8])], bytes(7)), "missing-data"),
    "data half a float short": (gguf([], [tensor(b"t", TYPE_F32, [2])], bytes(6)), "missing-data"),
    "no data": (gguf([], [tensor(b"t", TYPE_F32, [2])]), "missing-data"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_class(gguf_py, ask, name):
    data, reject_class = REJECTED[name]
    outcome = ask(gguf_py, "header", data)
    assert isinstance(outcome, Reject), outcome
    assert outcome.reject_class == reject_class, outcome


def test_a_file_that_ends_early_is_never_refused_for_an_unknown_reason(gguf_py, ask):
    whole = gguf(
        [pair(b"a", ARR, array(STR, 2, string(b"") + string(b"xy"))), pair(b"bcd", U64, bytes(8)), alignment(32)],
        [tensor(b"t", TYPE_Q8_0, [32, 2]), tensor(b"u", TYPE_F32, [], 96)],
        noise(100),
    )
    classes = set()
    for length in range(len(whole)):
        outcome = ask(gguf_py, "header", whole[:length])
        assert isinstance(outcome, Reject), (length, outcome)
        classes.add(outcome.reject_class)
    assert classes == {"truncated", "missing-data"}


def test_tensor_bytes(gguf_py, tensor_bytes, tmp_path):
    path = tmp_path / "two.gguf"
    data = noise(64 + 16)
    path.write_bytes(gguf([], [tensor(b"a", TYPE_Q8_0, [32]), tensor(b"b", TYPE_F32, [4], 64)], data))
    assert tensor_bytes(gguf_py, path, 0) == data[:34]
    assert tensor_bytes(gguf_py, path, 1) == data[64:]
    path.write_bytes(big_endian())
    assert tensor_bytes(gguf_py, path, 0) == struct.pack(">2f", 1, 2)


def test_each_declared_quantizer_answers(blocks):
    rows = gaussian(512)
    for kind in blocks.subject.identity.ops.quantize:
        outcome, out = blocks.quantize(kind, rows, 256)
        assert (outcome, len(out)) == (Ok(), 2 * BY_NAME[kind].row_bytes(256)), kind


def test_each_declared_dequantizer_answers(blocks):
    for kind in blocks.subject.identity.ops.dequantize:
        outcome, out = blocks.dequantize(kind, noise(2 * BY_NAME[kind].row_bytes(256)), 256)
        assert (outcome, len(out)) == (Ok(), 2 * 256 * 4), kind


def test_which_types_are_declared(gguf_py):
    ops = gguf_py.identity.ops
    assert set(ops.quantize) == {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"}
    live = {name for name, kind in BY_NAME.items() if not kind.removed}
    assert set(ops.dequantize) == live - {"I8", "I16", "I32", "I64", "F64", "Q8_1", "Q8_K", "Q1_0", "Q2_0"}


def test_q8_0_rounds_ties_away_from_zero(blocks):
    _, block = blocks.quantize("Q8_0", floats([127.0] + [i + 0.5 for i in range(1, 32)]), 32)
    assert struct.unpack("<e32b", block) == (1.0, 127, *range(2, 33))


def test_it_takes_no_imatrix(blocks):
    outcome, _ = blocks.quantize("Q8_0", gaussian(32), 32, floats([1.0] * 32))
    assert outcome == Unsupported("gguf-py quantizes without an imatrix")


def test_the_package_refuses_a_row_that_is_no_multiple(blocks):
    outcome, _ = blocks.quantize("Q8_0", gaussian(31), 31)
    assert outcome == Reject("bad-input", "Can't quantize tensor with shape (1, 31) to Q8_0")
