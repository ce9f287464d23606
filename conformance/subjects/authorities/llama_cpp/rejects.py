"""Why ggml's reader refused a file: from the first message that it logs, and from the bytes that it asked for.

Source: the error sites of ``gguf_init_from_reader`` and ``gguf_reader`` in ggml/src/gguf.cpp. The library has no error codes,
and for a field that the file is too short for it has no message but the name of the section. What it read last tells more,
so a refused file is read once more through ``gguf_init_from_callback``, which shows each read.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import deque
from typing import NamedTuple

from conformance.adapter import Reject
from conformance.subjects.authorities.llama_cpp.library import InitParams, ReadCallback, libraries
from conformance.subjects.authorities.llama_cpp.log import logged_errors

# Message (after the function's name) -> class. The text of a key or a name stands in some of them, so each is matched whole.
_MESSAGES: tuple[tuple[str, str], ...] = (
    (r"failed to read magic", "truncated"),
    (r"invalid magic characters: .*", "bad-magic"),
    (r"bad GGUF version: \d+", "bad-version"),
    (r"failed to load model: this GGUF file version \d+ is extremely large, .*", "byte-order"),
    (r"GGUFv1 is no longer supported, .*", "bad-version"),
    (r"this GGUF file is version \d+ but this software only supports up to version \d+", "bad-version"),
    (r"number of (tensors|key value pairs) is -?\d+ but must be in .*", "bad-count"),
    (r"string length \d+ exceeds (maximum \d+|remaining file size \d+ bytes)", "bad-length"),
    (r"encountered (length_error|bad_alloc error) while reading (key|tensor name) \d+", "bad-length"),
    (r"encountered (length_error|bad_alloc error) while reading value for key '.*'", "bad-length"),
    (r"key \d+ is empty", "bad-key"),
    (r"duplicate key '.*' for KV pair \d+", "duplicate-key"),
    (r"key '.*' has invalid GGUF type -?\d+", "bad-value-type"),
    (r"key 'general\.alignment' must be of type u32 but is \w+", "bad-alignment"),
    (r"alignment \d+ is not a power of 2", "bad-alignment"),
    (r"tensor name \d+ is too long: \d+ >= \d+", "bad-name"),
    (r"duplicate tensor name '.*' for tensor \d+", "duplicate-tensor"),
    (r"tensor '.*' has invalid number of dimensions: \d+ > \d+", "bad-dims"),
    (r"tensor '.*' dimension \d+ has invalid number of elements: -\d+ < 0", "bad-dims"),
    (r"incorrect shape for a tensor '.*' may cause overflow errors: .*", "bad-dims"),
    (r"tensor '.*' has invalid ggml type -?\d+\. should be in .*", "bad-tensor-type"),
    (r"tensor '.*' of type \d+ \(.*\) has -?\d+ elements per row, not a multiple of block size \(0\)", "bad-tensor-type"),
    (r"tensor '.*' of type \d+ \(.*\) has -?\d+ elements per row, not a multiple of block size \(\d+\)", "bad-block"),
    (r"tensor '.*' with shape \(.*\) has a size in bytes > \d+", "bad-size"),
    (r"failed to seek to beginning of data section", "truncated"),
    (r"tensor '.*' has offset \d+, expected \d+", "bad-offset"),
    (r"tensor '.*' size \d+ overflows after padding \(alignment \d+\)", "bad-size"),
    (r"tensor '.*' size overflow, cannot accumulate size .*", "bad-size"),
    (r"memory size overflow while allocating ggml context", "bad-size"),
    (r"failed to read tensor data binary blob", "missing-data"),
    # As ggml 0.20 says it.
    (r"duplicate key '.*' for tensors \d+ and \d+ ?", "duplicate-key"),
    (r"duplicate tensor name '.*' for tensors \d+ and \d+", "duplicate-tensor"),
    (r"total number of elements in tensor '.*' with shape \(.*\) is >= \d+", "bad-dims"),
)
_CLASSES = tuple((re.compile(pattern, re.DOTALL), name) for pattern, name in _MESSAGES)
_SECTION = re.compile(r"failed to read (header|key-value pairs|tensor info)")
_TYPE_OF_TENSOR = re.compile(r"tensor '.*' (?:has invalid ggml type (-?\d+)\.|of type (\d+) \().*", re.DOTALL)

# Classes whose message is about the field that was read last.
_ABOUT_LAST_FIELD = {
    "bad-version",
    "byte-order",
    "bad-count",
    "bad-length",
    "bad-key",
    "duplicate-key",
    "bad-value-type",
    "bad-name",
    "duplicate-tensor",
    "bad-dims",
    "bad-tensor-type",
    "bad-block",
}
ARRAY = 9  # GGUF_TYPE_ARRAY
# Reads from a key's length to its array's length.
_HEAD = 5


class Read(NamedTuple):
    """Bytes that the library asked for and got."""

    offset: int
    data: bytes

    @property
    def number(self) -> int:
        """The bytes as a signed integer."""
        return int.from_bytes(self.data, "little", signed=True)


def refusal(path: str, messages: list[str]) -> Reject:
    """Give the Reject for a file that the library refused with these error messages.

    Raises OSError if the file cannot be opened, which to the library is one more refusal, and RuntimeError if it refused
    without a word.
    """
    if not messages:
        raise RuntimeError(f"the library refused {path} and logged no error")
    message = messages[0].partition(": ")[2]
    reads = _last_reads(path)
    reject_class, at = _judge(message, reads)
    return Reject(reject_class, message, at)


def _judge(message: str, reads: list[Read]) -> tuple[str, int | None]:
    """Give the class, and the offset of the field that is to blame where that is the last one read."""
    stopped = reads[-1].offset + len(reads[-1].data) if reads else 0
    if section := _SECTION.fullmatch(message):
        refused = section[1] == "key-value pairs" and _read_array_head(reads) and reads[-1].number != 0
        return ("bad-length", reads[-1].offset) if refused else ("truncated", stopped)
    if _speaks_of_unread_type(message, reads):
        return "truncated", stopped
    reject_class = classify(message)
    if reject_class == "truncated":
        return reject_class, stopped
    if reject_class not in _ABOUT_LAST_FIELD:
        return reject_class, None
    blamed = reads[-2] if reject_class == "bad-value-type" and _read_array_head(reads) else reads[-1]
    return reject_class, blamed.offset


def classify(message: str) -> str:
    """Give the class of a message, "other" for one that the table does not know."""
    return next((name for pattern, name in _CLASSES if pattern.fullmatch(message)), "other")


def _read_array_head(reads: list[Read]) -> bool:
    """Tell whether the last reads were a key's length, the key, an array's value type, element type and length.

    A library that stops there without a word refuses the length: it takes none beyond 2^30 or beyond the bytes left. But it
    takes a length of 0, and if it stops after that the file ended. The key is looked at because a key of four bytes, a type
    and a value of eight are reads of the same sizes.
    """
    if len(reads) < _HEAD or reads[-3].number != ARRAY:
        return False
    length, key, *head = reads
    return [len(length.data), *(len(read.data) for read in head)] == [8, 4, 4, 8] and length.number == len(key.data)


def _speaks_of_unread_type(message: str, reads: list[Read]) -> bool:
    """Tell whether a message about a tensor's type names one that is not in the file.

    Where the file ends before the type, the library goes on to judge a variable that it has not set. If the type was read,
    it was the last read, and the message names that number.
    """
    named = _TYPE_OF_TENSOR.fullmatch(message)
    return named is not None and not (len(reads[-1].data) == 4 and reads[-1].number == int(named[1] or named[2]))


def _last_reads(path: str) -> list[Read]:
    """Let the library read the file again, header only, and give its last reads, as many as an array's head takes, at most."""
    reads: deque[Read] = deque(maxlen=_HEAD)
    with open(path, "rb") as file:  # noqa: PTH123 - its descriptor is what is needed
        descriptor = file.fileno()

        def read(_data: int | None, output: int, offset: int, length: int) -> int:
            data = os.pread(descriptor, length, offset)
            ctypes.memmove(output, data, len(data))
            reads.append(Read(offset, data))
            return len(data)

        size = os.fstat(descriptor).st_size
        with logged_errors(echo=False):
            gguf = libraries().base.gguf_init_from_callback(ReadCallback(read), None, 0, size, InitParams(False, None))
        libraries().base.gguf_free(gguf)
    return list(reads)
