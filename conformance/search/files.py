"""Files put to both sides, many at a time, and what the answers differ in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance.cases.walk import walk
from conformance.errors import ConfigurationError
from conformance.ggml_types import BY_ID
from conformance.judge.divergence import Divergence
from conformance.judge.measure import Given, Measure, differences
from conformance.judge.numbers import Shape
from conformance.judge.output import Bytes
from conformance.outcomes import FAILURES, Ok, Outcome, Protocol, Reject, Unsupported, outcome_name
from conformance.run.description import Described, describe_file
from conformance.run.outputs import take_output
from conformance.search.asking import Side
from conformance.search.hit import Hit, unanswered
from conformance.search.probe import FileProbe
from conformance.search.sizes import beyond_size, wrong_size
from conformance.subjects.protocol import HeaderRequest, LoadRequest, Request, TensorRequest, WriteRequest
from conformance.values import Header

# Of a file's tensors so many are asked for, and only such as are no larger.
_TENSORS = 8
_TENSOR_BYTES = 1 << 20
# Seconds that either side may take for a file: a search meets some on which a reader never ends.
PATIENCE = 3.0
_READING = ("header", "load", "tensor")

Answered = tuple[Outcome | None, Bytes | None]


class Pair(NamedTuple):
    """The two sides of a search: ``subject`` is held to ``against``."""

    subject: Side
    against: Side


class _Put(NamedTuple):
    """Files that both sides were asked about and that wait for their answers."""

    probes: Sequence[FileProbe]
    paths: Sequence[Path]


class FileBench:
    """Puts files to two sides. ``put`` sends a batch and waits for nothing, ``take`` gives what the batch showed.

    One batch may be on its way while the next is made: files are written to two sets of names in turn.
    """

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair = pair
        self.folder = folder
        self.count = 0
        self.patience = PATIENCE
        # What the subject says that it does not do, though its hello declares the op: how often, by op.
        self.declined: Counter[str] = Counter()
        self._turn = 0
        self._put: _Put | None = None

    def ask(self, probes: Sequence[FileProbe]) -> list[list[Hit]]:
        """Put files and wait; gives the hits of each."""
        by_probe: dict[int, list[Hit]] = {id(probe): [] for probe in probes}
        self.put(probes)
        for hit in self.take():
            by_probe[id(hit.probe)].append(hit)
        return [by_probe[id(probe)] for probe in probes]

    def put(self, probes: Sequence[FileProbe]) -> None:
        """Write the files and send the requests."""
        self._turn = 1 - self._turn
        paths = [self.folder / f"{self._turn}-{number}.gguf" for number in range(len(probes))]
        for probe, path in zip(probes, paths, strict=True):
            with path.open("wb", buffering=0) as file:
                file.write(probe.data)
        put = _Put(probes, paths)
        requests = [_reading(probe, path) for probe, path in self._read(put)]
        for side in self.pair:
            side.pose(requests)
        self._put = put  # only now: of a side that could not be started nothing is to be taken

    def take(self) -> Iterator[Hit]:
        """Give what the answers to the last batch differ in. Tensors and written files are asked for now."""
        put, self._put = self._put, None
        if put is None:
            return
        read = self._read(put)
        founds, measures = (side.collect(self.patience) for side in self.pair)
        self.count += sum(map(_answered, founds, measures))
        equal: list[tuple[FileProbe, Path, Header]] = []
        for (probe, path), found, expected in zip(read, founds, measures, strict=True):
            if found is None or expected is None:
                continue  # not asked
            if found != expected or isinstance(found, FAILURES):
                yield from self._judged(probe, found, expected)
            elif probe.op == "tensor" and isinstance(expected, Ok) and expected.header is not None:
                equal.append((probe, path, expected.header))
        yield from self._tensors(equal)
        yield from self._written([(probe, path) for probe, path in zip(put.probes, put.paths, strict=True) if probe.op == "write"])

    def _read(self, put: _Put) -> list[tuple[FileProbe, Path]]:
        return [(probe, path) for probe, path in zip(put.probes, put.paths, strict=True) if probe.op in _READING]

    def _judged(self, probe: FileProbe, found: Outcome, expected: Outcome) -> Iterator[Hit]:
        op = "header" if probe.op == "tensor" else probe.op
        subject, against = self.pair
        if isinstance(found, Unsupported):
            self.declined[op] += 1
            return
        if isinstance(expected, FAILURES):
            yield from unanswered(probe, op, "-", against.name, (found, expected))
            return
        measure = Measure(against.name, expected, against.view(op))
        divergences = differences(op, "-", measure, Given(found, subject.view(op)), None)
        if divergences and (wrong := _wrapped(probe, found, expected)):
            yield Hit(probe, _contradiction(op, against.name, *wrong), against=True)
            return
        for divergence in divergences:
            yield Hit(probe, divergence)

    def _tensors(self, files: Sequence[tuple[FileProbe, Path, Header]]) -> Iterator[Hit]:
        """Ask for the bytes of each tensor of files that both sides read alike."""
        asked = [
            (probe, path, header, index)
            for probe, path, header in files
            for index, tensor in enumerate(header.tensors[:_TENSORS])
            if int(tensor.nbytes or 0) <= _TENSOR_BYTES
        ]
        if not asked or not all(side.does("tensor") for side in self.pair):
            return
        outcomes = [
            self._outputs(side, [TensorRequest(seq=0, path=str(path), index=index, out="") for _, path, _, index in asked])
            for side in self.pair
        ]
        for (probe, _, header, index), found, expected in zip(asked, *outcomes, strict=True):
            tensor = header.tensors[index]
            kind = BY_ID[tensor.type]
            shape = Shape("tensor", kind, kind.block, self.pair.against.name, floats=False, width=0)
            yield from self._compared(probe, "tensor", kind.name, (found, expected), shape)

    def _written(self, files: Sequence[tuple[FileProbe, Path]]) -> Iterator[Hit]:
        """Have files written again from what they say."""
        described = [(probe, said) for number, (probe, path) in enumerate(files) if (said := self._description(path, number))]
        if not described or not all(side.does("write") for side in self.pair):
            return
        outcomes = [
            self._outputs(
                side,
                [WriteRequest(seq=0, description=str(said.header), data=str(said.data), out="") for _, said in described],
            )
            for side in self.pair
        ]
        for (probe, _), found, expected in zip(described, *outcomes, strict=True):
            self.count += _answered(found[0], expected[0])
            yield from self._compared(probe, "write", "-", (found, expected), None)

    def _description(self, path: Path, number: int) -> Described | None:
        folder = self.folder / f"described-{number}"
        folder.mkdir(exist_ok=True)
        try:
            return describe_file(path, folder)
        except ConfigurationError:
            return None  # not sound enough to be described: nothing is asked about it

    def _outputs(self, side: Side, requests: Iterable[TensorRequest | WriteRequest]) -> list[Answered]:
        """Ask one side for output files; gives each outcome, None where it was not asked, with the bytes written."""
        outs = []
        named: list[Request] = []
        for number, request in enumerate(requests):
            outs.append(self.folder / f"{number}.out")
            outs[-1].unlink(missing_ok=True)
            named.append(_with_out(request, outs[-1]))
        side.pose(named)
        return [_taken(outcome, out) for outcome, out in zip(side.collect(self.patience), outs, strict=True)]

    def _compared(
        self,
        probe: FileProbe,
        op: str,
        type_name: str,
        answers: tuple[Answered, Answered],
        shape: Shape | None,
    ) -> Iterator[Hit]:
        (found, found_bytes), (expected, expected_bytes) = answers
        if isinstance(found, Unsupported):
            self.declined[op] += 1
            return
        if found is None or expected is None:
            return
        name = self.pair.against.name
        if isinstance(expected, FAILURES):
            yield from unanswered(probe, op, type_name, name, (found, expected))
            return
        divergences = differences(
            op, type_name, Measure(name, expected, output=expected_bytes), Given(found, output=found_bytes), shape
        )
        if divergences and op == "write" and expected_bytes is not None and (lost := self._lost(probe, expected_bytes)):
            yield Hit(probe, _lossy(name, lost), against=True)
            return
        for divergence in divergences:
            yield Hit(probe, divergence)

    def _lost(self, probe: FileProbe, written: Bytes) -> str:
        """Tell how the measure's file, as the measure itself reads it, says other than it was to say; empty where it does not."""
        against = self.pair.against
        path = self.folder / "read-back.gguf"
        path.write_bytes(written.tobytes())
        against.pose([HeaderRequest(seq=0, path=str(path))])
        back = against.answer(self.patience)
        if not isinstance(back, Ok) or back.header is None:
            return outcome_name(back)
        # Dimensions of 1 at the end say nothing: a writer may leave them out.
        view = msgspec.structs.replace(against.view("header"), dims="ne")
        said = Measure(against.name, Ok(walk(probe.data).header), view)
        found = [one for one in differences("header", "-", said, Given(back, view), None) if _of_what_is_said(one)]
        return found[0].summary if found else ""


