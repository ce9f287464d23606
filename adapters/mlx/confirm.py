"""Shows the surprising results with mlx alone: ``{build}/venv/bin/python confirm.py``; each file in a process of its own."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

LOAD = """
import sys, mlx.core as mx
arrays, metadata = mx.load(sys.argv[1], format="gguf", return_metadata=True)
shown = {key: value if isinstance(value, (str, list)) else (value.tolist(), str(value.dtype)) for key, value in metadata.items()}
print({name: (array.shape, str(array.dtype)) for name, array in arrays.items()}, shown)
"""


def text(raw: bytes) -> bytes:
    """Give a string as a file holds it."""
    return struct.pack("<Q", len(raw)) + raw


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    """Give a pair."""
    return text(key) + struct.pack("<I", kind) + value


def info(name: bytes, dims: list[int], kind: int, offset: int = 0) -> bytes:
    """Give an entry of the directory."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def file(pairs: list[bytes], infos: list[bytes], data: int = 0, version: int = 3, counts: tuple[int, int] | None = None) -> bytes:
    """Give a file whose data section starts at a multiple of 32 and holds ``data`` zeros."""
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(infos), len(pairs)))) + b"".join(pairs + infos)
    return head + bytes(-len(head) % 32 + data)


ALIGNMENT = b"general.alignment"
FILES = {
    "alignment 0, a tensor": file([pair(ALIGNMENT, 4, bytes(4))], [info(b"t", [8], 0)], 32),
    "alignment 24": file([pair(ALIGNMENT, 4, struct.pack("<I", 24))], []),
    "tensor of the removed type Q4_2": file([], [info(b"t", [32], 4)], 64),
    "f64 of 0.1": file([pair(b"a", 12, struct.pack("<d", 0.1))], []),
    "f64 of 0.1, then a u8": file([pair(b"a", 12, struct.pack("<d", 0.1)), pair(b"b", 0, b"\1")], []),
    "array of one f64, alone": file([pair(b"a", 9, struct.pack("<IQd", 12, 1, 0.1))], []),
    "array of one f64, then a pair": file([pair(b"a", 9, struct.pack("<IQd", 12, 1, 0.1)), pair(b"b", 0, b"\1")], []),
    "array of one f64, then a tensor": file([pair(b"a", 9, struct.pack("<IQd", 12, 1, 0.1))], [info(b"t", [8], 0)], 32),
    "MXFP4, then F32: both tensors are gone": file([], [info(b"m", [32], 39), info(b"f", [8], 0, 32)], 64),
    "F32, then type 43": file([], [info(b"f", [8], 0), info(b"u", [32], 43, 32)], 64),
    "2^40 tensors, none there": file([], [], counts=(1 << 40, 0)),
    "key of 2^32 bytes in a file of 64": file([struct.pack("<Q", 1 << 32)], [], 32),
    "nine dimensions": file([], [info(b"t", [1] * 9, 0)], 32),
    "version 0": file([pair(b"a", 0, b"\1")], [], version=0),
    "version 3 byte-swapped": file([], [], version=3 << 24),
    "F32, then Q8_0 of the same name": file([], [info(b"t", [32], 0), info(b"t", [32], 8, 128)], 192),
    "a key twice": file([pair(b"a", 0, b"\1"), pair(b"a", 0, b"\2")], []),
    "string that is no UTF-8": file([pair(b"a", 8, text(b"\xff"))], []),
    "Q8_1, 36 bytes and no more": file([], [info(b"t", [32], 9)], 36),
    "IQ1_S, 50 bytes and no more": file([], [info(b"t", [256], 19)], 50),
    "Q3_K": file([], [info(b"t", [256], 11)], 128),
}


def outcome(path: Path) -> str:
    """Load a file elsewhere; give what was printed, the signal, or the exception."""
    run = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=False)
    if run.returncode < 0:
        return f"dies: {signal.Signals(-run.returncode).name} {run.stderr.strip()[-90:]}"
    return (run.stdout if run.returncode == 0 else run.stderr).strip().splitlines()[-1][:150]


def main() -> None:
    """Print each file's outcome."""
    path = Path(tempfile.mkdtemp()) / "x.gguf"
    for name, data in FILES.items():
        path.write_bytes(data)
        print(f"{name:40} {len(data):5} bytes  {outcome(path)}")  # noqa: T201 - the script's purpose


if __name__ == "__main__":
    main()
