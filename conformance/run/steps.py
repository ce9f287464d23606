"""The steps of a case: each one request that every participant is asked, and the shape of what comes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from conformance.cases.model import Case
from conformance.ggml_types import BY_ID, BY_NAME, GgmlType
from conformance.judge.rounding import Product
from conformance.report.events import Counts
from conformance.run.description import Described
from conformance.run.prepare import Prepared
from conformance.subjects.protocol import (
    DequantizeRequest,
    DotRequest,
    HeaderRequest,
    LoadRequest,
    MatvecRequest,
    QuantizeRequest,
    Request,
    TensorRequest,
    WriteRequest,
)
from conformance.values import Header

# A file with more tensors than this that are not a model's is asked for the first ones only.
CRAFTED_TENSORS = 64


class Numbers(NamedTuple):
    """Rows of ``cols`` elements of a ggml type: what a block step works on. ``width`` float32 a row come back, or blocks."""

    kind: GgmlType
    rows: int
    cols: int
    floats: bool
    width: int

    @property
    def output_bytes(self) -> int:
        """The size of a right output."""
        return self.rows * (4 * self.width if self.floats else self.kind.row_bytes(self.cols))

    @property
    def counts(self) -> Counts:
        """What a comparison of this output compares."""
        blocks = self.rows * self.cols // self.kind.block
        if not self.floats:
            return Counts(requests=1, blocks=blocks, bytes=self.output_bytes)
        if self.width == self.cols:
            return Counts(requests=1, blocks=blocks, values=self.rows * self.cols)
        return Counts(requests=1, values=self.rows * self.width)


class Step(NamedTuple):
    """One request. ``name`` tells it from the case's others; ``after`` is the step whose output it takes in.

    Exactly one of ``numbers`` (block ops), ``tensor`` (the size of a tensor's bytes), ``described`` (what is to be written) or
    none (header ops) is set.
    """

    name: str
    op: str
    variant: str | None = None
    numbers: Numbers | None = None
    tensor_index: int = 0
    tensor_type: GgmlType | None = None
    tensor_bytes: int | None = None
    input: Path | None = None
    x: Path | None = None
    imatrix: Path | None = None
    after: str | None = None
    described: Described | None = None

    @property
    def asked(self) -> str:
        """The op as a case asks it, with its variant."""
        return f"{self.op}:{self.variant}" if self.variant else self.op

    @property
    def type_name(self) -> str | None:
        """The type as a hello declares it, with the variant; None for header ops."""
        if self.numbers is None:
            return None
        return f"{self.numbers.kind.name}:{self.variant}" if self.variant else self.numbers.kind.name

    @property
    def kind_name(self) -> str:
        """The ggml type that the step is about, ``-`` for header ops: the second part of a signature."""
        kind = self.numbers.kind if self.numbers else self.tensor_type
        return kind.name if kind else "-"

    @property
    def unit(self) -> int:
        """Bytes of the smallest thing that a report locates in the output: a block, or a float32."""
        if self.numbers is not None and self.numbers.floats:
            return 4
        kind = self.numbers.kind if self.numbers else self.tensor_type
        return kind.nbytes if kind else 1

    @property
    def of_a_tensor(self) -> bool:
        """Whether it is about numbers that the harness cut out of a file, by an authority's directory."""
        return self.numbers is not None and "[" in self.name

    @property
    def has_output(self) -> bool:
        """Whether the answer is in an output file."""
        return self.numbers is not None or self.tensor_bytes is not None or self.described is not None

    @property
    def due_bytes(self) -> int | None:
        """The size of a right output, None where it is part of the answer."""
        if self.described is not None:
            return None
        return (self.numbers.output_bytes if self.numbers else self.tensor_bytes) or 0

    @property
    def takes_blocks(self) -> bool:
        """Whether it takes in blocks that an earlier step made."""
        return self.after is not None and self.op != "quantize"

    @property
    def counts(self) -> Counts:
        """What a comparison of this step's answers compares; blocks that an earlier step compared are not counted again."""
        if self.numbers is not None:
            return msgspec.structs.replace(self.numbers.counts, blocks=0) if self.takes_blocks else self.numbers.counts
        if self.tensor_bytes is not None:
            return Counts(requests=1, tensors=1, bytes=self.tensor_bytes)
        return Counts(requests=1, files=1)


def request(step: Step, path: Path | None, source: Path | None, out: Path) -> Request:
    """Make the message of a step; ``source`` is the file that a block step reads (its own input, or an earlier output)."""
    match step.op:
        case "header":
            return HeaderRequest(seq=0, path=str(path))
        case "load":
            return LoadRequest(seq=0, path=str(path))
        case "tensor":
            return TensorRequest(seq=0, path=str(path), index=step.tensor_index, out=str(out))
        case "write":
            described = step.described
            assert described is not None  # noqa: S101 - the step is made of it
            return WriteRequest(seq=0, description=str(described.header), data=str(described.data), out=str(out))
        case _:
            return _block_request(step, str(source), str(out))


def _block_request(step: Step, source: str, out: str) -> Request:
    numbers = step.numbers
    assert numbers is not None  # noqa: S101 - steps() makes block steps with their numbers
    kind, rows, cols = numbers.kind.name, numbers.rows, numbers.cols
    if step.op == "quantize":
        imatrix = str(step.imatrix) if step.imatrix else None
        return QuantizeRequest(seq=0, type=kind, rows=rows, cols=cols, input=source, imatrix=imatrix, variant=step.variant, out=out)
    if step.op == "dequantize":
        return DequantizeRequest(seq=0, type=kind, rows=rows, cols=cols, input=source, out=out)
    product = MatvecRequest if step.op == "matvec" else DotRequest
    return product(seq=0, type=kind, rows=rows, cols=cols, weights=source, x=str(step.x), variant=step.variant, out=out)


def multiplied(step: Step, weights: Path) -> Product:
    """Give what a step multiplies."""
    numbers, x = step.numbers, step.x
    assert numbers is not None and x is not None  # noqa: S101 - a product has both
    return Product(numbers.kind, weights, numbers.rows, numbers.cols, np.fromfile(x, np.float32).reshape(-1, numbers.cols))


def block_steps(case: Case, prepared: Prepared) -> Iterator[Step]:
    """Give the steps of a case on numbers: quantize first, so that the others can take its output."""
    data = prepared.numbers
    assert data is not None  # noqa: S101 - the caller has looked at the input's kind
    kind = BY_NAME[data.type]
    quantized = "quantize" if data.rows_path is not None else None
    for asked in case.ask:
        op, _, variant = asked.partition(":")
        floats = op != "quantize"
        width = data.cols if op == "dequantize" else 1
        yield Step(
            name=asked,
            op=op,
            variant=variant or None,
            numbers=Numbers(kind, data.rows, data.cols, floats, width),
            input=data.rows_path if op == "quantize" else data.blocks_path,
            x=data.x_row_path if op == "matvec" else data.x_path,
            imatrix=data.imatrix_path if op == "quantize" else None,
            after=quantized if floats else None,
        )


def file_steps(case: Case, prepared: Prepared, directory: Header | None, scratch: Path) -> Iterator[Step]:
    """Give the steps that need the tensor directory: ``tensor`` and ``dequantize`` of each tensor of ``directory``.

    A tensor's own bytes, cut out of the file by the harness, are what is dequantized: so a subject that reads the wrong
    bytes is judged once for it.
    """
    if directory is None:
        return
    limit = len(directory.tensors) if prepared.is_model else CRAFTED_TENSORS
    for index, tensor in enumerate(directory.tensors[:limit]):
        kind, nbytes = BY_ID[tensor.type], int(tensor.nbytes or 0)
        if "tensor" in case.ask:
            yield Step(name=f"tensor[{index}]", op="tensor", tensor_index=index, tensor_type=kind, tensor_bytes=nbytes)
        if "dequantize" in case.ask and nbytes:
            cols, rows = int((tensor.dims or ["1"])[0]), prod(int(dim) for dim in tensor.dims[1:])
            source = _cut(prepared.path, directory.data_offset + int(tensor.offset), nbytes, scratch)
            numbers = Numbers(kind, rows, cols, floats=True, width=cols)
            dequantized = Step(name=f"dequantize[{index}]", op="dequantize", tensor_index=index, numbers=numbers, input=source)
            yield dequantized
            yield from _requantized(case, dequantized, rows, cols)


def _requantized(case: Case, dequantized: Step, rows: int, cols: int) -> Iterator[Step]:
    """Quantize a tensor's values again, to each type whose blocks fit its rows."""
    for name in case.requantize:
        if cols % BY_NAME[name].block == 0:
            yield Step(
                name=f"quantize[{dequantized.tensor_index}] to {name}",
                op="quantize",
                tensor_index=dequantized.tensor_index,
                numbers=Numbers(BY_NAME[name], rows, cols, floats=False, width=1),
                after=dequantized.name,
            )


def _cut(path: Path | None, start: int, nbytes: int, scratch: Path) -> Path:
    """Write the bytes of one tensor to a file of its own (the same one each time: a step is done before the next)."""
    assert path is not None  # noqa: S101 - only cases on files have tensors
    target = scratch / "tensor.bin"
    end = path.stat().st_size  # an authority may have taken a file with an offset, or a size, that no file has
    with path.open("rb") as source, target.open("wb") as sink:
        source.seek(min(start, end))
        sink.write(source.read(min(nbytes, end)))
    return target


def step_op(name: str) -> str:
    """Give the op that a step's name stands for in a case's expectations: ``tensor[3]`` is ``tensor``."""
    return re.sub(r"\[\d+\]$", "", name)
