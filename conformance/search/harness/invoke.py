"""The command in this process: its words in, its exit code and what it printed out. An exception that gets out is the finding."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from conformance.cli import TRACEBACK_VARIABLE, main
from conformance.search.harness.broken import BrokenRule, require

# `gguf-conformance --help`; 130 is that of an interrupted run, and of its report.
DOCUMENTED = (0, 1, 2, 3, 4, 130)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def invoke(*words: str) -> Ended:
    """Run ``gguf-conformance WORDS``, with streams as a shell in a UTF-8 locale gives them.

    Raises BrokenRule where an exception gets out, where the exit code is none that is documented, and where a refusal says nothing.
    """
    out, err = _stream("strict"), _stream("backslashreplace")
    with _streams(out, err):
        code = _exit_code(words)
    ended = Ended(code, _text(out), _text(err))
    require(code in DOCUMENTED, f"exit code {code} is none of the documented ones")
    require("Traceback (most recent call last)" not in ended.err, "a traceback on stderr")
    require("internal error" not in ended.err, f"internal error: {ended.err.strip()[:200]}")
    require(code != 2 or ended.err.strip(), f"exit code {code}, and nothing on stderr")
    return ended


def _exit_code(words: tuple[str, ...]) -> int:
    try:
        main.main(args=list(words), prog_name="gguf-conformance")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except Exception as problem:
        raise BrokenRule(f"traceback: {type(problem).__name__}: {str(problem)[:300]}") from problem
    return 0


def _stream(errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, newline="", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)  # noqa: S101 - as _stream made it
    return raw.getvalue().decode("utf-8", "backslashreplace")


@contextmanager
def _streams(out: io.TextIOWrapper, err: io.TextIOWrapper) -> Iterator[None]:
    """Put streams in the place of the process's own, and let a fault of ours come out as the exception that it is."""
    before = sys.stdout, sys.stderr, os.environ.get(TRACEBACK_VARIABLE)
    sys.stdout, sys.stderr, os.environ[TRACEBACK_VARIABLE] = out, err, "1"
    try:
        yield
    finally:
        sys.stdout, sys.stderr, variable = before
        os.environ.pop(TRACEBACK_VARIABLE)
        if variable is not None:
            os.environ[TRACEBACK_VARIABLE] = variable
