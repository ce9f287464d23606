"""Where fuzzing starts: the built files of the container cases, and the numbers and words that the format turns on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from conformance.cases.build import build
from conformance.cases.model import Case, FileInput

# Larger files teach nothing that smaller ones do not, and each run over them is slow.
MAX_SEED = 4096
_NUMBERS = (0, 1, 31, 32, 63, 64, 2**16, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
_WORDS = (b"GGUF", b"general.alignment", b"general.alignment\0", b"\xff\xfe", b"\xc3\xbc")


def write_seeds(cases: Iterable[Case], folder: Path) -> int:
    """Write each small built file once, named by its digest; give how many there are."""
    for case in cases:
        if isinstance(case.input, FileInput):
            data = build(case.input.recipe).data
            if len(data) <= MAX_SEED:
                (folder / sha256(data).hexdigest()[:16]).write_bytes(data)
    return sum(1 for _ in folder.iterdir())


def write_dictionary(path: Path) -> None:
    """Write libFuzzer's dictionary: boundary numbers in four and eight bytes, type numbers, words."""
    path.write_text("".join(f'"{_escaped(token)}"\n' for token in dict.fromkeys(_tokens())), "ascii")


def _tokens() -> Iterator[bytes]:
    for number in _NUMBERS:
        if number < 2**32:
            yield number.to_bytes(4, "little")
        yield number.to_bytes(8, "little")
    for number in range(44):  # ggml's types, and with them the value types
        yield number.to_bytes(4, "little")
    yield from _WORDS


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)
