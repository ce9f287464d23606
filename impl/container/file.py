"""An open file: its header, and its tensors' data as views of the mapping, not copies."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from impl.container.cursor import Buffer, ByteOrder, Cursor, MoreNeededError
from impl.container.directory import TensorInfo
from impl.container.metadata import Metadata
from impl.container.profiles import rules_of
from impl.container.reader import HeaderReader
from impl.container.rules import Header, Rules
from impl.container.stream import Readable, Stream
from impl.container.values import text
from impl.errors import GgufError, InputError
from impl.types import by_name

if TYPE_CHECKING:
    import numpy.typing as npt

# numpy's name for the types that it has; the others are shown as bytes.
_NATIVE = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}


class Tensor:
    """One tensor of an open file.

    ``type`` is ggml's name in capitals, ``ne`` the dimensions as written (fastest first), ``shape`` the same in row-major
    order, ``offset`` counts from the data section's start, ``nbytes`` is the size without padding.
    """

    def __init__(self, info: TensorInfo, index: int, file: File) -> None:
        self.info = info
        self.index = index
        self.name = text(info.name)
        self.type = info.type.name
        self.ne = info.ne
        self.shape = info.ne[::-1]
        self.offset = info.offset
        self.nbytes = info.nbytes
        self._file = file
        self._start = file.data_offset + info.offset

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.type}, shape={self.shape})"

    @property
    def raw(self) -> memoryview:
        """The data's bytes as they stand in the file, as a view.

        Raises:
            GgufError: ``missing-data``, the file ends before them.
            InputError: only the header was read.

        """
        if not self._file.has_data:
            raise InputError(f"the data of tensor {self.name!r} was not read: open the stream with full=True, or give a path")
        size, end = len(self._file.buffer), self._start + self.nbytes
        if self.nbytes and end > size:  # no bytes are there wherever they are said to lie
            present = max(0, size - self._start)
            problem = f"tensor {self.name!r} takes {self.nbytes} bytes, but the file ends {present} bytes on, at {size}"
            raise GgufError("missing-data", problem, field=f"tensors[{self.index}].data", at=self._start)
        return memoryview(self._file.buffer).toreadonly()[self._start : end]

    @property
    def data(self) -> npt.NDArray[Any]:
        """The data as a numpy array: one that shares the file's memory and is read-only, or of a big-endian file a turned copy.

        Of dtype float or int and shape ``shape`` for F32, F16, F64 and I8 to I64; uint8 of shape ``(*shape[:-1], row bytes)``
        for every other type.

        Raises:
            GgufError: ``missing-data``; ``bad-dims`` where numpy cannot make an array of that shape.
            InputError: only the header was read.

        """
        import numpy as np  # noqa: PLC0415 - only here, so that reading a header does not wait for it

        flat = np.frombuffer(self.native, dtype=_NATIVE.get(self.type, "u1"))
        try:
            return flat.reshape(self._array_shape())
        except ValueError as error:
            field = f"tensors[{self.index}].dims[0]"
            raise GgufError("bad-dims", f"shape {self.shape}: {error}", field=field, at=self.info.dims_at) from error

    @property
    def native(self) -> memoryview:
        """The data's bytes in this machine's order: ``raw``, or of a big-endian file a turned copy.

        Raises what ``raw`` raises, and InputError for blocks that gguf-py's table has another size of than ggml.
        """
        if self._file.byteorder == "little":
            return self.raw
        if self.info.type != by_name(self.type):
            sizes = f"{self.info.type.nbytes} bytes to gguf-py, and {by_name(self.type).nbytes} to ggml"
            raise InputError(f"a block of {self.type} has {sizes}: open the file by another profile to have it turned")
        from impl.container.byteswap import byteswap  # noqa: PLC0415 - loads numpy

        return byteswap(self.type, self.raw).data

    def _array_shape(self) -> tuple[int, ...]:
        if self.type in _NATIVE:
            return self.shape
        row = self.info.type.row_bytes(self.shape[-1] if self.shape else 1)
        return (*self.shape[:-1], row)


class File:
    """A GGUF file whose header has been read. The mapping stays as long as this object or a view of its data lives.

    ``has_data`` is False of a stream of which only the header was read: ``buffer`` then ends with it.
    """

    def __init__(self, buffer: Buffer, header: Header, rules: Rules, byteorder: ByteOrder, *, has_data: bool = True) -> None:
        self.buffer = buffer
        self.header = header
        self.rules = rules
        self.byteorder = byteorder
        self.has_data = has_data
        self.version = header.version
        self.alignment = header.alignment
        self.data_offset = header.data_offset

    @cached_property
    def metadata(self) -> Metadata:
        """The key-value pairs by key."""
        return Metadata(self.header.pairs)

    @cached_property
    def tensors(self) -> list[Tensor]:
        """The tensors in directory order."""
        return [Tensor(info, i, self) for i, info in enumerate(self.header.tensors)]

    def check_load(self) -> None:
        """Check that all data is there; by llama.cpp's rules the last tensor's padding included.

        Raises:
            GgufError: ``missing-data``, ``bad-size`` or ``bad-dims``.
            InputError: only the header was read.

        """
        if not self.has_data:
            raise InputError("the data of the stream was not read: open it with full=True, or give a path")
        self.rules.check_load(self.header, len(self.buffer))


Source = str | os.PathLike[str] | bytes | bytearray | memoryview | mmap.mmap | Readable


def open_file(
    source: Source,
    *,
    full: bool = False,
    profile: str = "llama.cpp",
    versions: Collection[int] | None = None,
    byteorder: str | None = None,
) -> File:
    """Open a GGUF file: by path (mapped into memory), or one that is at hand as bytes or as a mapping, or a stream.

    ``full`` also checks that all the data is there; without it only a tensor's ``data`` tells that its bytes are missing. Of a
    stream (all that has ``read(n)``) no more is read than the header takes, from where it stands; with ``full``, the data too.

    ``profile`` says whose rules count: "llama.cpp", "gguf-py" or "spec" (docs/reader-rules.md). ``versions`` are those to take
    in place of the profile's, version 1 among them if given; ``byteorder`` is "little", "big", or "either", told from the version.

    Raises:
        GgufError: the file is refused.
        InputError: the path is no regular file, so that it cannot be mapped: a pipe, a device, a folder. A profile, a version
            or a byte order that is not known. A stream that gives no bytes.
        OSError: the path or the stream cannot be read.

    """
    rules = rules_of(profile, versions, byteorder)
    opened = _open_stream(source, rules, full=full) if _is_stream(source) else _open_buffer(_buffer(source), rules)
    if full:
        opened.check_load()
    return opened


def _is_stream(source: Source) -> TypeGuard[Readable]:
    return hasattr(source, "read") and not isinstance(source, mmap.mmap)


def new_cursor(buffer: Buffer, rules: Rules, *, complete: bool) -> Cursor:
    """Give a cursor at the start of ``buffer``."""
    return Cursor(buffer, complete=complete, max_string=rules.max_string, cuts=rules.cuts_at_end)


def _open_buffer(buffer: Buffer, rules: Rules) -> File:
    reader = HeaderReader(new_cursor(buffer, rules, complete=True), rules)
    return File(buffer, reader.read(), rules, reader.cursor.order)


def _open_stream(source: Readable, rules: Rules, *, full: bool) -> File:
    stream = Stream(source, new_cursor(bytearray(), rules, complete=False))
    reader = HeaderReader(stream.cursor, rules)
    while True:
        try:
            header = reader.read()
            break
        except MoreNeededError as more:
            stream.fill(more.end)
    if full:
        stream.fill(header.data_offset + header.data_size)
    return File(stream.cursor.buffer, header, rules, stream.cursor.order, has_data=full)


def _buffer(source: Any) -> Buffer:
    if isinstance(source, bytes | mmap.mmap):
        return source
    return bytes(source) if isinstance(source, bytearray | memoryview) else _map(Path(source))


def _map(path: Path) -> Buffer:
    if not stat.S_ISREG(path.stat().st_mode):  # looked at first: opening a pipe waits for whoever writes to it
        raise InputError(
            f"{path} is no regular file, which alone can be mapped: copy what it gives to a file, or give the open stream"
        )
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # mmap refuses an empty file
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
