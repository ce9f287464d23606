"""Numbers put to both sides, many rows at a time, and what the answers differ in."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from conformance.block_ops import UNDEFINED
from conformance.ggml_types import BY_NAME
from conformance.judge.measure import Given, Measure, differences, same_class
from conformance.judge.numbers import Shape
from conformance.judge.output import Bytes
from conformance.outcomes import FAILURES, Ok, Outcome, Reject, Unsupported
from conformance.run.outputs import take_output
from conformance.search.block_families import scale_fields
from conformance.search.files import Pair
from conformance.search.hit import Hit, unanswered
from conformance.search.probe import NumberProbe
from conformance.search.rows import Flags, row_divergences, rows_showing
from conformance.subjects.protocol import DequantizeRequest, DotRequest, MatvecRequest, QuantizeRequest, Request

# What was asked before is remembered where it is small: large requests would fill the memory, and small ones do as well.
_REMEMBERED = 4
_SMALL = 2**15
# Floats of a scale by their width.
_FLOATS: dict[int, type[np.floating[Any]]] = {2: np.float16, 4: np.float32}
# Rows that a hit carries on.
_KEPT_ROWS = 4
# Where a refusal or a death is to be narrowed, each row is a request of its own, and there are at most so many.
_SINGLE_ROWS = 64


class _Put(NamedTuple):
    """A request that is on its way: what is asked, where the answers go, and what was asked just before."""

    probe: NumberProbe
    outs: tuple[Path, Path]
    before: tuple[NumberProbe, ...]


class Answered(NamedTuple):
    """A request that both sides have answered; what they wrote is not read yet."""

    put: _Put
    outcomes: tuple[Outcome, Outcome]


class Compared(NamedTuple):
    """Both answers to one request; the outputs are there where both are ok, until the next answers are read."""

    put: _Put
    found: Outcome
    expected: Outcome
    outputs: tuple[Bytes, Bytes] | None


class NumberBench:
    """Puts requests of block ops to two sides. ``put`` sends one and waits for nothing, ``take`` gives what it showed."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair = pair
        self.folder = folder
        self.blocks = 0
        # What the subject says that it does not do, though its hello declares it: how often, by op and type.
        self.declined: Counter[str] = Counter()
        self.recent: deque[NumberProbe] = deque(maxlen=_REMEMBERED)
        self._turn = 0
        self._put: _Put | None = None
        self._rooms = [np.empty(0, np.uint8), np.empty(0, np.uint8)]

    @property
    def takes_imatrix(self) -> bool:
        """Whether both sides quantize with importances at all."""
        return all(side.identity.ops.imatrix for side in self.pair)

    def put(self, probe: NumberProbe) -> None:
        """Write the numbers and send the request."""
        self._turn = 1 - self._turn
        outs = (self.folder / f"{self._turn}-subject.out", self.folder / f"{self._turn}-against.out")
        inputs = self._inputs(probe)
        for side, out in zip(self.pair, outs, strict=True):
            out.unlink(missing_ok=True)
            side.pose([_request(probe, inputs, out)])
        self._put = _Put(probe, outs, tuple(self.recent))
        self._remember(probe)

    def _remember(self, probe: NumberProbe) -> None:
        if probe.n * probe.cols > _SMALL:
            self.recent.clear()
        else:
            self.recent.append(probe)

    def take(self) -> Iterator[Hit]:
        """Give what the answers to the last request differ in, a hit for each signature."""
        yield from self.hits(self.finish())

    def finish(self) -> Answered | None:
        """Wait for both answers to the last request, None where none is on its way; the next may be put before they are read."""
        put, self._put = self._put, None
        return None if put is None else Answered(put, (self.pair.subject.answer(), self.pair.against.answer()))

    def hits(self, answered: Answered | None) -> Iterator[Hit]:
        """Read what both sides wrote and give what it differs in, a hit for each signature."""
        if answered is not None:
            yield from self._hits(self._compared(answered))

    def collect(self) -> Compared:
        """Wait for both answers to the request that was put, and read what was written."""
        answered = self.finish()
        assert answered is not None  # noqa: S101 - it was put just now
        return self._compared(answered)

    def _compared(self, answered: Answered) -> Compared:
        put, outcomes = answered
        due = output_bytes(put.probe)
        taken = [
            take_output(out, due, self._room(number, due)) if isinstance(outcome, Ok) else outcome
            for number, (outcome, out) in enumerate(zip(outcomes, put.outs, strict=True))
        ]
        found, expected = taken
        if isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
            self.blocks += put.probe.n * put.probe.cols // BY_NAME[put.probe.type].block
            return Compared(put, Ok(), Ok(), (found, expected))
        said = [Ok() if isinstance(answer, np.ndarray) else answer for answer in taken]
        return Compared(put, said[0], said[1], None)

    def _room(self, number: int, nbytes: int) -> Bytes:
        """Give memory for one side's output, the same as for the last one where it is large enough."""
        if len(self._rooms[number]) < nbytes:
            self._rooms[number] = np.empty(nbytes, np.uint8)
        return self._rooms[number]

    def fresh(self, *, both: bool) -> None:
        """End the subject's process, or ``both``, so that the next request is the first of a new one."""
        for side in self.pair if both else self.pair[:1]:
            side.restart()
        self.recent.clear()

    def shows(self, probe: NumberProbe, signature: str, *, against: bool = False) -> Flags:
        """Tell of each row of ``probe`` whether it shows a divergence of this signature: what shrinking asks."""
        self.put(probe)
        compared = self.collect()
        if compared.outputs is not None and not against:
            found, expected = compared.outputs
            found = any_nan(probe, expected, found)
            return rows_showing(shape_of(probe, self.pair.against.name), probe.n, expected, found, signature)
        if not any(hit.signature == signature and hit.against == against for hit in self._hits(compared)):
            return np.zeros(probe.n, np.bool_)
        return np.ones(1, np.bool_) if probe.n == 1 else self._row_by_row(probe, signature, against=against)

    def _row_by_row(self, probe: NumberProbe, signature: str, *, against: bool) -> Flags:
        flags = np.zeros(probe.n, np.bool_)
        for row in range(min(probe.n, _SINGLE_ROWS)):
            flags[row] = self.shows(rows_of(probe, [row]), signature, against=against)[0]
        return flags

    def _hits(self, compared: Compared) -> Iterator[Hit]:
        put, found, expected, outputs = compared
        probe = put.probe
        name = self.pair.against.name
        shape = shape_of(probe, name)
        if isinstance(found, Unsupported):
            self.declined[f"{shape.op} {probe.type}{' with imatrix' if probe.imatrix is not None else ''}"] += 1
            return
        if isinstance(expected, FAILURES):
            yield from unanswered(probe, shape.op, probe.type, name, (found, expected))
            return
        if outputs is None and _may_refuse(probe, found):
            self.declined[f"{shape.op} {probe.type} of what is not finite"] += 1
            return
        if outputs is None:
            for divergence in differences(shape.op, probe.type, Measure(name, expected), Given(found), shape):
                yield Hit(probe, divergence)
            return
        by_signature: dict[str, tuple[Hit, list[int]]] = {}
        theirs = outputs[1]
        for row, divergence in row_divergences(shape, probe.n, theirs, any_nan(probe, theirs, outputs[0])):
            _, rows = by_signature.setdefault(divergence.signature, (Hit(probe, divergence), []))
            rows.append(row)
        for hit, rows in by_signature.values():
            # With the row before the first: what is left of one may show in the next.
            kept = {max(0, rows[0] - 1), *rows[: _KEPT_ROWS - 1]}
            yield hit._replace(probe=rows_of(probe, sorted(kept)), before=put.before)

    def _inputs(self, probe: NumberProbe) -> dict[str, Path]:
        x = probe.x
        if x is not None and probe.op == "dot" and len(x) == 1:
            x = np.broadcast_to(x, (probe.n, probe.cols))
        given = {"rows": probe.rows, "blocks": probe.blocks, "x": x, "imatrix": probe.imatrix}
        paths = {}
        for name, values in given.items():
            if values is not None:
                paths[name] = self.folder / f"{self._turn}-{name}"
                _save(paths[name], values)
        return paths


