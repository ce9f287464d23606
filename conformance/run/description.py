"""What the op ``write`` is given of a case's file: the header that it holds, as JSON, and its tensors' bytes in order."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance.cases.walk import walk
from conformance.errors import ConfigurationError
from conformance.values import Header


class Described(NamedTuple):
    """The two files that a ``write`` request names."""

    header: Path
    data: Path


def describe_file(path: Path, folder: Path) -> Described:
    """Read ``path`` by its layout alone and write both files into ``folder``.

    Raises ConfigurationError where it has none: it is big-endian, cut short, or no GGUF.
    """
    described = Described(folder / "description.json", folder / "data.bin")
    hint = "ask `write` of a sound, little-endian file: it is written from what the file says"
    if path.stat().st_size == 0:
        raise ConfigurationError("the file cannot be described: it is empty", hint=hint)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        walked = walk(data)
        if walked.problem:
            raise ConfigurationError(f"the file cannot be described: it {walked.problem}", hint=hint)
        described.header.write_bytes(msgspec.json.encode(walked.header))
        _write_data(walked.header, data, described.data)
    return described


def _write_data(header: Header, data: mmap.mmap, target: Path) -> None:
    with target.open("wb") as sink:
        for tensor in header.tensors:
            start = header.data_offset + int(tensor.offset)
            piece = data[start : start + int(tensor.nbytes or 0)]
            if len(piece) != int(tensor.nbytes or 0):
                hint = "give the tensor all its data, or do not ask `write`"
                raise ConfigurationError(f"{tensor.nbytes} bytes of tensor {tensor.name!r} are not all there", hint=hint)
            sink.write(piece)
