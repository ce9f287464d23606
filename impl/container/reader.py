"""Reads a header, field by field, so that the first fault is the one that the profile's reader stops at.

Source: ``gguf_init_from_reader`` in ggml/src/gguf.cpp; what differs from profile to profile is asked of its rules.
"""

from __future__ import annotations

from typing import NamedTuple

from impl.container.cursor import Cursor, MoreNeededError, show
from impl.container.directory import TensorInfo
from impl.container.rules import (
    ALIGNMENT_KEY,
    DEFAULT_ALIGNMENT,
    MAGIC,
    TENSOR_OVERHEAD,
    VERSIONS,
    Header,
    Pair,
    Rules,
)
from impl.container.scan import read_value
from impl.container.strings import Progress
from impl.errors import GgufError

__all__ = ["ALIGNMENT_KEY", "DEFAULT_ALIGNMENT", "MAGIC", "TENSOR_OVERHEAD", "VERSIONS", "Header", "HeaderReader", "Pair"]


class _Start(NamedTuple):
    version: int
    n_tensors: int
    n_pairs: int


class HeaderReader:
    """Reads the header that ``cursor`` stands before. The data itself may be missing, in part or whole.

    Where only the start of a file is at hand, ``read`` raises MoreNeededError; called again, with more of the file in the cursor's
    buffer, it goes on with the pair or the directory entry at which it stopped.
    """

    def __init__(self, cursor: Cursor, rules: Rules) -> None:
        self.cursor = cursor
        self.rules = rules
        self._start: _Start | None = None
        self._pairs: list[Pair] = []
        self._keys: set[bytes] = set(rules.reserved_keys)
        self._alignment: int | None = None
        self._tensors: list[TensorInfo] = []
        self._names: set[bytes] = set()
        self._progress = Progress()
        self._mark = 0

    def read(self) -> Header:
        """Read everything before the data.

        Raises:
            GgufError: the first fault.
            MoreNeededError: the cursor's buffer holds only the start of the file, and not all that is needed.

        """
        try:
            return self._read()
        except MoreNeededError:
            self.cursor.pos = self._mark
            raise

    def _read(self) -> Header:
        cursor = self.cursor
        if self._start is None:
            self._start = self._read_start()
            self._mark = cursor.pos
        version, n_tensors, n_pairs = self._start
        while len(self._pairs) < n_pairs:
            self._read_pair()
            self._mark = cursor.pos
        if self.rules.checks_as_it_reads:
            self._judge_alignment()
        while len(self._tensors) < n_tensors:
            info = self.rules.read_entry(cursor, len(self._tensors), self._names)
            self._tensors.append(info)
            self._names.add(info.name)
            self._mark = cursor.pos
        return self._finish(version, self._judge_alignment())

    def _finish(self, version: int, alignment: int) -> Header:
        rules, cursor = self.rules, self.cursor
        data_offset = rules.data_offset(cursor, len(self._tensors), alignment)
        tensors = rules.settle(self._tensors, data_offset, cursor.end if cursor.complete else None)
        data_size = rules.check_offsets(tensors, alignment)
        rules.check_values(self._pairs)
        return Header(version, alignment, data_offset, data_size, self._pairs, tensors)

    def _judge_alignment(self) -> int:
        if self._alignment is None:
            self._alignment = self.rules.alignment(self._pairs)
        return self._alignment

    def _read_start(self) -> _Start:
        cursor = self.cursor
        cursor.set_layout("big" if self.rules.byteorder == "big" else "little", 8)
        magic = cursor.take(4, "magic")
        if magic != MAGIC:
            raise GgufError("bad-magic", f"the file starts with {show(magic)}, not with 'GGUF'", field="magic", at=0)
        version = self._read_version()
        cursor.set_layout(cursor.order, 4 if version == 1 else 8)
        n_tensors = self._read_count("n_tensors", self.rules.max_tensors)
        return _Start(version, n_tensors, self._read_count("n_kv", self.rules.max_pairs))

    def _read_version(self) -> int:
        cursor, rules = self.cursor, self.rules
        at = cursor.pos
        version = cursor.u32("version")
        if rules.byteorder == "either" and version & 0xFFFF == 0:
            cursor.set_layout("big", 8)
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version in rules.versions:
            return version
        if version and version & 0xFFFF == 0 and rules.byteorder != "either":
            problem = f"version {version} (0x{version:08x}) reads as a small number in the other byte order"
            raise GgufError("byte-order", problem, field="version", at=at)
        known = " and ".join(map(str, sorted(rules.versions)))
        raise GgufError("bad-version", f"version {version}: {rules.who} reads {known}", field="version", at=at)

    def _read_count(self, field: str, limit: int) -> int:
        at = self.cursor.pos
        count = self.cursor.word(field)
        if count > limit:
            shown = f"{count}, or {count - 2**64} as {self.rules.who} reads it," if count >= 2**63 else str(count)
            raise GgufError("bad-count", f"count {shown} is out of the range 0 to {limit}", field=field, at=at)
        return count

    def _read_pair(self) -> None:
        cursor, field = self.cursor, f"kv[{len(self._pairs)}]"
        key = cursor.string(f"{field}.key")
        type_at = cursor.pos
        if self.rules.checks_as_it_reads:
            self._check_key(key, field, type_at - len(key))
        value = read_value(cursor, field, self.rules, self._progress)
        if not self.rules.checks_as_it_reads:
            self._check_key(key, field, type_at - len(key))
        self._keys.add(key)
        self._pairs.append(Pair(key, value, type_at, type_at + 4))

    def _check_key(self, key: bytes, field: str, at: int) -> None:
        if problem := self.rules.key_problem(key):
            raise GgufError("bad-key", problem, field=f"{field}.key", at=at)
        if key in self._keys:
            raise GgufError("duplicate-key", f"an earlier pair has the key {show(key)} too", field=f"{field}.key", at=at)
