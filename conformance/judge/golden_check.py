"""What a golden file has to hold so that each of its answers can be compared: damage is named, not judged."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from conformance.ggml_types import BY_ID
from conformance.judge.headers import ArrayDigests
from conformance.judge.output import GoldenOutput, Kept
from conformance.outcomes import Ok
from conformance.subjects.answers import header_problems
from conformance.values import Header

HEADER_STEPS = frozenset({"header", "load"})


def answer_faults(step: str, outcome: object, arrays: dict[int, ArrayDigests], output: GoldenOutput | None) -> Iterator[str]:
    """Say what keeps a recorded answer to ``step`` from being compared: field, value, what is due."""
    header = outcome.header if isinstance(outcome, Ok) else None
    if isinstance(outcome, Ok) and step in HEADER_STEPS and header is None:
        yield "the outcome is ok, but there is no header"
    if isinstance(outcome, Ok) and step not in HEADER_STEPS and output is None:
        yield "the outcome is ok, but there is no output"
    if header is not None:
        yield from _header_faults(header)
    for index, digests in arrays.items():
        yield from _array_faults(f"arrays.{index}", index, digests, header)
    if output is not None:
        yield from _output_faults(output)


def _header_faults(header: Header) -> Iterator[str]:
    """Hold a header to its values' forms, and its tensors to what the harness cuts out of a file by them.

    Sizes may be wrong, offsets beyond any file: authorities took such files, and so it was recorded.
    """
    if malformed := next(header_problems(header), ""):
        yield f"header: {malformed}"
        return
    if header.data_offset < 0:
        yield f"header: data_offset is {header.data_offset}, expected 0 or more"
    for index, tensor in enumerate(header.tensors):
        where, kind = f"header: tensors[{index}]", BY_ID.get(tensor.type)
        if kind is None or kind.removed:
            yield f"{where}.type is {tensor.type}, which is no ggml type"
        if negative := [number for number in (*tensor.dims, tensor.offset, tensor.nbytes or "0") if int(number) < 0]:
            yield f"{where} holds {negative[0]}, expected 0 or more"


def _array_faults(where: str, index: int, digests: ArrayDigests, header: Header | None) -> Iterator[str]:
    pairs = header.kv if header else []
    if not 0 <= index < len(pairs) or not isinstance(pairs[index].value, list):
        yield f"{where}: pair {index} of the recorded header is no array"
    yield from _count_faults(where, digests.count, digests.range, digests.digests)


def _output_faults(output: GoldenOutput) -> Iterator[str]:
    if isinstance(output, Kept):
        try:
            base64.b64decode(output.base64, validate=True)
        except (binascii.Error, ValueError) as problem:
            yield f"output.base64 is {_shown(output.base64)}: {problem}"
    elif output.unit < 1:
        yield f"output.unit is {output.unit}, expected 1 or more bytes"
    elif output.nbytes < 1 or output.nbytes % output.unit:
        yield f"output.nbytes is {output.nbytes}, expected a whole number of units of {output.unit} bytes"
    else:
        yield from _count_faults("output", output.nbytes // output.unit, output.range, output.digests)


def _count_faults(where: str, count: int, span: int, digests: list[str]) -> Iterator[str]:
    """Hold the number of digests to what is digested: ``count`` values, ``span`` of them a digest."""
    if span < 1:
        yield f"{where}.range is {span}, expected 1 or more"
    elif count < 0:
        yield f"{where}.count is {count}, expected 0 or more"
    elif len(digests) != -(-count // span):
        yield f"{where}.digests has {len(digests)} entries, expected {-(-count // span)} for {count} by {span}"


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}…"
