"""Shows the surprising results with libgguf alone: ``{build}/venv/bin/python confirm.py``."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libgguf
import numpy as np
from libgguf import libgguf_numpy

INFINITE = """
import libgguf, numpy
row = numpy.ones((1, 256), numpy.float32)
row[0, 0] = numpy.inf
libgguf.quantize_rows(row, libgguf.GGMLQuantizationType["IQ2_XXS"], numpy.ones(256, numpy.float32))
"""
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


def compared(row: Any, kind: str) -> str:
    """Quantize a row by the compiled function and by the numpy port; give how many bytes differ, or what the port raises."""
    number = libgguf.GGMLQuantizationType[kind]
    native = libgguf.quantize_rows(row, number).reshape(-1)
    ported = libgguf_numpy.quantize(row, number).reshape(-1)
    at = np.flatnonzero(native != ported)
    first = f", first byte {at[0]}: {native[at[0]]:#04x} compiled, {ported[at[0]]:#04x} numpy" if at.size else ""
    return f"{at.size} of {native.size} bytes differ{first}"


def alone(code: str) -> str:
    """Run code in a process of its own; give how that ended, and its last words."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    how = f"dies: {signal.Signals(-run.returncode).name}" if run.returncode < 0 else f"exit {run.returncode}"
    return f"{how}: {run.stderr.strip()[-100:]!r}"


def blocks() -> None:
    """Show where the compiled quantizers and their numpy port differ from each other."""
    gauss = np.random.default_rng(1).standard_normal((64, 4096)).astype(np.float32)
    counted = np.arange(256, dtype=np.float32).reshape(1, 256)
    holed = counted.copy()
    holed[0, 3] = np.nan
    tell("IQ4_NL, 8,192 random blocks", lambda: compared(gauss, "IQ4_NL"))
    tell("IQ4_NL, 1e-9 times 0 to 255", lambda: compared(counted * np.float32(1e-9), "IQ4_NL"))
    tell("Q4_0, zeros below 0", lambda: compared(np.full((1, 32), -0.0, np.float32), "Q4_0"))
    tell("Q2_K, 1e-40 times -128 to 127", lambda: compared((counted - 128) * np.float32(1e-40), "Q2_K"))
    for kind in ("Q8_0", "Q3_K", "Q6_K", "MXFP4", "NVFP4"):
        tell(f"{kind}, 0 to 255 and a NaN", lambda name=kind: compared(holed, name))


if __name__ == "__main__":
    np.seterr(all="ignore")
    files()
    blocks()
    tell("IQ2_XXS compiled, an infinity and ones", lambda: alone(INFINITE))
