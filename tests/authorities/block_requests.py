"""Asks a subject for block ops with bytes in and bytes out."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from conformance.ggml_types import BY_NAME
from conformance.outcomes import Ok, Outcome
from conformance.subjects.process import Subject
from conformance.subjects.protocol import DequantizeRequest, DotRequest, MatvecRequest, QuantizeRequest


def floats(values: Iterable[float]) -> bytes:
    values = list(values)
    return struct.pack(f"<{len(values)}f", *values)


def bits(data: bytes) -> list[int]:
    return [value for (value,) in struct.iter_unpack("<I", data)]


def gaussian(count: int, seed: int = 1) -> bytes:
    generator = random.Random(seed)  # noqa: S311 - test data
    return floats(generator.gauss(0, 1) for _ in range(count))


def noise(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)  # noqa: S311 - test data


class Blocks(NamedTuple):
    """A subject, and a folder for the files that pass to and fro. Each method gives the outcome and what was written."""

    subject: Subject
    folder: Path

    def _file(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def _ask(self, request) -> tuple[Outcome, bytes]:
        out = Path(request.out)
        out.unlink(missing_ok=True)
        outcome = self.subject.ask(request).outcome
        return outcome, out.read_bytes() if isinstance(outcome, Ok) else b""

    def quantize(self, kind: str, data: bytes, cols: int, imatrix: bytes | None = None) -> tuple[Outcome, bytes]:
        name, _, variant = kind.partition(":")
        weights = None if imatrix is None else self._file("imatrix", imatrix)
        request = QuantizeRequest(
            seq=0,
            type=name,
            rows=len(data) // 4 // cols,
            cols=cols,
            input=self._file("in", data),
            imatrix=weights,
            variant=variant or None,
            out=str(self.folder / "out"),
        )
        return self._ask(request)

    def dequantize(self, kind: str, data: bytes, cols: int) -> tuple[Outcome, bytes]:
        rows = len(data) // BY_NAME[kind].row_bytes(cols)
        path = self._file("in", data)
        return self._ask(DequantizeRequest(seq=0, type=kind, rows=rows, cols=cols, input=path, out=str(self.folder / "out")))

    def product(self, form: type, kind: str, weights: bytes, x: bytes, cols: int) -> tuple[Outcome, bytes]:
        name, _, variant = kind.partition(":")
        request = form(
            seq=0,
            type=name,
            rows=len(weights) // BY_NAME[name].row_bytes(cols),
            cols=cols,
            weights=self._file("weights", weights),
            x=self._file("x", x),
            variant=variant or None,
            out=str(self.folder / "out"),
        )
        return self._ask(request)

    def dot(self, kind: str, weights: bytes, x: bytes, cols: int) -> tuple[Outcome, bytes]:
        return self.product(DotRequest, kind, weights, x, cols)

    def matvec(self, kind: str, weights: bytes, x: bytes, cols: int) -> tuple[Outcome, bytes]:
        return self.product(MatvecRequest, kind, weights, x, cols)
