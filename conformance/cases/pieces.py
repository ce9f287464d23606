"""The writer under the builder: puts one field after the other and notes where each stands."""

from __future__ import annotations

from typing import Literal

import numpy as np

from conformance.cases.entry import Entry
from conformance.cases.fieldmap import Field, Nest, Run, Single, Span, TextRun
from conformance.cases.plan import MAX_BYTES, WIDTHS, Array, ArrayArray, Nested, NumberArray, Raw, Scalar, Text, TextArray, Value
from conformance.values import VALUE_TYPES

ARRAY_TYPE = VALUE_TYPES.index("array")


class Writer:
    """Bytes and spans of a file under way. ``width`` is that of counts, lengths and dimensions: 8 bytes, 4 in version 1."""

    def __init__(self, order: Literal["little", "big"], width: int, entry: Entry) -> None:
        self.spans: list[Span] = []
        self.position = 0
        self._order = order
        self._width = width
        self._entry = entry
        self._chunks: list[bytes] = []

    def joined(self) -> bytes:
        """Give all bytes written."""
        return b"".join(self._chunks)

    def raw(self, path: str, kind: str, unit: bytes, count: int = 1) -> None:
        """Write ``count`` times ``unit`` as one field."""
        self.spans.append(Single(Field(path, self.position, len(unit) * count, kind)))
        self._put(unit, count)

    def number(self, path: str, kind: str, bits: int) -> None:
        """Write a scalar of ``kind``."""
        self.raw(path, kind, self._bytes(bits, WIDTHS[kind]))

    def length(self, path: str, value: int) -> None:
        """Write a count, length or dimension."""
        self.number(path, f"u{8 * self._width}", value)

    def text(self, path: str, text: Text) -> None:
        """Write a length and its bytes: ``path.length`` and ``path``."""
        self.length(f"{path}.length", len(text.unit) * text.count)
        self.raw(path, "text", text.unit, text.count)

    def typed_value(self, path: str, value: Value) -> None:
        """Write ``path.type`` and the value."""
        self.number(f"{path}.type", "u32", _type_number(value))
        path = f"{path}.value"
        match value:
            case Scalar(kind, bits):
                self.number(path, kind, bits)
            case Text():
                self.text(path, value)
            case Raw(_, data):
                self.raw(path, "bytes", data)
            case Nested(levels, inner):
                self._nest(path, levels)
                self._array(path + "[0]" * levels, inner)
            case _:
                self._array(path, value)

    def tiles(self, data: bytes, fields: list[Field]) -> None:
        """Write a section whose fields, which tile it, are known already."""
        self.spans.extend(map(Single, fields))
        self._put(data, 1)

    def _nest(self, path: str, levels: int) -> None:
        self.spans.append(Nest(path, self.position, levels, self._width))
        self._put(self._bytes(ARRAY_TYPE, 4) + self._bytes(1, self._width), levels)

    def _array(self, path: str, array: Array) -> None:
        """Write ``path.items``, ``path.length`` and the elements."""
        kind = {TextArray: "str", ArrayArray: "array"}.get(type(array)) or getattr(array, "kind", "")
        self.number(f"{path}.items", "u32", VALUE_TYPES.index(kind))
        match array:
            case NumberArray(kind, bits, times):
                self.length(f"{path}.length", array.count)
                self.spans.append(Run(path, self.position, array.count, WIDTHS[kind], kind))
                self._put(b"".join(self._bytes(each, WIDTHS[kind]) for each in bits), times)
            case TextArray(texts, times):
                self.length(f"{path}.length", len(texts) * times)
                self._texts(path, texts, times)
            case ArrayArray(items):
                self.length(f"{path}.length", len(items))
                for index, item in enumerate(items):
                    self._array(f"{path}[{index}]", item)

    def _texts(self, path: str, texts: tuple[Text, ...], times: int) -> None:
        chunks = [self._bytes(len(text.unit) * text.count, self._width) + text.raw for text in texts]
        sizes = np.tile(np.array([len(chunk) for chunk in chunks], dtype=np.int64), times)
        starts = np.concatenate(([self.position], self.position + np.cumsum(sizes)))
        self.spans.append(TextRun(path, starts, self._width))
        self._put(b"".join(chunks), times)

    def _put(self, unit: bytes, count: int) -> None:
        size = self.position + len(unit) * count
        if size > MAX_BYTES:
            raise self._entry.error(f"the file would have {size} bytes or more", f"the limit of a built file is {MAX_BYTES} bytes")
        self._chunks.append(unit * count)
        self.position = size

    def _bytes(self, bits: int, width: int) -> bytes:
        """Give an integer's bytes; what is too wide for version 1's fields is cut to their width."""
        kept: int = bits % 2 ** (8 * width)
        return kept.to_bytes(width, self._order)


def _type_number(value: Value) -> int:
    match value:
        case Scalar(kind, _):
            return VALUE_TYPES.index(kind)
        case Text():
            return VALUE_TYPES.index("str")
        case Raw(number, _):
            return number
        case _:
            return ARRAY_TYPE
