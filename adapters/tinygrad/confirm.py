"""Shows the surprising results with tinygrad alone: ``DEV=PYTHON {build}/venv/bin/python confirm.py``."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("DEV", "PYTHON")

import numpy as np
from tinygrad import Tensor
from tinygrad.llm.gguf import ggml_data_to_tensor, gguf_load

FOLDER = Path(tempfile.mkdtemp())


def text(raw: bytes) -> bytes:
    """Give a string as a file holds it."""
    return struct.pack("<Q", len(raw)) + raw


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    """Give a pair."""
    return text(key) + struct.pack("<I", kind) + value


def info(name: bytes, dims: list[int], kind: int, offset: int = 0) -> bytes:
    """Give an entry of the directory."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def load(pairs: list[bytes], infos: list[bytes] | None = None, data: bytes = b"", **how: int) -> Any:
    """Load a file of these pairs and entries: padded to ``pad``, without ``cut`` bytes at its end, and with ``claimed`` pairs."""
    pad, cut, claimed = how.get("pad", 32), how.get("cut", 0), how.get("claimed", len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos or []), claimed) + b"".join(pairs + (infos or []))
    whole = head + bytes(-len(head) % pad) + data
    path = FOLDER / f"{len(list(FOLDER.iterdir()))}.gguf"  # the loader's device of a file remembers it by its path
    path.write_bytes(whole[: len(whole) - cut])
    values, tensors = gguf_load(path)
    return values, {name: tensor.shape for name, tensor in tensors.items()}


def blocks(kind: int, data: bytes, count: int) -> Any:
    """Dequantize ``count`` elements; give the first few."""
    return ggml_data_to_tensor(Tensor(np.frombuffer(data, np.uint8)), count, kind).float().numpy().reshape(-1)[:4]


def tell(what: str, call: Callable[[], Any]) -> None:
    """Print what a call gives or raises."""
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - whatever comes is what is shown
        found = f"{type(error).__name__}: {str(error)[:100]}"
    print(f"{what:50} {found}")  # noqa: T201 - the script's purpose


def files() -> None:
    """Show what the loader makes of files."""
    alignment = b"general.alignment"
    tell("u8 of 7, i8 of 7", lambda: load([pair(b"u8", 0, b"\7"), pair(b"i8", 1, b"\7")]))
    tell("string of 9 bytes, 4 are there", lambda: load([pair(b"a", 8, struct.pack("<Q", 9) + b"text")], pad=1))
    tell("the last u32 cut in half", lambda: load([pair(b"a", 4, bytes(4))], pad=1, cut=2))
    tell("2^63 pairs and none there", lambda: load([], claimed=2**63))
    tell("string of 2^40 bytes", lambda: load([pair(b"a", 8, struct.pack("<Q", 2**40))], pad=1))
    tell("value type 13", lambda: load([pair(b"a", 13, bytes(4))]))
    tell("alignment 0", lambda: load([pair(alignment, 4, bytes(4))], [info(b"t", [8], 0)], bytes(32)))
    tell("alignment as text", lambda: load([pair(alignment, 8, text(b"32"))]))
    tell("a key twice", lambda: load([pair(b"a", 4, bytes(4)), pair(b"a", 8, text(b"x"))]))
    tell("a key that is no UTF-8", lambda: load([pair(b"\xff", 4, bytes(4))]))
    tell("Q2_K", lambda: load([], [info(b"t", [256], 10)], bytes(96)))
    tell("data cut short", lambda: load([], [info(b"t", [8], 0)], bytes(16)))
    tell("Q8_0, a row of 33", lambda: load([], [info(b"t", [33], 8)], bytes(96)))
    tell("dims 16 and 16 of Q8_0", lambda: load([], [info(b"t", [16, 16], 8)], bytes(288)))
    tell("four bytes, GGUF", lambda: load([], pad=1, cut=20))


def numbers() -> None:
    """Show what dequantizing gives."""
    tell("Q8_0, scale infinite, quants 0 1 2 3", lambda: blocks(8, b"\0\x7c" + bytes(range(32)), 32))
    tell("MXFP4, exponents 0 and 255, codes 1", lambda: [blocks(39, bytes([e]) + b"\x11" * 16, 32)[0] for e in (0, 1, 255)])
    tell("F16, 0x0001: 2^-24", lambda: blocks(1, b"\1\0", 1))
    tell("Q8_0, scale 2^-24, quants 0 1 2 3", lambda: blocks(8, b"\1\0" + bytes(range(32)), 32))
    tell("MXFP4, code 8 at exponent 127", lambda: blocks(39, b"\x7f" + b"\x88" * 16, 32))
    tell("Q1_0, scale 65504", lambda: blocks(41, b"\xff\x7b" + b"\5" * 16, 128))


if __name__ == "__main__":
    files()
    numbers()
