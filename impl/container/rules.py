"""A profile's rules: what a file must keep to, to be taken. These are llama.cpp's; the others say in what they differ.

Source: ``gguf_init_from_reader`` in ggml/src/gguf.cpp. Where that function aborts or takes a size that wrapped, a file is refused
here instead (``bad-dims``, ``bad-size`` or ``missing-data``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, NoReturn

from impl.container.cursor import MAX_ARRAY_ELEMENTS, MAX_STRING_LENGTH, ByteOrder, Cursor, show
from impl.container.directory import INT64_MAX, MAX_DIMS, MAX_NAME_BYTES, SIZE_MAX, TensorInfo, check_strides, read_entry
from impl.container.values import Number, Value, type_name
from impl.errors import GgufError
from impl.types import TYPES, TensorType

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
ALIGNMENT_KEY = b"general.alignment"
# llama.cpp's limits follow from the sizes of its own structs: 344 bytes a tensor, 88 a pair.
MAX_TENSORS = SIZE_MAX // 344
MAX_PAIRS = SIZE_MAX // 88
# ggml_tensor_overhead(): what a full load adds, a tensor and once more, to the data in one size that must not wrap.
TENSOR_OVERHEAD = 368


class Pair(NamedTuple):
    """One key-value pair; ``type_at`` and ``value_at`` are where its type and its value stand."""

    key: bytes
    value: Value
    type_at: int
    value_at: int


class Header(NamedTuple):
    """All that a file says before its data. ``data_size`` is the data section's, all padding included."""

    version: int
    alignment: int
    data_offset: int
    data_size: int
    pairs: list[Pair]
    tensors: list[TensorInfo]


