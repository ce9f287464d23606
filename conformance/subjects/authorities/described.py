"""What the op ``write`` is given, for both authorities: a header as JSON, and a file with the tensors' bytes in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from conformance.adapter import Header, Reject
from conformance.subjects.protocol import WriteRequest
from conformance.values import Element, Pair, Value, text_to_bytes

_HEADERS = msgspec.json.Decoder(Header)


def read_description(request: WriteRequest) -> Header:
    """Read the header that is to be written."""
    return _HEADERS.decode(Path(request.description).read_bytes())


def tensor_bytes(header: Header, request: WriteRequest) -> Iterator[bytes]:
    """Give each tensor's bytes. Raises Reject (``bad-input``) if the file holds more or fewer than the header says."""
    data = Path(request.data)
    due, size = sum(int(tensor.nbytes or 0) for tensor in header.tensors), data.stat().st_size
    if due != size:
        raise Reject("bad-input", f"{size} bytes in {data}, the tensors take {due}")
    with data.open("rb") as file:
        for tensor in header.tensors:
            yield file.read(int(tensor.nbytes or 0))


def elements(pair: Pair) -> list[Element]:
    """Give an array's elements."""
    assert isinstance(pair.value, list)  # noqa: S101 - the harness sends well-formed headers
    return pair.value


def raw_text(value: Value) -> bytes:
    """Give the bytes of a string value."""
    assert not isinstance(value, list)  # noqa: S101 - the same
    return text_to_bytes(value)
