"""An open file: its header, and its tensors' data as views of the mapping, not copies."""

from __future__ import annotations

import mmap
import os
import stat
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from impl.container.cursor import Buffer
from impl.container.directory import TensorInfo
from impl.container.metadata import Metadata
from impl.container.reader import check_load, read_header
from impl.container.values import text
from impl.errors import GgufError, InputError

if TYPE_CHECKING:
    import numpy.typing as npt

# numpy's name for the types that it has; the others are shown as bytes.
_NATIVE = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}


class Tensor:
    """One tensor of an open file.

    ``type`` is ggml's name in capitals, ``ne`` the dimensions as written (fastest first), ``shape`` the same in row-major
    order, ``offset`` counts from the data section's start, ``nbytes`` is the size without padding.
    """

    def __init__(self, info: TensorInfo, index: int, buffer: Buffer, data_offset: int) -> None:
        self.info = info
        self.index = index
        self.name = text(info.name)
        self.type = info.type.name
        self.ne = info.ne
        self.shape = info.ne[::-1]
        self.offset = info.offset
        self.nbytes = info.nbytes
        self._buffer = buffer
        self._start = data_offset + info.offset

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.type}, shape={self.shape})"

    @property
    def raw(self) -> memoryview:
        """The data's bytes, as a view.

        Raises:
            GgufError: ``missing-data``, the file ends before them.

        """
        size, end = len(self._buffer), self._start + self.nbytes
        if end > size:
            present = max(0, size - self._start)
            problem = f"tensor {self.name!r} takes {self.nbytes} bytes, but the file ends {present} bytes on, at {size}"
            raise GgufError("missing-data", problem, field=f"tensors[{self.index}].data", at=self._start)
        return memoryview(self._buffer)[self._start : end]

    @property
    def data(self) -> npt.NDArray[Any]:
        """The data as a read-only numpy array that shares the file's memory.

        Of dtype float or int and shape ``shape`` for F32, F16, F64 and I8 to I64; uint8 of shape ``(*shape[:-1], row bytes)``
        for every other type.

        Raises:
            GgufError: ``missing-data``; ``bad-dims`` where numpy cannot make an array of that shape.

        """
        import numpy as np  # noqa: PLC0415 - only here, so that reading a header does not wait for it

        flat = np.frombuffer(self.raw, dtype=_NATIVE.get(self.type, "u1"))
        try:
            return flat.reshape(self._array_shape())
        except ValueError as error:
            field = f"tensors[{self.index}].dims[0]"
            raise GgufError("bad-dims", f"shape {self.shape}: {error}", field=field, at=self.info.dims_at) from error

    def _array_shape(self) -> tuple[int, ...]:
        if self.type in _NATIVE:
            return self.shape
        row = self.info.type.row_bytes(self.shape[-1] if self.shape else 1)
        return (*self.shape[:-1], row)


class File:
    """A GGUF file whose header has been read. The mapping stays as long as this object or a view of its data lives."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.header = read_header(buffer)
        self.version = self.header.version
        self.alignment = self.header.alignment
        self.data_offset = self.header.data_offset

    @cached_property
    def metadata(self) -> Metadata:
        """The key-value pairs by key."""
        return Metadata(self.header.pairs)

    @cached_property
    def tensors(self) -> list[Tensor]:
        """The tensors in directory order."""
        return [Tensor(info, i, self.buffer, self.data_offset) for i, info in enumerate(self.header.tensors)]

    def check_load(self) -> None:
        """Check that all data is there, the last tensor's padding included, as llama.cpp does before it loads a file.

        Raises:
            GgufError: ``missing-data``, ``bad-size`` or ``bad-dims``.

        """
        check_load(self.header, len(self.buffer))


def open_file(source: str | os.PathLike[str] | bytes | bytearray | memoryview, *, full: bool = False) -> File:
    """Open a GGUF file by path (mapped into memory), or one that is at hand as bytes.

    ``full`` also checks that all the data is there; without it only a tensor's ``data`` tells that its bytes are missing.

    Raises:
        GgufError: the file is refused.
        InputError: the path is no regular file, so that it cannot be mapped: a pipe, a device, a folder.
        OSError: the path cannot be read.

    """
    opened = File(bytes(source) if isinstance(source, bytes | bytearray | memoryview) else _map(Path(source)))
    if full:
        opened.check_load()
    return opened


def _map(path: Path) -> Buffer:
    if not stat.S_ISREG(path.stat().st_mode):  # looked at first: opening a pipe waits for whoever writes to it
        raise InputError(f"{path} is no regular file, which alone can be mapped: copy what it gives to a file, or give its bytes")
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # mmap refuses an empty file
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
