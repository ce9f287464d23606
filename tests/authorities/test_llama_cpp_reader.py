"""What llama.cpp reads from files that it accepts, and the files that kill it."""

from __future__ import annotations

import os
import struct
import time

import pytest

from conformance.outcomes import Crash, Ok, Reject
from conformance.subjects.protocol import TensorRequest
from conformance.values import Boxed, HexText, Pair
from tests.authorities.files import (
    ARR,
    BOOL,
    F32,
    F64,
    I8,
    I64,
    STR,
    TYPE_F32,
    TYPE_I8,
    TYPE_Q4_0,
    TYPE_Q8_0,
    U8,
    U64,
    alignment,
    array,
    gguf,
    pair,
    string,
    tensor,
    u32,
)

VALUES = {
    "u8": (pair(b"k", U8, b"\xff"), Pair("k", "u8", "255")),
    "i8": (pair(b"k", I8, b"\x80"), Pair("k", "i8", "-128")),
    "u64": (pair(b"k", U64, b"\xff" * 8), Pair("k", "u64", "18446744073709551615")),
    "i64": (pair(b"k", I64, struct.pack("<q", -(2**63))), Pair("k", "i64", "-9223372036854775808")),
    "f32 with a NaN payload": (pair(b"k", F32, u32(0xFFC12345)), Pair("k", "f32", "0xffc12345")),
    "f32 signalling NaN": (pair(b"k", F32, u32(0x7F800001)), Pair("k", "f32", "0x7f800001")),
    "f64 signalling NaN": (pair(b"k", F64, struct.pack("<Q", 0xFFF0000000000001)), Pair("k", "f64", "0xfff0000000000001")),
    "array of f32 with NaN payloads": (
        pair(b"k", ARR, array(F32, 2, struct.pack("<II", 0x7F800001, 0x80000000))),
        Pair("k", "array", ["0x7f800001", "0x80000000"], "f32"),
    ),
    "bool of 2": (pair(b"k", BOOL, b"\x02"), Pair("k", "bool", "true")),
    "array of bools": (pair(b"k", ARR, array(BOOL, 3, b"\x00\x01\xff")), Pair("k", "array", ["false", "true", "true"], "bool")),
    "string up to its NUL": (pair(b"k", STR, string(b"ab\0cd")), Pair("k", "str", "ab")),
    "string that is not UTF-8": (pair(b"k", STR, string(b"\xff\xfe")), Pair("k", "str", Boxed(hex="fffe"))),
    "key that is not UTF-8": (pair(b"\xff", U8, b"\1"), Pair(HexText("ff"), "u8", "1")),
    "array of strings": (
        pair(b"k", ARR, array(STR, 3, string(b"") + string("ü".encode()) + string(b"\xff"))),
        Pair("k", "array", ["", "ü", Boxed(hex="ff")], "str"),
    ),
    "empty array": (pair(b"k", ARR, array(I64, 0)), Pair("k", "array", [], "i64")),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(llama_cpp, ask, name):
    written, expected = VALUES[name]
    outcome = ask(llama_cpp, "header", gguf([pair(b"before", U8, b"\7"), written]))
    assert isinstance(outcome, Ok), outcome
    assert outcome.header.kv == [Pair("before", "u8", "7"), expected]


def test_header_and_tensors(llama_cpp, ask):
    infos = [
        tensor(b"w", TYPE_Q8_0, [64, 3, 1]),
        tensor(b"scalar", TYPE_F32, [], 64 * 4),
        tensor(b"none", TYPE_F32, [4, 0], 64 * 4 + 64),
    ]
    data = gguf([alignment(64)], infos, bytes(64 * 4 + 64), version=2, align=64)
    for op in ("header", "load"):
        header = ask(llama_cpp, op, data).header
        assert (header.version, header.alignment, header.data_offset) == (2, 64, len(data) - 64 * 5)
        assert [(t.name, t.type, t.dims, t.offset, t.nbytes) for t in header.tensors] == [
            ("w", TYPE_Q8_0, ["64", "3"], "0", "204"),
            ("scalar", TYPE_F32, [], "256", "4"),
            ("none", TYPE_F32, ["4", "0"], "320", "0"),
        ]


def test_a_wrapped_size_passes_all_modes(llama_cpp, ask):
    """ggml_nbytes multiplies before it divides, so that 10^18 elements of Q4_0 come out as 4 bytes."""
    data = gguf([], [tensor(b"t", TYPE_Q4_0, [32 * ((2**58 + 2) // 9)])], bytes(32))
    for op in ("header", "load"):
        assert ask(llama_cpp, op, data).header.tensors[0].nbytes == "4"


def test_tensor_bytes(llama_cpp, tensor_bytes, tmp_path):
    path = tmp_path / "two.gguf"
    data = os.urandom(34) + bytes(30) + os.urandom(16)
    path.write_bytes(gguf([], [tensor(b"a", TYPE_Q8_0, [32]), tensor(b"b", TYPE_F32, [4], 64)], data + bytes(16)))
    os.utime(path, (1, 1))  # long ago: the adapter may keep the file between the two requests
    assert tensor_bytes(llama_cpp, path, 1) == data[64:80]
    assert tensor_bytes(llama_cpp, path, 0) == data[:34]


def test_a_file_written_anew_is_read_anew(llama_cpp, tensor_bytes, tmp_path):
    """Though its path, size and time are the same: a file as young as that may change within a tick of the clock."""
    path = tmp_path / "same.gguf"
    soon = time.time_ns() + 10**10
    for content in (b"1234", b"5678", b"9abc"):
        path.write_bytes(gguf([], [tensor(b"t", TYPE_F32, [1])], content + bytes(28)))
        os.utime(path, ns=(soon, soon))
        assert tensor_bytes(llama_cpp, path, 0) == content


def test_tensor_out_of_range(llama_cpp, tmp_path):
    path = tmp_path / "one.gguf"
    path.write_bytes(gguf([], [tensor(b"t", TYPE_F32, [1])], bytes(32)))
    for index in (-1, 1):
        outcome = llama_cpp.ask(TensorRequest(seq=0, path=str(path), index=index, out=str(tmp_path / "out"))).outcome
        assert isinstance(outcome, Reject)
        assert (outcome.reject_class, outcome.message) == ("bad-input", f"tensor {index} of 1")


KILLERS = {
    "one element short of 2^63 in one row": tensor(b"t", TYPE_I8, [1, 2**63 - 1]),
    "2^62 rows of none, four times": tensor(b"t", TYPE_F32, [2**62, 0, 4]),
    "more data than there is memory": tensor(b"t", TYPE_I8, [2**62]),
}


@pytest.mark.parametrize("name", KILLERS)
def test_what_kills_the_library(llama_cpp, ask, name):
    """These pass without a ggml context and abort with one; the next request finds a new process."""
    data = gguf([], [KILLERS[name]])
    assert isinstance(ask(llama_cpp, "header", data), Ok)
    outcome = ask(llama_cpp, "load", data)
    assert isinstance(outcome, Crash), outcome
    assert outcome.how == "SIGABRT"
    assert "GGML_ASSERT" in outcome.stderr
    assert isinstance(ask(llama_cpp, "header", gguf()), Ok)
