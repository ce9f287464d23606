"""Shows what this ggml answers otherwise than 0.20.2, and what it dies of, with ctypes alone.

``PYTHONPATH={build}/site python confirm.py``

With the path of another ggml library as argument, it shows the same of that one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

I8, IQ2_XXS, IQ1_M = 24, 16, 29
BLOCK_BYTES = 256  # more than a block of either type


class Params(ctypes.Structure):
    """``gguf_init_params``."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))


def library() -> str:
    """Give the library's path: that of the argument, or that of the wheel's module, which is not imported."""
    if len(sys.argv) > 1:
        return sys.argv[1]
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or spec.origin is None:
        raise SystemExit("set PYTHONPATH to the folder `site` of the build")
    return str(Path(spec.origin).parent / "xllamacpp.abi3.so")


def quantized(base: ctypes.CDLL, kind: int, row: list[float]) -> bytes:
    """Quantize a row of 256 with importances of 1."""
    base.ggml_quantize_chunk.argtypes = (ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p)
    base.ggml_quantize_init(kind)
    floats, ones, out = (ctypes.c_float * 256)(*row), (ctypes.c_float * 256)(*[1] * 256), ctypes.create_string_buffer(BLOCK_BYTES)
    base.ggml_quantize_chunk(kind, floats, out, 0, 1, 256, ones)
    return out.raw


def read(base: ctypes.CDLL, after_version: bytes, *, data: bool) -> None:
    """Read a file, with its data or without; the library says why it refuses."""
    path = Path(tempfile.mkdtemp()) / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 3) + after_version)
    context = ctypes.c_void_p()
    base.gguf_init_from_file.argtypes = (ctypes.c_char_p, Params)
    base.gguf_init_from_file(str(path).encode(), Params(not data, ctypes.addressof(context) if data else None))


def load_tebibyte(base: ctypes.CDLL) -> None:
    """Load a file of 96 bytes whose one tensor claims 2^40."""
    info = struct.pack("<QQQ", 1, 0, 1) + b"t" + struct.pack("<IQIQ", 1, 1 << 40, I8, 0)
    read(base, info + bytes(88 - len(info)), data=True)


def quantize_infinity(base: ctypes.CDLL) -> None:
    """Quantize a row that holds an infinity."""
    quantized(base, IQ2_XXS, [math.inf] + [1.0] * 255)


def write_alignment_24(base: ctypes.CDLL) -> None:
    """Set an alignment that is no power of two."""
    base.gguf_init_empty.restype = ctypes.c_void_p
    base.gguf_set_val_u32.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32)
    base.gguf_set_val_u32(base.gguf_init_empty(), b"general.alignment", 24)


ACTS = {act.__name__: act for act in (load_tebibyte, quantize_infinity, write_alignment_24)}


def outcome(path: str, act: str) -> str:
    """Do one thing in a process of its own; give how that ended, and the library's first words."""
    run = subprocess.run(
        [sys.executable, __file__, path, act],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},
    )
    how = f"dies: {signal.Signals(-run.returncode).name}" if run.returncode < 0 else f"exit {run.returncode}"
    return f"{how}  {(run.stderr.strip().splitlines() or [''])[-1].rpartition('/')[2][:110]}"


def main() -> None:
    """Print the version, a block of IQ1_M, the first message on too many pairs, and three deaths."""
    path = library()
    base = ctypes.CDLL(path)
    base.ggml_version.restype = ctypes.c_char_p
    read(base, struct.pack("<QQ", 0, 209622091746699451), data=False)
    block = quantized(base, IQ1_M, [1.0, -1.0] * 16 + [0.0] * 224)
    parts = f"qs {block[:32].hex()}\n  qh {block[32:48].hex()}\n  scales {block[48:56].hex()}"
    print(f"ggml {base.ggml_version().decode()}: IQ1_M of 1 and -1 in turns 16 times, then zeros:\n  {parts}")  # noqa: T201 - its purpose
    for act in ACTS:
        print(f"{act:20} {outcome(path, act)}")  # noqa: T201 - its purpose


if __name__ == "__main__":
    if len(sys.argv) > 2:
        ACTS[sys.argv[2]](ctypes.CDLL(sys.argv[1]))
    else:
        main()