def _answered(*outcomes: Outcome | None) -> bool:
    """Tell whether both sides were asked and do what they were asked: what else is put compares nothing."""
    return not any(outcome is None or isinstance(outcome, Unsupported) for outcome in outcomes)


def _reading(probe: FileProbe, path: Path) -> Request:
    return LoadRequest(seq=0, path=str(path)) if probe.op == "load" else HeaderRequest(seq=0, path=str(path))


def _wrapped(probe: FileProbe, found: Outcome, expected: Outcome) -> tuple[str, str] | None:
    """Give where the measure's arithmetic wrapped: it accepts a size that is not the tensor's, or refuses for what comes after.

    That a reader accepts such a file is its own fault, and stays one; that it refuses it where the size stands is none.
    """
    if isinstance(expected, Ok):
        return wrong_size(expected.header) if expected.header else None
    if isinstance(expected, Reject) and isinstance(found, Reject):
        return _passed_over(probe.data, found, expected)
    return None


def _passed_over(data: bytes, found: Reject, expected: Reject) -> tuple[str, str] | None:
    """Give the tensor whose size passes 64 bits where ``found`` blames it and ``expected`` blames something behind it.

    None where either does not say what it blames: then nobody knows that the size is the reason. Of an offset it is known: offsets
    are compared with the sizes before them, which have all been taken then (``gguf_init_from_reader``, ggml/src/gguf.cpp).
    """
    walked = walk(data)
    beyond = beyond_size(walked.header)
    if beyond is None or found.at is None:
        return None
    path = f"tensors[{beyond[0]}]"
    begin, end = walked.fields.find(f"{path}.name.length"), walked.fields.find(f"{path}.offset")
    if begin is None or end is None or not begin.offset <= found.at < end.end:
        return None
    behind = expected.at >= end.end if expected.at is not None else expected.reject_class == "bad-offset"
    return (f"{path}.nbytes", beyond[1]) if behind else None


