"""``header``, ``load`` and ``tensor``: what ``GGUFReader`` makes of a file.

Making the reader is both ops: it parses the header and maps the data of every tensor. A value is what ``contents()`` gives
its user, and refused where that raises; only the bits of floats come from the parts below it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGUFValueType
from gguf.gguf_reader import GGUFReader, ReaderField, ReaderTensor

from conformance.adapter import Header, Reject
from conformance.subjects.authorities.answers import FileKey, file_key
from conformance.subjects.authorities.gguf_py.rejects import VERDICTS, refusal
from conformance.subjects.protocol import HeaderRequest, LoadRequest, TensorRequest
from conformance.values import VALUE_TYPES, Element, Pair, TensorInfo

# GGUFReader puts the version and the two counts in front of the file's own pairs.
PSEUDO_FIELDS = 3


class Reader:
    """Reads files and keeps the last one: ``GGUFReader`` takes seconds where a file holds many strings."""

    def __init__(self) -> None:
        self._last: tuple[FileKey, GGUFReader] | None = None

    def header(self, request: HeaderRequest | LoadRequest) -> Header:
        """Answer ``header`` and ``load``."""
        reader = self._open(request.path)
        try:
            return describe(reader)
        except VERDICTS as error:
            raise refusal(error) from None

    def tensor(self, request: TensorRequest) -> None:
        """Write the bytes of one tensor as they stand in the file."""
        tensors = self._open(request.path).tensors
        if not 0 <= request.index < len(tensors):
            raise Reject("bad-input", f"tensor {request.index} of {len(tensors)}")
        Path(request.out).write_bytes(tensors[request.index].data.tobytes())

    def _open(self, path: str) -> GGUFReader:
        key = file_key(path)
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        self._last = None
        try:
            reader = GGUFReader(path)
        except VERDICTS as error:
            raise refusal(error) from None
        if key is not None:
            self._last = key, reader
        return reader


def describe(reader: GGUFReader) -> Header:
    """Give all that the reader's fields and tensors say. Raises what ``contents()`` raises."""
    fields = list(reader.fields.values())
    return Header(
        version=int(reader.fields["GGUF.version"].parts[0][0]),
        alignment=int(reader.alignment),
        data_offset=int(reader.data_offset),
        kv=[_pair(field) for field in fields[PSEUDO_FIELDS:]],
        tensors=[_tensor(tensor, reader.data_offset) for tensor in reader.tensors],
    )


def _pair(field: ReaderField) -> Pair:
    main, last = field.types[0], field.types[-1]
    contents = field.contents()
    if main == GGUFValueType.ARRAY:
        # Arrays within an array come flattened, with the innermost type; an empty array has lost its items' type.
        items = None if last == GGUFValueType.ARRAY or _is_mixed(field) else VALUE_TYPES[last]
        return Pair(field.name, "array", _elements(field, contents), items)
    value = contents if main == GGUFValueType.STRING else _numbers(field.parts[-1])[0]
    return Pair(field.name, VALUE_TYPES[main], value)


def _is_mixed(field: ReaderField) -> bool:
    """Tell whether numbers of different types were flattened into one list, for which there is no one type."""
    return field.types[-1] != GGUFValueType.STRING and len({field.parts[index].dtype for index in field.data}) > 1


def _elements(field: ReaderField, contents: list[Any]) -> list[Element]:
    if field.types[-1] == GGUFValueType.STRING:
        return contents
    return [number for index in field.data for number in _numbers(field.parts[index])]


def _numbers(part: np.ndarray[Any, np.dtype[Any]]) -> list[str]:
    """Give a part's numbers; floats by their bits, in the byte order that the reader settled on."""
    if part.dtype.kind == "b":
        return ["true" if value else "false" for value in part.tolist()]
    if part.dtype.kind == "f":
        size = part.dtype.itemsize
        bits = part.view(np.dtype(f"u{size}").newbyteorder(part.dtype.byteorder))
        return [f"0x{value:0{2 * size}x}" for value in bits.tolist()]
    return [str(value) for value in part.tolist()]


def _tensor(tensor: ReaderTensor, start: int) -> TensorInfo:
    return TensorInfo(
        name=tensor.name,
        type=int(tensor.tensor_type),
        dims=[str(n) for n in tensor.shape.tolist()],
        offset=str((tensor.data_offset - int(start)) % (1 << 64)),  # the reader adds the two as unsigned 64-bit numbers
        nbytes=str(tensor.n_bytes),
    )
