"""Files that break one rule of the C reader each, with the fault that must be told, and files that it reads.

Offsets are counted by hand. The header's fixed part has 24 bytes. With one pair whose key is ``a``: key length at 24, key at 32,
type at 33, value at 37. With no pair and one tensor ``t`` of one dimension: name length at 24, name at 32, n_dims at 33,
dims[0] at 37, type at 45, offset at 49, end at 57.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from impl_build import (
    ARR,
    BOOL,
    F32,
    F64,
    I8,
    I32,
    STR,
    U8,
    U16,
    U32,
    U64,
    alignment,
    array,
    gguf,
    pair,
    sound_file,
    string,
    tensor,
    u32,
)

MAX_TENSORS = 53624256028225440
MAX_PAIRS = 209622091746699450


class Broken(NamedTuple):
    """``fault`` is reject class, field and offset; ``shows`` is a part of the message."""

    name: str
    data: bytes
    fault: str
    shows: str


def _pair_cut(data: bytes) -> bytes:
    """A header that promises one pair, then ``data``."""
    return gguf(n_kv=1) + data


def _tensor_cut(data: bytes) -> bytes:
    return gguf(n_tensors=1) + data


A = string(b"a")
T = string(b"t")
HEAD = [
    Broken("empty file", b"", "truncated magic @0", "ends 0 bytes on"),
    Broken("magic cut", b"GGU", "truncated magic @0", "takes 4 bytes"),
    Broken("magic wrong", b"GGUf" + bytes(20), "bad-magic magic @0", "'GGUf'"),
    Broken("magic of another machine", b"FUGG" + bytes(20), "bad-magic magic @0", "'FUGG'"),
    Broken("version cut", b"GGUF\x03\x00\x00", "truncated version @4", "ends 3 bytes on"),
    Broken("version 0", gguf(version=0), "bad-version version @4", "version 0"),
    Broken("version 1", gguf(version=1), "bad-version version @4", "version 1"),
    Broken("version 4", gguf(version=4), "bad-version version @4", "version 4"),
    Broken("version swapped", gguf(version=0x03000000), "byte-order version @4", "0x03000000"),
    Broken("version 65536", gguf(version=65536), "byte-order version @4", "65536"),
    Broken("tensor count cut", gguf()[:15], "truncated n_tensors @8", "ends 7 bytes on"),
    Broken("tensor count negative", gguf(n_tensors=-1), "bad-count n_tensors @8", "18446744073709551615"),
    Broken("tensor count too large", gguf(n_tensors=MAX_TENSORS + 1), "bad-count n_tensors @8", str(MAX_TENSORS + 1)),
    Broken("pair count cut", gguf()[:23], "truncated n_kv @16", "ends 7 bytes on"),
    Broken("pair count negative", gguf(n_kv=-(2**63)), "bad-count n_kv @16", str(2**63)),
    Broken("pair count too large", gguf(n_kv=MAX_PAIRS + 1), "bad-count n_kv @16", str(MAX_PAIRS + 1)),
    Broken(
        "largest counts, nothing there", gguf(n_tensors=MAX_TENSORS, n_kv=MAX_PAIRS), "truncated kv[0].key.length @24", "ends 0"
    ),
]
PAIRS = [
    Broken("key length cut", _pair_cut(b"\x01\0\0\0\0\0\0"), "truncated kv[0].key.length @24", "ends 7"),
    Broken("key longer than the file", _pair_cut(string(b"a", 2)), "bad-length kv[0].key.length @24", "length 2, but only 1"),
    Broken("key of 2^40", _pair_cut(string(b"a" * 32, 2**40)), "bad-length kv[0].key.length @24", str(2**40)),
    Broken("key of 2^63+5", _pair_cut(string(b"a", 2**63 + 5)), "bad-length kv[0].key.length @24", str(2**63 + 5)),
    Broken("key empty", gguf([pair(b"", U8, b"\0")]), "bad-key kv[0].key @32", "empty"),
    Broken("key twice", gguf([pair(b"a", U8, b"\0"), pair(b"a", U8, b"\1")]), "duplicate-key kv[1].key @46", "'a'"),
    Broken("value type cut", _pair_cut(A + b"\0\0\0"), "truncated kv[0].type @33", "ends 3"),
    Broken("value type 13", gguf([pair(b"a", 13, bytes(8))]), "bad-value-type kv[0].type @33", "type 13"),
    Broken("value type -1", gguf([pair(b"a", -1, bytes(8))]), "bad-value-type kv[0].type @33", "type -1"),
    Broken("value missing", gguf([pair(b"a", U8, b"")]), "truncated kv[0].value @37", "ends 0"),
    Broken("value cut", gguf([pair(b"a", F64, bytes(7))]), "truncated kv[0].value @37", "takes 8 bytes"),
    Broken("text length cut", gguf([pair(b"a", STR, bytes(7))]), "truncated kv[0].value.length @37", "ends 7"),
    Broken("text too long", gguf([pair(b"a", STR, string(b"x", 2))]), "bad-length kv[0].value.length @37", "length 2"),
    Broken("element type cut", gguf([pair(b"a", ARR, b"\0\0\0")]), "truncated kv[0].value.items @37", "ends 3"),
    Broken("array length cut", gguf([pair(b"a", ARR, u32(99) + bytes(7))]), "truncated kv[0].value.length @41", "ends 7"),
    Broken("element type 13", gguf([pair(b"a", ARR, array(13, 0, b""))]), "bad-value-type kv[0].value.items @37", "type 13"),
    Broken(
        "arrays in arrays", gguf([pair(b"a", ARR, array(ARR, 1, array(U8, 0, b"")))]), "bad-value-type kv[0].value.items @37", "9"
    ),
    Broken("no arrays in arrays", gguf([pair(b"a", ARR, array(ARR, 0, b""))]), "bad-value-type kv[0].value.items @37", "9"),
    Broken(
        "array over 2^30", gguf([pair(b"a", ARR, array(U8, 2**30 + 1, b""))]), "bad-length kv[0].value.length @41", str(2**30 + 1)
    ),
    Broken("array of 2^61", gguf([pair(b"a", ARR, array(U64, 2**61, b""))]), "bad-length kv[0].value.length @41", str(2**61)),
    Broken(
        "array longer than the file", gguf([pair(b"a", ARR, array(U16, 2, b"abc"))]), "bad-length kv[0].value.length @41", "only 3"
    ),
    Broken("texts longer than the file", gguf([pair(b"a", ARR, array(STR, 2, A))]), "bad-length kv[0].value.length @41", "only 9"),
    Broken(
        "length of the second text cut",
        gguf([pair(b"a", ARR, array(STR, 2, string(b"12345678") + bytes(7)))]),
        "truncated kv[0].value[1].length @65",
        "ends 7",
    ),
    Broken(
        "last text too long",
        gguf([pair(b"a", ARR, array(STR, 3, A + A + string(b"bcd", 4)))]),
        "bad-length kv[0].value[2].length @67",
        "length 4",
    ),
    Broken(
        "first of many texts too long",
        gguf([pair(b"a", ARR, array(STR, 3, string(b"", 17) + A + b"1234567"))]),
        "bad-length kv[0].value[0].length @49",
        "17",
    ),
    Broken(
        "second text over 2^30",
        gguf([pair(b"a", ARR, array(STR, 2, A + string(b"", 2**30 + 1)))]),
        "bad-length kv[0].value[1].length @58",
        str(2**30 + 1),
    ),
]
ALIGN = [
    Broken(f"alignment as {name}", gguf([pair(b"general.alignment", kind, payload)]), "bad-alignment kv[0].type @49", shows)
    for name, kind, payload, shows in [
        ("i32", I32, u32(32), "type i32"),
        ("u64", U64, struct.pack("<Q", 32), "type u64"),
        ("text", STR, string(b"32"), "type str"),
        ("array", ARR, array(U32, 1, u32(32)), "type array"),
    ]
] + [
    Broken(f"alignment {value}", gguf([alignment(value)]), "bad-alignment kv[0].value @53", f" {value},")
    for value in (0, 3, 24, 48, 2**32 - 1)
]
ALIGN += [
    Broken(
        "alignment behind a NUL",
        gguf([pair(b"general.alignment\0x", U32, u32(24))]),
        "bad-alignment kv[0].value @55",
        " 24,",
    ),
    Broken(
        "a later pair is cut before the alignment is looked at",
        gguf([alignment(0), pair(b"a", U8, b"")]),
        "truncated kv[1].value @70",
        "ends 0",
    ),
]
TENSORS = [
    Broken("name length cut", _tensor_cut(bytes(7)), "truncated tensors[0].name.length @24", "ends 7"),
    Broken("name longer than the file", _tensor_cut(string(b"t", 2)), "bad-length tensors[0].name.length @24", "length 2"),
    Broken("name of 64 bytes", gguf((), [tensor(b"n" * 64, [1])]), "bad-name tensors[0].name @32", "64 bytes"),
    Broken("name twice", gguf((), [tensor(b"t", [0]), tensor(b"t", [0])]), "duplicate-tensor tensors[1].name @65", "'t'"),
    Broken("n_dims cut", _tensor_cut(T + b"\1\0\0"), "truncated tensors[0].n_dims @33", "ends 3"),
    Broken("5 dimensions", gguf((), [tensor(b"t", [1] * 5)]), "bad-dims tensors[0].n_dims @33", "5 dim"),
    Broken("2^32-1 dimensions", _tensor_cut(T + u32(2**32 - 1)), "bad-dims tensors[0].n_dims @33", "4294967295"),
    Broken("dimension cut", _tensor_cut(T + u32(2) + bytes(15)), "truncated tensors[0].dims[1] @45", "ends 7"),
    Broken("dimension negative", gguf((), [tensor(b"t", [4, -1])]), "bad-dims tensors[0].dims[1] @45", "or -1 as"),
    Broken("negative before cut", _tensor_cut(T + u32(2) + b"\xff" * 8), "bad-dims tensors[0].dims[0] @37", "18446744073709551615"),
    Broken(
        "2^64 elements", gguf((), [tensor(b"t", [2**32, 2**32])]), "bad-dims tensors[0].dims[1] @45", "[4294967296, 4294967296]"
    ),
    Broken("2^16 to the 4th", gguf((), [tensor(b"t", [2**16] * 4)]), "bad-dims tensors[0].dims[3] @61", "65536"),
    Broken("2^64 elements in three", gguf((), [tensor(b"t", [2**31, 2**31, 4])]), "bad-dims tensors[0].dims[2] @53", "4"),
    Broken("elements pass before the 0", gguf((), [tensor(b"t", [2**62, 4, 0])]), "bad-dims tensors[0].dims[1] @45", "0]"),
    Broken("2^63 elements of I8", gguf((), [tensor(b"t", [2**62, 2], 24)]), "bad-dims tensors[0].dims[1] @45", str(2**62)),
    Broken("type cut", _tensor_cut(T + u32(0) + bytes(3)), "truncated tensors[0].type @37", "ends 3"),
    Broken("type 43", gguf((), [tensor(b"t", [1], 43)]), "bad-tensor-type tensors[0].type @45", "type 43"),
    Broken("type -1", gguf((), [tensor(b"t", [1], -1)]), "bad-tensor-type tensors[0].type @45", "type -1"),
    *(
        Broken(
            f"type {kind} is removed", gguf((), [tensor(b"t", [32], kind)]), "bad-tensor-type tensors[0].type @45", f"type {kind} "
        )
        for kind in (4, 5, 31, 32, 33, 36, 37, 38)
    ),
    Broken("half a block", gguf((), [tensor(b"t", [128, 2], 12)]), "bad-block tensors[0].dims[0] @37", "128 elements"),
    Broken("no dimension, block type", gguf((), [tensor(b"t", [], 8)]), "bad-block tensors[0].n_dims @33", "1 elements"),
    Broken("2^65 bytes", gguf((), [tensor(b"t", [2**31, 2**31], 28)]), "bad-size tensors[0].type @53", "2147483648"),
    Broken("offset cut", _tensor_cut(T + u32(0) + u32(0) + bytes(7)), "truncated tensors[0].offset @41", "ends 7"),
    Broken("ends before the data starts", gguf((), [tensor(b"t", [0])]), "truncated data @64", "start at 64"),
    Broken("one byte before the data", gguf((), [tensor(b"t", [0])], data=b"")[:-1], "truncated data @64", "ends at 63"),
    Broken(
        "first offset 32", gguf((), [tensor(b"t", [1], 0, 32)], data=bytes(64)), "bad-offset tensors[0].offset @49", "offset 32"
    ),
    Broken("offset 1", gguf((), [tensor(b"t", [1], 0, 1)], data=bytes(64)), "bad-offset tensors[0].offset @49", "offset 1 "),
    Broken(
        "offset wraps",
        gguf((), [tensor(b"t", [1], 0, 2**64 - 32)], data=bytes(64)),
        "bad-offset tensors[0].offset @49",
        str(2**64 - 32),
    ),
    *(
        Broken(
            f"second offset {offset}",
            gguf((), [tensor(b"t", [9]), tensor(b"u", [1], 0, offset)], data=bytes(256)),
            "bad-offset tensors[1].offset @82",
            "expects 64",
        )
        for offset in (0, 32, 36, 96)
    ),
    Broken("padding wraps", gguf((), [tensor(b"t", [2**63 - 1], 1)], data=b""), "bad-size tensors[0].type @45", str(2**64 - 2)),
    Broken(
        "sum wraps",
        gguf((), [tensor(b"t", [2**63 - 1], 24), tensor(b"u", [2**63 - 1], 24, 2**63)], data=b""),
        "bad-size tensors[1].type @78",
        str(2**63 - 1),
    ),
]
NOT_AS_C = [
    Broken(
        "Q4_0 row whose bytes wrap in ggml_nbytes",
        gguf((), [tensor(b"t", [1024819115206086208], 2)], data=bytes(32)),
        "bad-size tensors[0].type @45",
        "1024819115206086208",
    ),
]
BROKEN = [*HEAD, *PAIRS, *ALIGN, *TENSORS, *NOT_AS_C]
FULL = [
    Broken("no data", gguf((), [tensor(b"t", [9])], data=b""), "missing-data data @64", "take 64 bytes"),
    Broken("last padding short by one", gguf((), [tensor(b"t", [9])], data=bytes(63)), "missing-data data @64", "63 bytes on"),
    Broken("a terabyte claimed", gguf((), [tensor(b"t", [2**40], 24)], data=bytes(64)), "missing-data data @64", str(2**40)),
    Broken("elements: 2^63-1", gguf((), [tensor(b"t", [1, 2**63 - 1], 24)], data=bytes(64)), "missing-data data @96", str(2**63)),
    Broken(
        "strides wrap behind the 0", gguf((), [tensor(b"t", [2**62, 0, 4])], data=b""), "bad-dims tensors[0].dims[2] @53", "0, 4]"
    ),
    Broken(
        "context size wraps",
        gguf((), [tensor(b"t", [2**63 - 1], 24), tensor(b"u", [2**63 - 64], 24, 2**63)], data=b""),
        "bad-size data @96",
        str(2**64 - 64),
    ),
]

ACCEPTED = {
    "nothing in it": gguf(),
    "version 2": gguf(version=2),
    "alignment 1": gguf([alignment(1)], [tensor(b"t", [1])], data=bytes(4), align=1),
    "alignment 4": gguf([alignment(4)], [tensor(b"t", [1])], data=bytes(4), align=4),
    "alignment 2^31, no tensors": gguf([alignment(2**31)]),
    "alignment behind a NUL": gguf([pair(b"general.alignment\0x", U32, u32(64))], [tensor(b"t", [1])], data=bytes(64), align=64),
    "two alignments, the first counts": gguf(
        [alignment(64), pair(b"general.alignment\0", U32, u32(3))], [tensor(b"t", [1])], data=bytes(64), align=64
    ),
    "key with a NUL beside the key without": gguf([pair(b"a", U8, b"\0"), pair(b"a\0", U8, b"\0")]),
    "key of 70000 bytes": gguf([pair(b"k" * 70000, U8, b"\0")]),
    "key that is not text": gguf([pair(b"\xff\xfe", BOOL, b"\2")]),
    "empty arrays": gguf([pair(b"a", ARR, array(U32, 0, b"")), pair(b"b", ARR, array(STR, 0, b""))]),
    "array that ends the file": gguf([pair(b"a", ARR, array(I8, 3, b"abc"))]),
    "text that ends the file": gguf([pair(b"a", ARR, array(STR, 2, string(b"") + string(b"end")))]),
    "NaN": gguf([pair(b"a", F32, u32(0xFF800001))]),
    "no dimensions": gguf((), [tensor(b"t", [])], data=bytes(32)),
    "dimension 0": gguf((), [tensor(b"t", [4, 0])], data=b""),
    "dimension 0, block type": gguf((), [tensor(b"t", [0], 12)], data=b""),
    "dimension 0 before others": gguf((), [tensor(b"t", [0, 2**40, 2**40])], data=b""),
    "dimension 0 behind a row whose bytes wrap": gguf((), [tensor(b"t", [1024819115206086208, 0], 2)], data=b""),
    "trailing ones": gguf((), [tensor(b"t", [4, 1, 1])], data=bytes(32)),
    "name of 63 bytes": gguf((), [tensor(b"n" * 63, [1])], data=bytes(32)),
    "empty name": gguf((), [tensor(b"", [1])], data=bytes(32)),
    "names that differ behind a NUL": gguf((), [tensor(b"t", [8]), tensor(b"t\0a", [8], 0, 32)], data=bytes(64)),
    "trailing bytes": gguf((), [tensor(b"t", [1])], data=bytes(1000)),
    "zero size and then another": gguf((), [tensor(b"t", [0]), tensor(b"u", [1])], data=bytes(32)),
    "all value types": sound_file(),
}