def _may_refuse(probe: NumberProbe, found: Outcome) -> bool:
    """Tell whether a clean refusal is as right as an answer: numbers that are not finite, of which C may make any integer."""
    refused = isinstance(found, Reject) and same_class("bad-input", found.reject_class)
    return refused and probe.type in UNDEFINED and probe.rows is not None and not bool(np.isfinite(probe.rows).all())


def any_nan(probe: NumberProbe, expected: Bytes, found: Bytes) -> Bytes:
    """Give quantized rows with the expected NaN for any NaN of a scale, in rows where NaNs of different bits meet.

    Which of them a sum keeps, IEEE 754 leaves to the machine and C to the compiler. That it is a NaN is judged.
    """
    fields = [field for field in scale_fields(probe.type) if field.width in _FLOATS]
    if probe.rows is None or not fields or not (meeting := nan_rows(probe)).any():
        return found
    blocks = found.reshape(probe.n, -1, BY_NAME[probe.type].nbytes).copy()
    theirs = expected.reshape(blocks.shape)
    for field in fields:
        part = np.s_[:, :, field.offset : field.offset + field.nbytes]
        ours, right = (np.ascontiguousarray(each[part]).view(_FLOATS[field.width]) for each in (blocks, theirs))
        either = np.isnan(ours) & np.isnan(right) & meeting[:, None, None]
        blocks[part] = np.where(either, right, ours).view(np.uint8)
    return blocks.reshape(-1)


