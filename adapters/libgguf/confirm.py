"""Shows the surprising results with libgguf alone: ``{build}/venv/bin/python confirm.py``."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libgguf
import numpy as np
from libgguf import libgguf_numpy

FOLDER = Path(tempfile.mkdtemp())


def text(raw: bytes) -> bytes:
    """Give a string as a file holds it."""
    return struct.pack("<Q", len(raw)) + raw


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    """Give a pair."""
    return text(key) + struct.pack("<I", kind) + value


def info(name: bytes, dims: list[int], kind: int, offset: int) -> bytes:
    """Give an entry of the directory."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def file(pairs: list[bytes] | None = None, infos: list[bytes] | None = None, data: int = 0) -> Path:
    """Write a file whose data section starts at a multiple of 32 and holds ``data`` zeros."""
    counts = struct.pack("<IQQ", 3, len(infos or []), len(pairs or []))
    head = b"GGUF" + counts + b"".join((pairs or []) + (infos or []))
    path = FOLDER / "x.gguf"
    path.write_bytes(head + bytes(-len(head) % 32 + data))
    return path


def tell(what: str, call: Callable[[], Any]) -> None:
    """Print what a call gives or raises."""
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - whatever comes is what is shown
        found = f"{type(error).__name__}: {str(error)[:100]}"
    print(f"{what:66} {found}")  # noqa: T201 - the script's purpose


def validated(path: Path) -> str:
    """Give the validator's word."""
    result = libgguf.validate_gguf(path)
    return f"ok={result.ok} {[issue.code for issue in result.issues if 'metadata_missing' not in issue.code]}"


def files() -> None:
    """Show what the reader and the validator make of broken files."""
    alignment = b"general.alignment"
    tell("key that is no UTF-8, validate_gguf", lambda: validated(file([pair(b"\xff", 0, b"\0")])))
    tell("string of 2^63 bytes, validate_gguf", lambda: validated(file([pair(b"a", 8, struct.pack("<Q", 2**63))])))
    tell("string of 2^40 bytes, validate_gguf", lambda: validated(file([pair(b"a", 8, struct.pack("<Q", 2**40))])))
    tell("empty array of type 13, validate_gguf", lambda: validated(file([pair(b"a", 9, struct.pack("<IQ", 13, 0))])))
    tell("alignment 24", lambda: libgguf.inspect_gguf(file([pair(alignment, 4, struct.pack("<I", 24))])).alignment)
    tell("alignment 64 as u64", lambda: libgguf.inspect_gguf(file([pair(alignment, 10, struct.pack("<Q", 64))])).alignment)
    tell("alignment 64 as i32", lambda: libgguf.inspect_gguf(file([pair(alignment, 5, struct.pack("<i", 64))])).alignment)
    tell("tensor of type 43", lambda: validated(file(infos=[info(b"t", [32], 43, 0)])))
    tell("row of 33 elements of Q8_0", lambda: validated(file(infos=[info(b"t", [33], 8, 0)], data=96)))
    tell("second tensor behind a gap", lambda: validated(file(infos=[info(b"t", [1], 0, 0), info(b"u", [1], 0, 64)], data=96)))
    tell("dims 2^62 x 4, inspect_gguf", lambda: libgguf.inspect_gguf(file(infos=[info(b"t", [2**62, 4], 0, 0)])).tensors[0].nbytes)


def blocks() -> None:
    """Show where the quantizers and their numpy port differ from each other."""
    kinds = libgguf.GGMLQuantizationType
    tiny = np.full((1, 256), 1e-40, np.float32)
    infinite = np.zeros((1, 32), np.float32)
    infinite[0, 3] = np.inf
    holed = np.ones((1, 32), np.float32)
    holed[0, 3] = np.nan
    huge = np.linspace(-1e8, 1e8, 32, dtype=np.float32).reshape(1, 32)
    rows = {"tiny": (tiny, "Q2_K"), "inf": (infinite, "Q8_0"), "huge": (huge, "Q4_0"), "NaN": (holed, "MXFP4")}
    for name, (row, kind) in rows.items():
        tell(f"{name} as {kind}, compiled", lambda r=row, k=kind: libgguf.quantize_rows(r, kinds[k]).tobytes()[:12].hex())
        tell(f"{name} as {kind}, numpy", lambda r=row, k=kind: libgguf_numpy.quantize(r, kinds[k]).tobytes()[:12].hex())


if __name__ == "__main__":
    files()
    blocks()