def _of_what_is_said(divergence: Divergence) -> bool:
    """Tell a difference in what a file says from one in how it is laid out, which its writer chooses."""
    path = (divergence.field or "").rpartition(".")[2]
    return path not in {"version", "alignment", "data_offset", "offset"}


def _lossy(name: str, lost: str) -> Divergence:
    return Divergence(
        signature="write:-:contradiction:read-back",
        op="write",
        authority=name,
        summary=f"what {name} writes it does not read back: {lost}",
        expected="a file that says what was to be written",
        found=lost,
    )


def _with_out(request: TensorRequest | WriteRequest, out: Path) -> Request:
    return msgspec.structs.replace(request, out=str(out))


def _taken(outcome: Outcome | None, out: Path) -> Answered:
    if not isinstance(outcome, Ok):
        return outcome, None
    output = take_output(out, None)
    return (output, None) if isinstance(output, Protocol) else (outcome, output)


def _contradiction(op: str, name: str, path: str, problem: str) -> Divergence:
    return Divergence(
        signature=f"{op}:-:contradiction:tensors[*].nbytes",
        op=op,
        authority=name,
        summary=f"{name} goes on behind {path.partition('.')[0]} with {problem}: its arithmetic wrapped",
        expected="a size that the shape needs, or a refusal",
        found=problem,
        field=path,
    )
