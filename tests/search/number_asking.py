"""A loop as small as can be that puts requests on numbers to two subjects and compares the bytes, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from conformance.outcomes import Ok, Outcome
from conformance.search.probe import NumberProbe
from conformance.subjects.process import Subject
from conformance.subjects.protocol import DequantizeRequest, DotRequest, MatvecRequest, QuantizeRequest, Request


def ask(subject: Subject, probe: NumberProbe, folder: Path) -> tuple[Outcome, npt.NDArray[np.uint8]]:
    """Give the outcome, and the bytes of each row, shape (n, bytes); no rows where there is no answer."""
    out = folder / f"{subject.manifest.name}.out"
    out.unlink(missing_ok=True)
    outcome = subject.ask(_request(probe, folder, out)).outcome
    if not isinstance(outcome, Ok):
        return outcome, np.zeros((0, 0), dtype=np.uint8)
    return outcome, np.frombuffer(out.read_bytes(), dtype=np.uint8).reshape(probe.n, -1)


def _written(array: npt.NDArray[np.generic] | None, path: Path) -> str:
    if array is not None:
        path.write_bytes(np.ascontiguousarray(array).tobytes())
    return str(path)


def _request(probe: NumberProbe, folder: Path, out: Path) -> Request:
    floats, blocks, x, imatrix = (folder / name for name in ("in.f32", "in.bin", "x.f32", "imatrix.f32"))
    common = {"seq": 0, "type": probe.type, "rows": probe.n, "cols": probe.cols, "out": str(out)}
    variant = probe.variant or None
    if probe.op == "quantize":
        weights = None if probe.imatrix is None else _written(probe.imatrix, imatrix)
        return QuantizeRequest(input=_written(probe.rows, floats), imatrix=weights, variant=variant, **common)
    if probe.op == "dequantize":
        return DequantizeRequest(input=_written(probe.blocks, blocks), **common)
    kind = DotRequest if probe.op == "dot" else MatvecRequest
    given = probe.x
    if probe.op == "dot" and given is not None:
        given = np.broadcast_to(given, (probe.n, probe.cols))
    return kind(weights=_written(probe.blocks, blocks), x=_written(given, x), variant=variant, **common)


def differing(left: npt.NDArray[np.uint8], right: npt.NDArray[np.uint8], *, floats: bool) -> npt.NDArray[np.bool_]:
    """Tell for each row whether the two answers differ; any NaN equals any NaN."""
    if not floats:
        return (left != right).any(axis=1)
    mine, other = np.ascontiguousarray(left).view(np.uint32), np.ascontiguousarray(right).view(np.uint32)
    both_nan = np.isnan(mine.view(np.float32)) & np.isnan(other.view(np.float32))
    return ((mine != other) & ~both_nan).any(axis=1)
