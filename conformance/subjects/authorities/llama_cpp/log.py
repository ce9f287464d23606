"""Takes down what the library logs, since its messages are all that it says about why it refuses a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conformance.subjects.authorities.llama_cpp.library import LOG_ERROR, LogCallback, libraries

_Sink = Callable[[int, bytes], None]
_sinks: list[_Sink] = []


def _distribute(level: int, text: bytes | None, _data: int | None) -> None:
    for sink in _sinks:
        sink(level, text or b"")


_callback = LogCallback(_distribute)  # the library keeps its address, so it must live as long as the process


@contextmanager
def logged_errors(*, echo: bool = True) -> Iterator[list[str]]:
    """Give a list that fills with the error messages logged within the block, in order.

    ``echo`` passes what the library logs on to stderr, where it writes by itself.
    """
    errors: list[str] = []

    def sink(level: int, text: bytes) -> None:
        if echo:
            os.write(2, text)
        if level == LOG_ERROR:
            errors.append(text.decode("utf-8", "replace").rstrip("\n"))

    libraries().base.ggml_log_set(_callback, None)
    _sinks.append(sink)
    try:
        yield errors
    finally:
        _sinks.remove(sink)
