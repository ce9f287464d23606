"""Protocol 1: the messages between the harness and a subject, NDJSON over stdin and stdout.

The JSON Schema in ``conformance/schemas/protocol-1.json`` is generated from these types. ``docs/protocol.md`` is the manual.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from conformance.values import Header

PROTOCOL = 1

OPS = ("header", "load", "tensor", "dequantize", "quantize", "dot", "matvec", "write")
Op = Literal["header", "load", "tensor", "dequantize", "quantize", "dot", "matvec", "write"]


class _Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", omit_defaults=True):
    seq: int


class Hello(_Request, frozen=True, kw_only=True, tag="hello"):
    """The first request of each process."""

    protocol: int


class HeaderRequest(_Request, frozen=True, kw_only=True, tag="header"):
    """Read everything before the data section of ``path``. The answer is a Header."""

    path: str


class LoadRequest(_Request, frozen=True, kw_only=True, tag="load"):
    """Read the whole file, its data included, as a program does that is about to use it. The answer is a Header."""

    path: str


class TensorRequest(_Request, frozen=True, kw_only=True, tag="tensor"):
    """Write the bytes of tensor number ``index`` (directory order, without padding) of ``path`` to ``out``."""

    path: str
    index: int
    out: str


class DequantizeRequest(_Request, frozen=True, kw_only=True, tag="dequantize"):
    """Read ``rows`` rows of ``cols`` elements of ggml type ``type`` from ``in``, write float32 to ``out``."""

    type: str
    rows: int
    cols: int
    input: str = msgspec.field(name="in")
    out: str


class QuantizeRequest(_Request, frozen=True, kw_only=True, tag="quantize"):
    """Read float32 rows from ``in``, write rows of ``type`` to ``out``.

    ``imatrix`` names a file of ``cols`` float32 weights or is null. ``variant`` "ref" asks for the type's reference
    function where it gives other bytes than the normal path.
    """

    type: str
    rows: int
    cols: int
    input: str = msgspec.field(name="in")
    imatrix: str | None = None
    variant: str | None = None
    out: str


class DotRequest(_Request, frozen=True, kw_only=True, tag="dot"):
    """For each row: the dot product of the row of ``weights`` (type ``type``) and of ``x`` (float32), one float32 to ``out``.

    ``x`` is quantized first, to the type that ggml pairs with ``type``. ``variant`` "simd" asks for the vectorised function
    instead of the scalar one.
    """

    type: str
    rows: int
    cols: int
    weights: str
    x: str
    variant: str | None = None
    out: str


class MatvecRequest(_Request, frozen=True, kw_only=True, tag="matvec"):
    """The products of all ``rows`` rows of ``weights`` and the one float32 row in ``x``, ``rows`` float32 to ``out``."""

    type: str
    rows: int
    cols: int
    weights: str
    x: str
    variant: str | None = None
    out: str


class WriteRequest(_Request, frozen=True, kw_only=True, tag="write"):
    """Write the file that the Header JSON in ``description`` says, with tensor bytes from ``data`` in order, to ``out``."""

    description: str
    data: str
    out: str


Request = (
    Hello
    | HeaderRequest
    | LoadRequest
    | TensorRequest
    | DequantizeRequest
    | QuantizeRequest
    | DotRequest
    | MatvecRequest
    | WriteRequest
)


Hidden = Literal["version", "alignment", "data_offset", "type", "offset", "nbytes"]
"""What of a header an interface may not show at all; ``type``, ``offset`` and ``nbytes`` are the tensors'."""


class View(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a reader's interface cannot show, so that it is not judged on it.

    ``ordered``: pairs and tensors come in file order. ``strings``: "bytes" shows every byte, "c" ends at the first NUL,
    "lossy" replaces bytes that are not UTF-8. ``dims``: "exact", or "ne" where trailing dimensions of 1 do not show.
    ``integers``: "exact", or "double" where 64-bit integers pass through a double. ``data_offset``: "always", or "tensors"
    where a file without tensors has none that means anything (llama.cpp gives the end of the pairs, gguf-py pads it).
    ``types``: "exact", or "lost" where values come without their types: numbers are then compared as numbers. ``hides`` names
    fields that do not show at all; an answer has something of their kind in their place, and nobody looks at it.
    """

    ordered: bool = True
    strings: Literal["bytes", "c", "lossy"] = "bytes"
    dims: Literal["exact", "ne"] = "exact"
    integers: Literal["exact", "double"] = "exact"
    data_offset: Literal["always", "tensors"] = "always"
    types: Literal["exact", "lost"] = "exact"
    hides: tuple[Hidden, ...] = ()


class Ops(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a subject does. An op that is absent is never asked.

    Block ops list types as ggml names them in capitals; ``TYPE:variant`` stands for a variant ("Q8_0:simd"). ``imatrix`` is
    false where nothing can be quantized with importances.
    """

    header: View | None = None
    load: View | None = None
    tensor: View | None = None
    dequantize: tuple[str, ...] = ()
    quantize: tuple[str, ...] = ()
    dot: tuple[str, ...] = ()
    matvec: tuple[str, ...] = ()
    write: View | None = None
    imatrix: bool = True


class Identity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subject's answer to hello. ``details`` is free: paths, build, arithmetic found by probing."""

    name: str
    version: str
    language: str
    protocol: int
    ops: Ops
    details: dict[str, str] = {}


class Rejected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A clean refusal of the input. ``class`` is one of the reject classes, "other" if the subject cannot say.

    ``at`` is the file offset and ``field`` the path (``kv[0].key.length``) that the subject blames, where it knows them.
    """

    reject_class: str = msgspec.field(name="class", default="other")
    message: str = ""
    at: int | None = None
    field: str | None = None


class Response(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer: exactly one of the four fields beside ``seq``. ``ok`` is typed by the request's op."""

    seq: int
    ok: msgspec.Raw = msgspec.Raw(b"")
    reject: Rejected | None = None
    unsupported: str | None = None
    error: str | None = None


class Done(msgspec.Struct, frozen=True):
    """The ``ok`` of an op whose result is its output file."""


__all__ = ["OPS", "PROTOCOL", "Header", "Hello", "Identity", "Ops", "Request", "Response", "View"]
