"""Builds small GGUF files by hand, sound and broken ones. Knows nothing of the package under test."""

from __future__ import annotations

import struct
from collections.abc import Sequence

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)


def string(raw: bytes, length: int | None = None) -> bytes:
    """A string; ``length`` lies about its length."""
    return struct.pack("<Q", len(raw) if length is None else length) + raw


def pair(key: bytes, kind: int, payload: bytes) -> bytes:
    return string(key) + struct.pack("<i", kind) + payload


def array(items: int, count: int, payload: bytes) -> bytes:
    return struct.pack("<iQ", items, count) + payload


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def alignment(value: int) -> bytes:
    return pair(b"general.alignment", U32, u32(value))


def tensor(name: bytes, dims: Sequence[int], kind: int = 0, offset: int = 0, n_dims: int | None = None) -> bytes:
    """A directory entry; dimensions fastest first, negative ones or up to 2^64-1."""
    head = string(name) + u32(len(dims) if n_dims is None else n_dims)
    return head + b"".join(struct.pack("<Q", dim % 2**64) for dim in dims) + struct.pack("<iQ", kind, offset)


def gguf(
    pairs: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    *,
    data: bytes | None = None,
    align: int = 32,
    version: int = 3,
    n_kv: int | None = None,
    n_tensors: int | None = None,
) -> bytes:
    """A file; with ``data`` the header is padded to ``align`` first. Counts may lie."""
    counts = [len(tensors) if n_tensors is None else n_tensors, len(pairs) if n_kv is None else n_kv]
    head = b"GGUF" + u32(version) + b"".join(struct.pack("<Q", count % 2**64) for count in counts)
    head += b"".join(pairs) + b"".join(tensors)
    return head if data is None else head + bytes(-len(head) % align) + data


def every_value_type() -> list[bytes]:
    """One pair of each value type, in the order of their numbers, then arrays."""
    codes = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", U64: "Q", I64: "q", F64: "d"}
    values = {
        U8: 255,
        I8: -128,
        U16: 65535,
        I16: -32768,
        U32: 2**32 - 1,
        I32: -(2**31),
        F32: 1.5,
        U64: 2**64 - 1,
        I64: -(2**63),
        F64: -0.0,
    }
    pairs = [pair(f"k{kind}".encode(), kind, struct.pack(f"<{codes[kind]}", values[kind])) for kind in codes]
    pairs.append(pair(b"bool", BOOL, b"\x02"))
    pairs.append(pair(b"text", STR, string("größe".encode())))
    pairs.append(pair(b"raw", STR, string(b"\xff\x00a")))
    pairs.append(pair(b"words", ARR, array(STR, 3, string(b"one") + string(b"") + string(b"\xfe"))))
    pairs.append(pair(b"numbers", ARR, array(I16, 3, struct.pack("<3h", 1, -2, 3))))
    pairs.append(pair(b"floats", ARR, array(F32, 2, u32(0x7FC00001) + u32(0x80000000))))
    pairs.append(pair(b"flags", ARR, array(BOOL, 3, b"\x00\x01\x80")))
    pairs.append(pair(b"none", ARR, array(F64, 0, b"")))
    return pairs


def sound_file() -> bytes:
    """A file with every value type and three tensors, all data present: F32 of ne (5, 2), Q8_0 of ne (32,), I8 of ne (3,)."""
    tensors = [tensor(b"a", [5, 2], 0, 0), tensor(b"b.weight", [32], 8, 64), tensor(b"c", [3], 24, 128)]
    return gguf(
        every_value_type(),
        tensors,
        data=struct.pack("<10f", *range(10)) + bytes(24) + bytes(range(34)) + bytes(30) + b"xyz" + bytes(29),
    )
