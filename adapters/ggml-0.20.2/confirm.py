"""Shows what this ggml makes of files, with ctypes alone: ``PYTHONPATH={build}/site python confirm.py``.

Each file is read in a process of its own, with its data, and the library's last message is printed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path


class Params(ctypes.Structure):
    """``gguf_init_params``."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))


def library() -> ctypes.CDLL:
    """Load the wheel's library without importing its package."""
    spec = importlib.util.find_spec("libggml")
    if spec is None or spec.origin is None:
        raise SystemExit("set PYTHONPATH to the folder `site` of the build")
    return ctypes.CDLL(str(Path(spec.origin).parent / "lib64" / "libggml-base.so"))


def read(path: str) -> None:
    """Read a file as gguf_init_from_file does, with a context that gets the data; print what it says."""
    base = library()
    base.gguf_init_from_file.restype = ctypes.c_void_p
    base.gguf_init_from_file.argtypes = (ctypes.c_char_p, Params)
    context = ctypes.c_void_p()
    found = base.gguf_init_from_file(path.encode(), Params(False, ctypes.addressof(context)))
    print("accepted" if found else "refused", flush=True)  # noqa: T201 - the script's purpose


def file(tensors: list[tuple[bytes, list[int], int]], data: int) -> bytes:
    """Give a file of tensors (name, dims, type) of which each one starts 32 bytes after the other."""
    infos = b""
    for number, (name, dims, kind) in enumerate(tensors):
        infos += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, 32 * number)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0) + infos
    return head + bytes(-len(head) % 32 + data)


FILES = {
    "dims 2^62 x 4 of I8: 2^64 elements, no data": file([(b"t", [1 << 62, 4], 24)], 0),
    "dims 2^16 four times of F32": file([(b"t", [1 << 16] * 4, 0)], 0),
    "2^61 - 1 elements of F64: padding wraps": file([(b"t", [(1 << 61) - 1], 28)], 0),
    "dims 3037000500 twice of I8: more than memory": file([(b"t", [3037000500] * 2, 24)], 0),
    "dims 2^40 of I8 in 96 bytes": file([(b"t", [1 << 40], 24)], 0),
    "dims 1 x 2^62 of I8: no more than 2^62": file([(b"t", [1, 1 << 62], 24)], 0),
    "names `t` and `t`, NUL, `u`": file([(b"t", [4], 0), (b"t\0u", [4], 0)], 64),
}


def main() -> None:
    """Print each file's outcome."""
    path = Path(tempfile.mkdtemp()) / "x.gguf"
    for name, data in FILES.items():
        path.write_bytes(data)
        run = subprocess.run(
            [sys.executable, __file__, str(path)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
        )
        how = run.stdout.strip() or f"dies: {signal.Signals(-run.returncode).name}"
        said = run.stderr.strip().splitlines()
        print(f"{name:46} {how:10} {said[0][:130] if said else ''}")  # noqa: T201 - the script's purpose


if __name__ == "__main__":
    if len(sys.argv) > 1:
        read(sys.argv[1])
    else:
        main()