class Rules:
    """What llama.cpp reads. ``versions`` and ``byteorder`` may be given, to read other files by the same rules.

    ``who`` is what messages call the reader or the text. A byte order of "either" is told from the version.
    """

    name = "llama.cpp"
    who = "llama.cpp"
    versions: Collection[int] = VERSIONS
    byteorder: ByteOrder | str = "little"
    max_tensors = MAX_TENSORS
    max_pairs = MAX_PAIRS
    max_string = MAX_STRING_LENGTH
    max_array = MAX_ARRAY_ELEMENTS
    max_levels = 1
    """Levels of arrays: 1 is an array of anything but arrays."""
    cuts_at_end = False
    """Whether a string, an array of numbers or a scalar that passes the end of the file ends there."""
    types_empty_arrays = True
    """Whether an array without elements has a type of elements that is known."""
    reserved_keys: frozenset[bytes] = frozenset()
    max_dims: int = MAX_DIMS
    max_dim = INT64_MAX
    max_elements: int | None = INT64_MAX
    max_name: int = MAX_NAME_BYTES
    types: Sequence[TensorType] = TYPES
    checks_as_it_reads = True
    """Whether a key is judged before its value is read, and the alignment before the directory is."""

    def __init__(self, versions: Collection[int] | None = None, byteorder: ByteOrder | str | None = None) -> None:
        self.versions = versions or self.versions
        self.byteorder = byteorder or self.byteorder

    def key_problem(self, key: bytes) -> str:
        """Say what is wrong with a key by itself; nothing if it may be."""
        return "" if key else "the key is empty"

    def name_problem(self, name: bytes) -> str:
        """Say what is wrong with a tensor's name by itself; nothing if it may be."""
        if len(name) > self.max_name:
            return f"tensor name {show(name)} has {len(name)} bytes: {self.who} allows {self.max_name}"
        return ""

    def is_alignment(self, key: bytes) -> bool:
        """Tell the alignment's key. llama.cpp looks it up as a C string, so what follows a NUL in a key does not count."""
        return key.partition(b"\0")[0] == ALIGNMENT_KEY

    def alignment_problem(self, alignment: int) -> str:
        """Say what is wrong with an alignment; nothing if it may be."""
        return "a power of two" if alignment == 0 or alignment & (alignment - 1) else ""

    def alignment(self, pairs: list[Pair]) -> int:
        """Give the file's alignment. Raises GgufError, ``bad-alignment``."""
        for index, pair in enumerate(pairs):
            if self.is_alignment(pair.key):
                return self._checked_alignment(pair, index)
        return DEFAULT_ALIGNMENT

    def _checked_alignment(self, pair: Pair, index: int) -> int:
        name = type_name(pair.value)
        if not isinstance(pair.value, Number) or name != "u32":
            problem = f"general.alignment is of type {name}, it must be u32"
            raise GgufError("bad-alignment", problem, field=f"kv[{index}].type", at=pair.type_at)
        if not pair.value.raw:
            missing_value(index, pair)
        alignment = int(pair.value.get())
        if wanted := self.alignment_problem(alignment):
            problem = f"general.alignment is {alignment}, it must be {wanted}"
            raise GgufError("bad-alignment", problem, field=f"kv[{index}].value", at=pair.value_at)
        return alignment

    def read_entry(self, cursor: Cursor, index: int, seen: set[bytes]) -> TensorInfo:
        """Read entry number ``index`` of the directory; ``seen`` are the names before it. Raises GgufError."""
        return read_entry(cursor, index, seen, self)

    def data_offset(self, cursor: Cursor, n_tensors: int, alignment: int) -> int:
        """Give where the data starts: the next multiple of the alignment, or right here where there are no tensors.

        Raises:
            GgufError: ``truncated``, the file ends before.

        """
        if n_tensors == 0:
            return cursor.pos
        start = padded(cursor.pos, alignment)
        if cursor.lacks(start - cursor.pos):
            problem = f"the data should start at {start} (alignment {alignment}), but the file ends at {cursor.end}"
            raise GgufError("truncated", problem, field="data", at=start)
        return start

    def settle(self, tensors: list[TensorInfo], _data_offset: int, _file_size: int | None) -> list[TensorInfo]:
        """Check what shows only once the whole directory and the file's size (None if unknown) are there."""
        return tensors

    def check_values(self, pairs: list[Pair]) -> None:
        """Check what values hold. llama.cpp does not look at them."""

    def check_offsets(self, tensors: list[TensorInfo], alignment: int) -> int:
        """Check that each tensor starts where the one before it ends, padding included; give the sum of all.

        Raises:
            GgufError: ``bad-offset`` or ``bad-size``.

        """
        total = 0
        for index, info in enumerate(tensors):
            if info.offset != total:
                problem = f"offset {info.offset} of tensor {show(info.name)}: llama.cpp expects {total}, with no gap or overlap"
                raise GgufError("bad-offset", problem, field=f"tensors[{index}].offset", at=info.offset_at)
            total += padded(info.nbytes, alignment)
            if total > SIZE_MAX:
                problem = (
                    f"tensor {show(info.name)} takes {info.nbytes} bytes, after {info.offset}: the sum does not fit in 64 bits"
                )
                raise GgufError("bad-size", problem, field=f"tensors[{index}].type", at=info.type_at)
        return total

    def check_load(self, header: Header, file_size: int) -> None:
        """Check what a full load needs beyond the header: all data, the last tensor's padding included.

        Raises:
            GgufError: ``bad-size``, ``missing-data`` or ``bad-dims``.

        """
        if header.data_size + (len(header.tensors) + 1) * TENSOR_OVERHEAD > SIZE_MAX:
            problem = f"{header.data_size} bytes of tensors, and what ggml needs to hold them, do not fit in 64 bits"
            raise GgufError("bad-size", problem, field="data", at=header.data_offset)
        present = file_size - header.data_offset
        if header.data_size > present:
            problem = f"tensors and padding take {header.data_size} bytes, but the file ends {present} bytes on, at {file_size}"
            raise GgufError("missing-data", problem, field="data", at=header.data_offset)
        for index, info in enumerate(header.tensors):
            check_strides(info, index)


def padded(size: int, alignment: int) -> int:
    """Round up to the alignment."""
    return (size + alignment - 1) // alignment * alignment


def missing_value(index: int, pair: Pair) -> NoReturn:
    """Raise for a scalar of which the file has no byte."""
    raise GgufError("truncated", "the file ends before the value", field=f"kv[{index}].value", at=pair.value_at)


def check_within_file(header: Header, file_size: int) -> None:
    """Refuse a tensor that does not lie within the file. Raises GgufError, ``missing-data``."""
    for index, info in enumerate(header.tensors):
        start = header.data_offset + info.offset
        if start + info.nbytes > file_size:
            problem = f"tensor {show(info.name)} takes {info.nbytes} bytes from {start} on, but the file ends at {file_size}"
            raise GgufError("missing-data", problem, field=f"tensors[{index}].data", at=start)