def nan_rows(probe: NumberProbe) -> Flags:
    """Tell of each row to be quantized whether NaNs of different bits meet in it: which of them a sum keeps, nobody promises."""
    if probe.rows is None:
        return np.zeros(probe.n, np.bool_)
    nan, bits = np.isnan(probe.rows), np.ascontiguousarray(probe.rows).view(np.uint32)
    highest = np.where(nan, bits, 0).max(axis=1, initial=0)
    lowest = np.where(nan, bits, np.uint32(0xFFFFFFFF)).min(axis=1, initial=0xFFFFFFFF)
    flags: Flags = nan.any(axis=1) & (highest != lowest)
    return flags


def rows_of(probe: NumberProbe, rows: Sequence[int]) -> NumberProbe:
    """Give the probe with these rows only."""
    taken = list(rows)
    return probe._replace(
        rows=None if probe.rows is None else probe.rows[taken],
        blocks=None if probe.blocks is None else probe.blocks[taken],
        x=probe.x if probe.x is None or probe.op == "matvec" or len(probe.x) != probe.n else probe.x[taken],
    )


def output_bytes(probe: NumberProbe) -> int:
    """Give the size of a right output."""
    if probe.op == "quantize":
        return probe.n * BY_NAME[probe.type].row_bytes(probe.cols)
    return probe.n * 4 * (probe.cols if probe.op == "dequantize" else 1)


def shape_of(probe: NumberProbe, authority: str) -> Shape:
    """Say what the outputs are, for the comparison."""
    asked = f"{probe.op}:{probe.variant}" if probe.variant else probe.op
    floats = probe.op != "quantize"
    width = probe.cols if probe.op == "dequantize" else 1
    return Shape(asked, BY_NAME[probe.type], probe.cols, authority, floats=floats, width=width)


def _request(probe: NumberProbe, inputs: dict[str, Path], out: Path) -> Request:
    named = {name: str(path) for name, path in inputs.items()}
    kind, rows, cols, variant = probe.type, probe.n, probe.cols, probe.variant or None
    if probe.op == "quantize":
        return QuantizeRequest(
            seq=0, type=kind, rows=rows, cols=cols, input=named["rows"], imatrix=named.get("imatrix"), variant=variant, out=str(out)
        )
    if probe.op == "dequantize":
        return DequantizeRequest(seq=0, type=kind, rows=rows, cols=cols, input=named["blocks"], out=str(out))
    product = MatvecRequest if probe.op == "matvec" else DotRequest
    return product(seq=0, type=kind, rows=rows, cols=cols, weights=named["blocks"], x=named["x"], variant=variant, out=str(out))


def _save(path: Path, values: npt.NDArray[Any]) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(np.ascontiguousarray(values).data)
