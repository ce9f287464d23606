"""Shows the surprising results with gguf-inspect alone: ``{build}/venv/bin/python confirm.py``."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf_inspect


def text(raw: bytes) -> bytes:
    """Give a string as a file holds it."""
    return struct.pack("<Q", len(raw)) + raw


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    """Give a pair."""
    return text(key) + struct.pack("<I", kind) + value


def info(name: bytes, dims: list[int], kind: int, offset: int = 0) -> bytes:
    """Give an entry of the directory."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def parse(pairs: list[bytes], infos: list[bytes] | None = None, data: int = 0) -> gguf_inspect.GGUFFile:
    """Parse a file whose data section starts at a multiple of 32 and holds ``data`` zeros."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos or []), len(pairs)) + b"".join(pairs + (infos or []))
    path = Path(tempfile.mkdtemp()) / "x.gguf"
    path.write_bytes(head + bytes(-len(head) % 32 + data))
    return gguf_inspect.parse_gguf(path)


def tell(what: str, call: Callable[[], Any]) -> None:
    """Print what a call gives or raises."""
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - whatever comes is what is shown
        found = f"{type(error).__name__}: {str(error)[:100]}"
    print(f"{what:44} {found}")  # noqa: T201 - the script's purpose


def nested(levels: int) -> bytes:
    """Give an array in an array and so on, with one u8 in the last."""
    return pair(b"a", 9, struct.pack("<IQ", 9, 1) * levels + struct.pack("<IQ", 0, 1) + b"\7")


def aligned(value: int) -> tuple[int, list[str]]:
    """Give the alignment that is told for a file that says ``value``, and the warnings."""
    file = parse([pair(b"general.alignment", 4, struct.pack("<I", value))])
    return file.alignment, file.warnings


def sizes(infos: list[bytes], data: int) -> Any:
    """Give each tensor's size and what the size check says."""
    file = parse([], infos, data)
    return [tensor.nbytes for tensor in file.tensors], gguf_inspect.compute_sizes(file).checks


def main() -> None:
    """Print what it makes of each."""
    tell("arrays 10,000 deep", lambda: parse([nested(10_000)]))
    tell("alignment 0", lambda: aligned(0))
    tell("alignment 24", lambda: aligned(24))
    tell("Q8_1, 36 bytes a block in ggml", lambda: sizes([info(b"t", [32], 9)], 64))
    tell("Q8_1, then F32 where ggml puts it", lambda: sizes([info(b"t", [32, 8], 9), info(b"u", [8], 0, 288)], 320))
    tell("no dimensions: one element in ggml", lambda: sizes([info(b"t", [], 0)], 32))
    tell("tensor of type 43", lambda: sizes([info(b"t", [32], 43)], 32))
    tell("a key twice", lambda: parse([pair(b"a", 0, b"\1"), pair(b"a", 0, b"\2")]).metadata)
    tell("keys ff and fe", lambda: list(parse([pair(b"\xff", 0, b"\1"), pair(b"\xfe", 0, b"\2")]).metadata))
    tell("data cut short", lambda: sizes([info(b"t", [64], 0)], 32))


if __name__ == "__main__":
    main()
