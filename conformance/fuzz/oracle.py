"""What a reader owes to any bytes: a clean refusal or a whole answer, in time and memory bounded by the bytes."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from impl.container.describe import describe
from impl.container.file import File, Tensor, open_file
from impl.container.prefix import Prefix
from impl.container.profiles import PROFILES
from impl.errors import GgufError

# Python objects for each byte read: an array of u8 becomes a list of ints, then of strings, then a JSON text.
# The base is room for a chunk of an array's strings, which is there before the first of them is read.
MEMORY_BASE = 2**20
MEMORY_A_BYTE = 256
# CPU seconds. A reader whose time grows with the square of the bytes, or with a count, is far beyond.
TIME_BASE = 1.0
TIME_A_BYTE = 1e-4

ACCEPTED = "accepted"


class BrokenRuleError(AssertionError):
    """The reader did what no bytes may bring it to."""


def check(data: bytes) -> str:
    """Read ``data`` as a file by each profile; give ``accepted`` or the class of the refusal by llama.cpp's rules.

    Raises BrokenRuleError for an answer that is no answer, takes too much or depends on how the bytes come in; whatever else
    the reader raises passes through.
    """
    said = {profile: _bounded(data, profile) for profile in PROFILES}
    _check_pieces(data, PROFILES[len(data) % len(PROFILES)])
    return said["llama.cpp"]


def _bounded(data: bytes, profile: str) -> str:
    """Read it; where that took too much, read it once more: what is loaded or cached once is no file's fault."""
    said, excess = _measured(data, profile)
    if excess:
        said, excess = _measured(data, profile)
    if excess:
        raise BrokenRuleError(f"{profile}: {excess}")
    return said


def _measured(data: bytes, profile: str) -> tuple[str, str]:
    """Give what a reading says, and what is out of proportion in it."""
    with _traced():
        before = tracemalloc.get_traced_memory()[0]
        started = time.process_time()
        said = _read(data, profile)
        taken = time.process_time() - started
        peak = tracemalloc.get_traced_memory()[1] - before
    if peak > (allowed := MEMORY_BASE + MEMORY_A_BYTE * len(data)):
        return said, f"{peak} bytes of memory for a file of {len(data)}; {allowed} are in proportion"
    if taken > (limit := TIME_BASE + TIME_A_BYTE * len(data)):
        return said, f"{taken:.1f} s for a file of {len(data)} bytes; {limit:.1f} s are in proportion"
    return said, ""


@contextmanager
def _traced() -> Iterator[None]:
    """Trace memory from here on. Who checks many files starts tracing once: each start and stop leaves a kilobyte behind."""
    already = tracemalloc.is_tracing()
    if already:
        tracemalloc.reset_peak()
    else:
        tracemalloc.start()
    try:
        yield
    finally:
        if not already:
            tracemalloc.stop()


def _read(data: bytes, profile: str) -> str:
    """Read the header, each value, and each tensor's data."""
    try:
        opened = open_file(data, profile=profile)
    except GgufError as error:
        return _refusal(error)
    json.dumps(describe(opened.header))
    for key in opened.metadata:
        opened.metadata[key]
        opened.metadata.type(key)
        opened.metadata.items_type(key)
    whole = _loads(opened)
    for tensor in opened.tensors:
        _check_tensor(tensor, whole=whole)
    return ACCEPTED


def _loads(opened: File) -> bool:
    try:
        opened.check_load()
    except GgufError as error:
        _refusal(error)
        return False
    return True


def _check_tensor(tensor: Tensor, *, whole: bool) -> None:
    """Read a tensor's data; of a file whose data was found to be all there, none may be missing.

    A shape with a 0 in it may still be one that numpy cannot make an array of: then there are no bytes to be had either.
    """
    try:
        raw = tensor.raw
        array = tensor.data
    except GgufError as error:
        shapeless = _refusal(error) == "bad-dims" and tensor.nbytes == 0
        if whole and not shapeless:
            raise BrokenRuleError(f"{tensor!r} of a file that loads: {error}") from error
        return
    if raw.nbytes != tensor.nbytes or array.nbytes != tensor.nbytes:
        raise BrokenRuleError(f"{tensor!r} says {tensor.nbytes} bytes, gives {raw.nbytes}, and an array of {array.nbytes}")


def _refusal(error: GgufError) -> str:
    """Give the class, once the error says all that an error must say."""
    if not (error.reject_class and error.problem and error.field and error.at >= 0 and error.hint and str(error)):
        raise BrokenRuleError(f"an error that says too little: {error!r}, field {error.field!r}, at {error.at}") from error
    return error.reject_class


def _check_pieces(data: bytes, profile: str) -> None:
    """Require the same answer of a file at hand, of a stream, and of one that comes in pieces.

    gguf-py opens a file with its data or not at all; of a header that comes alone nobody can say that the data are missing.
    """
    wanted = _answer(lambda: open_file(data, profile=profile))
    if profile == "gguf-py" and wanted.startswith("missing-data"):
        return
    for way, found in (
        ("as a stream", _answer(lambda: open_file(io.BytesIO(data), profile=profile))),
        ("in pieces", _answer(lambda: _fed(data, profile))),
    ):
        if found != wanted:
            raise BrokenRuleError(f"{profile}: {way} {found}, at once {wanted}")


def _fed(data: bytes, profile: str) -> File:
    prefix, size = Prefix(profile=profile), 1 + len(data) % 13
    for start in range(0, len(data), size):
        if prefix.file is not None:
            break
        prefix.feed(data[start : start + size])
    return prefix.finish()


def _answer(read: Callable[[], File]) -> str:
    """Give the described header, or class, field and place of the refusal."""
    try:
        return json.dumps(describe(read().header))
    except GgufError as error:
        return f"{error.reject_class} {error.field} {error.at}"
