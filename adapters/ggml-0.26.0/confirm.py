"""Shows what this ggml answers otherwise than 0.20.2, with ctypes alone: ``PYTHONPATH={build}/site python confirm.py``.

With the path of another ggml library as argument, it shows the same of that one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import struct
import sys
import tempfile
from pathlib import Path

IQ1_M, BLOCK_BYTES = 29, 56


class Params(ctypes.Structure):
    """``gguf_init_params``."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))


def library() -> ctypes.CDLL:
    """Load the wheel's module as a library, without importing it."""
    if len(sys.argv) > 1:
        return ctypes.CDLL(sys.argv[1])
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or spec.origin is None:
        raise SystemExit("set PYTHONPATH to the folder `site` of the build")
    return ctypes.CDLL(str(Path(spec.origin).parent / "xllamacpp.abi3.so"))


def iq1_m(base: ctypes.CDLL, row: list[float]) -> bytes:
    """Quantize a row of 256 with importances of 1."""
    base.ggml_quantize_chunk.argtypes = (ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p)
    base.ggml_quantize_init(IQ1_M)
    floats, ones, out = (ctypes.c_float * 256)(*row), (ctypes.c_float * 256)(*[1] * 256), ctypes.create_string_buffer(BLOCK_BYTES)
    base.ggml_quantize_chunk(IQ1_M, floats, out, 0, 1, 256, ones)
    return out.raw


def pairs(base: ctypes.CDLL, count: int) -> None:
    """Read a file that claims ``count`` pairs and holds none; the library says why it refuses."""
    path = Path(tempfile.mkdtemp()) / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, count))
    base.gguf_init_from_file.argtypes = (ctypes.c_char_p, Params)
    base.gguf_init_from_file(str(path).encode(), Params(True, None))


def main() -> None:
    """Print the version, a block of IQ1_M, and the first message on too many pairs."""
    base = library()
    base.ggml_version.restype = ctypes.c_char_p
    pairs(base, 209622091746699451)
    block = iq1_m(base, [1.0, -1.0] * 16 + [0.0] * 224)
    parts = f"qs {block[:32].hex()}\n  qh {block[32:48].hex()}\n  scales {block[48:].hex()}"
    print(f"ggml {base.ggml_version().decode()}: IQ1_M of 1 and -1 in turns 16 times, then zeros:\n  {parts}")  # noqa: T201 - its purpose


if __name__ == "__main__":
    main()
