"""Writes GGUF files, byte for byte as ggml's ``gguf_write_to_file`` does (ggml/src/gguf.cpp)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, BinaryIO

from impl.container.file import File, open_file
from impl.container.layout import ByteOrder, Entry, Layout, lay_out
from impl.container.making import encoded, plain, value
from impl.container.metadata import Metadata as ReadMetadata
from impl.container.new_tensor import Tensors, described, flat, listed, pieces
from impl.container.replacing import replacing
from impl.container.values import Number, Numbers, String, Strings, Value, type_name
from impl.errors import InputError

Path = str | os.PathLike[str]
Metadata = Mapping[str, object] | Iterable[tuple[str | bytes, object]]

# Bytes of padding written in one go, and of data turned to the other byte order.
_PIECE = 1 << 20


def write(
    path: Path,
    metadata: Metadata,
    tensors: Tensors = (),
    *,
    version: int = 3,
    byteorder: ByteOrder = "little",
    pad_empty: bool = True,
) -> None:
    """Write a GGUF file: whole, or not at all, so that what stood at ``path`` before stays if anything fails.

    ``metadata`` are keys and values in the order of the file, a mapping or pairs; or another file's, ``file.metadata``. A value
    is one of ``impl.value("u32", 7)``, one out of another file (``file.metadata.value(key)``), or one whose type is plain:
    text, a bool, a list of these, numbers of numpy. ``general.alignment`` among them sets the alignment, which is 32 otherwise.

    ``tensors`` are ``impl.NewTensor``, or an open file's, or a mapping of names to arrays. Data is in this machine's byte order and
    is not held: an iterable is written piece by piece. With ``byteorder`` "big" all numbers are turned, those within blocks too.

    The metadata are padded to the alignment, and the data of every tensor, the last one's too. ``pad_empty`` False leaves
    out the padding of a file without tensors. Ones at the end of a shape are not written, a bool is written as 0 or 1.

    Raises:
        DescriptionError: ggml's reader would refuse the file: a key twice, a name of 64 bytes, a row of no whole blocks, ...
        InputError: a value that its type does not hold, an array of another type than the tensor's, data too short or too long.
        UnsupportedError: ggml has no such type.
        OSError: the file cannot be written.

    """
    new = listed(tensors)
    with Writer(path, metadata, new, version=version, byteorder=byteorder, pad_empty=pad_empty) as writer:
        for tensor in new:
            for piece in pieces(tensor.data, f"the data of tensor {tensor.name!r}"):
                writer.add(piece)
            writer.end_tensor()


class Writer:
    """Writes a file whose data comes later: the header first, then each tensor's bytes, in order.

    A context manager: at its end the file takes the place of what stood at ``path``; after an exception nothing has changed.
    Takes what ``impl.write`` takes and raises what it raises; the ``data`` of ``tensors`` is not looked at::

        with impl.Writer(path, metadata, [impl.NewTensor("t", None, type="F32", shape=(rows, cols))]) as writer:
            for row in rows:
                writer.write(row)
    """

    def __init__(
        self,
        path: Path,
        metadata: Metadata,
        tensors: Tensors,
        *,
        version: int = 3,
        byteorder: ByteOrder = "little",
        pad_empty: bool = True,
    ) -> None:
        if byteorder not in ("little", "big"):
            raise InputError(f"byteorder must be 'little' or 'big', not {byteorder!r}")
        directory = [described(tensor) for tensor in listed(tensors)]
        self.layout: Layout = lay_out(pairs_of(metadata), directory, version=version, byteorder=byteorder, pad_empty=pad_empty)
        self._path = path
        self._swaps = byteorder == "big"
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self._index = 0
        self._written = 0
        self._left_over = b""

    def __enter__(self) -> Writer:
        with ExitStack() as stack:
            self._file = stack.enter_context(replacing(self._path))
            self._file.write(self.layout.head)
            self._pad(self.layout.data_offset - len(self.layout.head))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # What is missing at the end is an error of the block itself, so that nothing is replaced.
        try:
            if error is None:
                self._check_complete()
        except InputError as missing:
            self._stack.__exit__(type(missing), missing, missing.__traceback__)
            raise
        self._stack.__exit__(kind, error, trace)

    def write(self, data: Any) -> None:
        """Write the next bytes, of the first tensor that lacks some. Raises InputError where they are more than it lacks."""
        view = flat(data, "data")
        if len(view):
            self._skip_full()
            self.add(view)

    def add(self, view: memoryview) -> None:
        """Write the next bytes of the tensor that is due, up to ``end_tensor``. Raises InputError where they are too many."""
        entry = self._due()
        if self._written + len(view) > entry.nbytes:
            given = self._written + len(view)
            raise InputError(_wrong_size(entry, given))
        self._written += len(view)
        if self._swaps:
            self._write_swapped(view)
        else:
            self._out.write(view)

    def end_tensor(self) -> None:
        """Say that the tensor that is due has all its bytes. Raises InputError where it has not."""
        entry = self._due()
        if self._written != entry.nbytes:
            raise InputError(_wrong_size(entry, self._written))
        self._pad(-entry.nbytes % self.layout.alignment)
        self._index += 1
        self._written = 0

    @property
    def _out(self) -> BinaryIO:
        if self._file is None:
            raise InputError("the file is not open: use the writer as a context manager, with impl.Writer(...) as writer")
        return self._file

    def _due(self) -> Entry:
        if self._index >= len(self.layout.entries):
            raise InputError(f"data beyond the last of {len(self.layout.entries)} tensors: describe all of them before")
        return self.layout.entries[self._index]

    def _skip_full(self) -> None:
        """Go on to the next tensor where the one before has all its bytes, as those without elements have."""
        while self._index < len(self.layout.entries) and self._written == self.layout.entries[self._index].nbytes:
            self.end_tensor()

    def _check_complete(self) -> None:
        self._skip_full()
        if self._index < len(self.layout.entries):
            self.end_tensor()

    def _write_swapped(self, view: memoryview) -> None:
        """Turn whole blocks to big-endian; what is left of a block waits for the rest."""
        from impl.container.byteswap import byteswap  # noqa: PLC0415 - loads numpy

        kind = self.layout.entries[self._index].type
        for start in range(0, len(view), _PIECE):
            piece = self._left_over + bytes(view[start : start + _PIECE])
            whole = len(piece) // kind.nbytes * kind.nbytes
            self._out.write(byteswap(kind.name, piece[:whole]).data)
            self._left_over = piece[whole:]

    def _pad(self, size: int) -> None:
        for start in range(0, size, _PIECE):
            self._out.write(bytes(min(_PIECE, size - start)))


def rewrite(
    source: Path | File,
    out: Path | None = None,
    changes: Mapping[str, object] | None = None,
    *,
    byteorder: ByteOrder | None = None,
    version: int | None = None,
) -> None:
    """Write a file again with other metadata; the data moves as far as it must, and is not held.

    ``changes`` maps keys to new values; None takes a key out. A key that is there keeps its place, and a number or text of
    Python its type; others come last. ``out`` left out, the file itself is replaced. Version and byte order, where they are not
    given, and whether a file without tensors is padded stay, so that without changes a file that ggml wrote comes out as it
    was. Version 1 is not written: give another.

    Raises:
        GgufError: the file to read is refused, or its data is missing.
        DescriptionError, InputError, OSError: as ``impl.write``; a key to take out that is not there, too.

    """
    file = source if isinstance(source, File) else open_file(source, versions=(1, 2, 3), byteorder="either")
    target = out if out is not None else source
    if isinstance(target, File):
        raise InputError("out must be a path where an open file is written again")
    pairs = _changed(file, changes or {})
    padded = bool(file.tensors) or _is_padded(file)
    write(
        target,
        pairs,
        file.tensors,
        version=file.version if version is None else version,
        byteorder=file.byteorder if byteorder is None else byteorder,
        pad_empty=padded,
    )


def _is_padded(file: File) -> bool:
    return len(file.buffer) >= -(-file.data_offset // file.alignment) * file.alignment


def _changed(file: File, changes: Mapping[str, object]) -> list[tuple[str | bytes, object]]:
    left = {encoded(key, "a key"): content for key, content in changes.items()}
    pairs: list[tuple[str | bytes, object]] = []
    for key, before, *_ in file.header.pairs:
        after = left.pop(key, before)
        if after is not None:
            pairs.append((key, _of_the_same_type(before, after)))
    for key, content in left.items():
        if content is None:
            raise InputError(f"the key {_named(key)} is to be taken out, but is not there: look at file.metadata")
        pairs.append((key, content))
    return pairs


def _of_the_same_type(before: Value, after: object) -> object:
    """Give a plain Python number or list the type that the value before it had; what has a type keeps it."""
    if isinstance(after, Number | String | Numbers | Strings):
        return after
    items = before.items.name if isinstance(before, Numbers | Strings) else None
    if isinstance(after, bool | int | float) and items is None:
        return value(type_name(before), after)
    if isinstance(after, list | tuple) and items is not None:
        return value(items, after)
    return after


def pairs_of(metadata: Metadata) -> list[tuple[bytes, Value]]:
    """Give metadata as pairs of bytes and values. Raises InputError, naming the key."""
    if isinstance(metadata, ReadMetadata):
        return [(pair.key, pair.value) for pair in metadata.pairs]
    pairs: list[tuple[bytes, Value]] = []
    for key, content in _items(metadata):
        raw = encoded(key, f"the key of kv[{len(pairs)}]")
        try:
            pairs.append((raw, plain(content)))
        except InputError as error:
            raise InputError(f"kv[{len(pairs)}] {_named(raw)}: {error}") from None
    return pairs


def _items(metadata: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(metadata, Mapping):
        yield from metadata.items()
        return
    wanted = "metadata must be a mapping, or pairs of a key and a value"
    if not isinstance(metadata, Iterable):
        raise InputError(f"{wanted}, not {metadata!r}")
    for index, pair in enumerate(metadata):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError(f"{wanted}, not {pair!r} as kv[{index}]")
        yield pair[0], pair[1]


def _wrong_size(entry: Entry, given: int) -> str:
    return f"tensor {_named(entry.name)} takes {entry.nbytes} bytes, but {given} were given: look at shape and type"


def _named(raw: bytes) -> str:
    return repr(raw.decode("utf-8", "backslashreplace"))
