"""Files written field by field, so that a test knows where each field stands."""

from __future__ import annotations

import struct
from collections.abc import Sequence

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
TYPE_F32, TYPE_Q4_0, TYPE_Q8_0, TYPE_Q8_1, TYPE_I8 = 0, 2, 8, 9, 24

HEAD = 24  # magic, version, two counts


def string(raw: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(raw) if length is None else length) + raw


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def array(items: int, count: int, values: bytes = b"") -> bytes:
    return struct.pack("<IQ", items, count) + values


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def alignment(value: int) -> bytes:
    return pair(b"general.alignment", U32, u32(value))


def tensor(name: bytes, kind: int, dims: Sequence[int], offset: int = 0) -> bytes:
    shape = u32(len(dims)) + b"".join(struct.pack("<Q", n % 2**64) for n in dims)
    return string(name) + shape + struct.pack("<IQ", kind, offset)


def gguf(
    pairs: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    version: int = 3,
    n_kv: int | None = None,
    n_tensors: int | None = None,
    align: int = 32,
) -> bytes:
    """A whole file; the data section starts at the next multiple of ``align`` where there are tensors or data."""
    counts = struct.pack("<QQ", len(tensors) if n_tensors is None else n_tensors, len(pairs) if n_kv is None else n_kv)
    head = b"GGUF" + u32(version) + counts + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % align) + data if tensors or data else head


def big_endian(version: int = 3) -> bytes:
    """A sound big-endian file: one pair and one tensor of two floats."""
    key = struct.pack(">Q", 1) + b"a" + struct.pack(">If", F32, 1.5)
    info = struct.pack(">Q", 1) + b"t" + struct.pack(">IQIQ", 1, 2, TYPE_F32, 0)
    head = b"GGUF" + struct.pack(">IQQ", version, 1, 1) + key + info
    return head + bytes(-len(head) % 32) + struct.pack(">2f", 1, 2)
