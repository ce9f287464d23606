"""``load`` and ``tensor``: the file with its data, in a ggml context as ``gguf_init_from_file`` fills it."""

from __future__ import annotations

import ctypes
from pathlib import Path

from conformance.adapter import Header, Reject
from conformance.subjects.authorities.answers import FileKey, file_key
from conformance.subjects.authorities.llama_cpp.library import libraries
from conformance.subjects.authorities.llama_cpp.reader import describe, opened
from conformance.subjects.protocol import LoadRequest, TensorRequest


class _Loaded:
    """One loaded file: its header, and the ggml context that holds the data."""

    def __init__(self, path: str) -> None:
        self.key: FileKey | None = file_key(path)
        context = ctypes.c_void_p()
        with opened(path, context) as gguf:
            self.header = describe(gguf)
        self._context = context

    def tensor(self, index: int) -> bytes:
        """Give the bytes of a tensor, without padding."""
        base = libraries().base
        address = base.ggml_get_first_tensor(self._context)  # the blob of all data; the tensors follow in order
        for _ in range(index + 1):
            address = base.ggml_get_next_tensor(self._context, address)
        return ctypes.string_at(base.ggml_get_data(address), int(self.header.tensors[index].nbytes or 0))

    def free(self) -> None:
        libraries().base.ggml_free(self._context)


class Loader:
    """Loads files and keeps the last one, so that asking for each tensor in turn does not read it each time."""

    def __init__(self) -> None:
        self._last: _Loaded | None = None

    def load(self, request: LoadRequest) -> Header:
        """Read the whole file, always anew."""
        return self._open(request.path).header

    def tensor(self, request: TensorRequest) -> None:
        """Write the bytes of one tensor."""
        last = self._last
        unchanged = last is not None and last.key is not None and last.key == file_key(request.path)
        loaded = last if last is not None and unchanged else self._open(request.path)
        count = len(loaded.header.tensors)
        if not 0 <= request.index < count:
            raise Reject("bad-input", f"tensor {request.index} of {count}")
        Path(request.out).write_bytes(loaded.tensor(request.index))

    def _open(self, path: str) -> _Loaded:
        if self._last is not None:
            self._last.free()
            self._last = None
        self._last = _Loaded(path)
        return self._last
