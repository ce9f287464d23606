"""Why llama.cpp refuses a file. The expected classes are those of the rules in ggml/src/gguf.cpp, read one by one."""

from __future__ import annotations

import struct

import pytest

from conformance.outcomes import Error, Ok, Reject
from conformance.subjects.authorities.llama_cpp.rejects import classify
from conformance.subjects.protocol import HeaderRequest
from tests.authorities.files import (
    ARR,
    HEAD,
    I32,
    STR,
    TYPE_F32,
    TYPE_I8,
    TYPE_Q4_0,
    TYPE_Q8_0,
    U8,
    U32,
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

KEY = HEAD + 8  # offset of the first key's bytes
AFTER_A = KEY + 1  # offset of the value type after a key of one byte
NAME = HEAD + 8  # offset of the first tensor's name where there are no pairs
AFTER_T = NAME + 1  # offset of n_dims after a name of one byte

HEADER = {
    # name: (file, class, offset of the field that is to blame)
    "empty": (b"", "truncated", 0),
    "magic": (b"GGML" + gguf()[4:], "bad-magic", None),
    "version 0": (gguf(version=0), "bad-version", 4),
    "version 1": (gguf(version=1), "bad-version", 4),
    "version 4": (gguf(version=4), "bad-version", 4),
    "version 65536": (gguf(version=65536), "byte-order", 4),
    "big endian": (big_endian(), "byte-order", 4),
    "negative n_tensors": (gguf(n_tensors=2**63), "bad-count", 8),
    "negative n_kv": (gguf(n_kv=2**64 - 1), "bad-count", 16),
    "n_kv beyond the file": (gguf(n_kv=2**32), "truncated", HEAD),
    "key length 2^40": (gguf(n_kv=1) + string(b"a", 2**40), "bad-length", HEAD),
    "key length 2^63+5": (gguf(n_kv=1) + string(b"a", 2**63 + 5), "bad-length", HEAD),
    "key length one too many": (gguf(n_kv=1) + string(b"a", 2), "bad-length", HEAD),
    "empty key": (gguf([pair(b"", U8, b"\1")]), "bad-key", HEAD),
    "duplicate key": (gguf([pair(b"a", U8, b"\1"), pair(b"a", U8, b"\2")]), "duplicate-key", AFTER_A + 5 + 8),
    "value type 13": (gguf([pair(b"a", 13, b"")]), "bad-value-type", AFTER_A),
    "array of type 13": (gguf([pair(b"a", ARR, array(13, 0))]), "bad-value-type", AFTER_A + 4),
    "nested array": (gguf([pair(b"a", ARR, array(ARR, 0))]), "bad-value-type", AFTER_A + 4),
    "a key that reads like a message": (
        gguf([pair(b"key 0 is empty", 99, b"")]),
        "bad-value-type",
        KEY + 14,
    ),
    "u32 array of 2^62": (gguf([pair(b"a", ARR, array(U32, 2**62))]), "bad-length", AFTER_A + 8),
    "u8 array one too long": (gguf([pair(b"a", ARR, array(U8, 3, b"xy"))]), "bad-length", AFTER_A + 8),
    "str array whose lengths cannot fit": (gguf([pair(b"a", ARR, array(STR, 2, string(b"")))]), "bad-length", AFTER_A + 8),
    "u8 array above 2^30": (gguf([pair(b"a", ARR, array(U8, 2**30 + 1))]), "bad-length", AFTER_A + 8),
    "empty array, then the end": (gguf([pair(b"a", ARR, array(U8, 0))], n_kv=2), "truncated", AFTER_A + 16),
    "empty str array, then half a length": (gguf([pair(b"a", ARR, array(STR, 0)), b"1234"]), "truncated", AFTER_A + 16),
    "a key that reads like an array's type": (gguf([pair(b"\x09\0\0\0", U64, b"12345678")], n_kv=2), "truncated", KEY + 16),
    "a tensor that reads like an array's head": (
        gguf(n_tensors=1) + string(b"\x09\0\0\0") + u32(1) + b"1234567\0",
        "truncated",
        NAME + 16,
    ),
    "string 2^40": (gguf([pair(b"a", STR, string(b"x", 2**40))]), "bad-length", AFTER_A + 4),
    "u64 cut": (gguf([pair(b"a", U64, b"1234567")]), "truncated", AFTER_A + 4),
    "reads of 4, 4 and 8 bytes that are no array's": (gguf([pair(b"abcd", U64, bytes(8))], n_kv=2), "truncated", KEY + 16),
    "alignment i32": (gguf([pair(b"general.alignment", I32, u32(32))]), "bad-alignment", None),
    "alignment str": (gguf([pair(b"general.alignment", STR, string(b"32"))]), "bad-alignment", None),
    "alignment u32 array": (gguf([pair(b"general.alignment", ARR, array(U32, 1, u32(32)))]), "bad-alignment", None),
    "alignment 0": (gguf([alignment(0)]), "bad-alignment", None),
    "alignment 24": (gguf([alignment(24)]), "bad-alignment", None),
    "name of 64": (gguf([], [tensor(b"n" * 64, TYPE_F32, [1])]), "bad-name", NAME),
    "duplicate name": (gguf([], [tensor(b"t", TYPE_F32, [0])] * 2), "duplicate-tensor", AFTER_T + 4 + 8 + 12 + 8),
    "5 dimensions": (gguf([], [tensor(b"t", TYPE_F32, [1] * 5)]), "bad-dims", AFTER_T),
    "negative dimension": (gguf([], [tensor(b"t", TYPE_F32, [1, -1])]), "bad-dims", AFTER_T + 12),
    "2^64 elements": (gguf([], [tensor(b"t", TYPE_F32, [2**32, 2**32])]), "bad-dims", AFTER_T + 12),
    "type 43": (gguf([], [tensor(b"t", 43, [1])]), "bad-tensor-type", AFTER_T + 12),
    "type -1": (gguf([], [tensor(b"t", 2**32 - 1, [1])]), "bad-tensor-type", AFTER_T + 12),
    "removed type 4": (gguf([], [tensor(b"t", 4, [32])]), "bad-tensor-type", AFTER_T + 12),
    "row of 31": (gguf([], [tensor(b"t", TYPE_Q8_0, [31, 32])]), "bad-block", AFTER_T + 20),
    "2^65 bytes": (gguf([], [tensor(b"t", 28, [2**31, 2**31])]), "bad-size", None),
    "no padding before the data": (gguf([], [tensor(b"t", TYPE_F32, [0])], align=1), "truncated", AFTER_T + 24),
    "first offset 32": (gguf([], [tensor(b"t", TYPE_F32, [1], 32)]), "bad-offset", None),
    "gap": (gguf([], [tensor(b"t", TYPE_F32, [1]), tensor(b"u", TYPE_F32, [1], 64)]), "bad-offset", None),
    "sum of sizes": (
        gguf([], [tensor(f"t{i}".encode(), TYPE_I8, [2**62], i * 2**62) for i in range(4)]),
        "bad-size",
        None,
    ),
}


@pytest.mark.parametrize("name", HEADER)
def test_class_and_place(llama_cpp, ask, name):
    data, reject_class, at = HEADER[name]
    outcome = ask(llama_cpp, "header", data)
    assert isinstance(outcome, Reject), outcome
    assert (outcome.reject_class, outcome.at) == (reject_class, at), outcome


LOAD = {
    "one byte of data missing": (gguf([], [tensor(b"t", TYPE_F32, [8])], bytes(31)), "missing-data"),
    "last padding missing": (gguf([], [tensor(b"t", TYPE_F32, [1])], bytes(4)), "missing-data"),
    "sum of sizes and the context around it": (
        gguf(
            [],
            [
                *(tensor(f"t{i}".encode(), TYPE_I8, [2**62], i * 2**62) for i in range(3)),
                tensor(b"u", TYPE_I8, [2**62 - 32], 3 * 2**62),
            ],
        ),
        "bad-size",
    ),
}


@pytest.mark.parametrize("name", LOAD)
def test_what_only_loading_refuses(llama_cpp, ask, name):
    data, reject_class = LOAD[name]
    assert isinstance(ask(llama_cpp, "header", data), Ok)
    outcome = ask(llama_cpp, "load", data)
    assert isinstance(outcome, Reject), outcome
    assert outcome.reject_class == reject_class, outcome


# A file in pieces: (bytes, what a file that ends within them is, offset within them of the field to blame).
PIECES = (
    (b"GGUF", "truncated", 0), (u32(3), "truncated", 0),
    (struct.pack("<Q", 2), "truncated", 0),
    (struct.pack("<Q", 3), "truncated", 0),
    (struct.pack("<Q", 4), "truncated", 0), (b"strs", "bad-length", -8),
    (u32(ARR), "truncated", 0), (u32(STR), "truncated", 0), (struct.pack("<Q", 2), "truncated", 0),
    (bytes(8), "bad-length", -8),  # until both lengths could be there, the count is what does not fit
    (struct.pack("<Q", 2), "bad-length", -16), (b"xy", "bad-length", -8),
    (struct.pack("<Q", 1), "truncated", 0), (b"n", "bad-length", -8), (u32(U64), "truncated", 0),
    (struct.pack("<Q", 9), "truncated", 0),
    (struct.pack("<Q", 1), "truncated", 0), (b"i", "bad-length", -8),
    (u32(ARR), "truncated", 0), (u32(I32), "truncated", 0), (struct.pack("<Q", 3), "truncated", 0),
    (struct.pack("<3I", 9, 9, 9), "bad-length", -8),
    (struct.pack("<Q", 1), "truncated", 0), (b"t", "bad-length", -8), (u32(2), "truncated", 0),
    (struct.pack("<Q", 32), "truncated", 0), (struct.pack("<Q", 2), "truncated", 0),
    (u32(TYPE_Q8_0), "truncated", 0), (struct.pack("<Q", 0), "truncated", 0),
    (struct.pack("<Q", 6), "truncated", 0), (b"scalar", "bad-length", -8), (u32(0), "truncated", 0),
    (u32(TYPE_F32), "truncated", 0), (struct.pack("<Q", 96), "truncated", 0),
)  # fmt: skip


def prefixes():
    """Every length at which the file ends too early: (length, class, offset to blame)."""
    start = 0
    for content, reject_class, blamed in PIECES:
        for length in range(start, start + len(content)):
            yield length, reject_class, start + blamed
        start += len(content)


def test_each_prefix(llama_cpp, ask):
    whole = b"".join(content for content, _, _ in PIECES)
    for length, reject_class, at in prefixes():
        outcome = ask(llama_cpp, "header", whole[:length])
        assert isinstance(outcome, Reject), (length, outcome)
        assert (outcome.reject_class, outcome.at) == (reject_class, at), (length, outcome)
    assert isinstance(ask(llama_cpp, "header", whole + bytes(-len(whole) % 32)), Ok)


def test_a_type_that_is_not_there_is_not_blamed(llama_cpp, ask):
    """Where the file ends before a tensor's type, the library judges a variable that it has not set."""
    info = tensor(b"t", TYPE_Q4_0, [32])
    outcome = ask(llama_cpp, "header", gguf(n_tensors=1) + info[:-12])
    assert isinstance(outcome, Reject)
    assert (outcome.reject_class, outcome.at) == ("truncated", HEAD + len(info) - 12)


def test_a_message_of_no_rule_is_other():
    assert classify("something new in a later version") == "other"
    assert classify("alignment 24 is not a power of 2, says a later version") == "other"


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("duplicate key 'a' for tensors 0 and 1 ", "duplicate-key"),
        ("duplicate tensor name 't' for tensors 0 and 1", "duplicate-tensor"),
        ("total number of elements in tensor 't' with shape (9223372036854775807, 1, 1, 1) is >= 9223372036854775807", "bad-dims"),
    ],
)
def test_what_ggml_0_20_said(message, name):
    assert classify(message) == name


def test_a_missing_file_is_no_refusal(llama_cpp, tmp_path):
    outcome = llama_cpp.ask(HeaderRequest(seq=0, path=str(tmp_path / "none.gguf"))).outcome
    assert isinstance(outcome, Error)
    assert "none.gguf" in outcome.message
