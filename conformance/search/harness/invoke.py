"""The command in this process: its words in, its exit code and what it printed out. An exception that gets out is the finding."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from conformance.cli import TRACEBACK_VARIABLE, main
from conformance.search.harness.broken import BrokenRule, require

# `gguf-conformance --help`; 130 is that of an interrupted run, and of its report.
DOCUMENTED = (0, 1, 2, 3, 4, 130)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def invoke(*words: str, encoding: str = "utf-8") -> Ended:
    """Run ``gguf-conformance WORDS``, with streams as a shell in a locale of this ``encoding`` gives them.

    Raises BrokenRule where an exception gets out, where the exit code is none that is documented, where wrong usage is not told.
    """
    with TemporaryFile() as out, TemporaryFile() as err:
        with _streams(_text_to(out, "<stdout>", encoding, "strict"), _text_to(err, "<stderr>", encoding, "backslashreplace")):
            code = _exit_code(words)
        ended = Ended(code, _written(out, encoding), _written(err, encoding))
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


def _text_to(file: IO[bytes], name: str, encoding: str, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(file.fileno(), "wb", closefd=False)
    raw.name = name
    return io.TextIOWrapper(raw, encoding, errors, write_through=True)


def _written(file: IO[bytes], encoding: str) -> str:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(encoding, "backslashreplace")


@contextmanager
def _streams(out: io.TextIOWrapper, err: io.TextIOWrapper) -> Iterator[None]:
    """Put streams in the place of the process's own, and let a fault of ours come out as the exception that it is."""
    before = sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__, os.environ.get(TRACEBACK_VARIABLE)
    sys.stdout = sys.__stdout__ = out  # type: ignore[misc] # Final to who uses it; here its guard is to take it for the process's own
    sys.stderr = sys.__stderr__ = err  # type: ignore[misc] # the same
    os.environ[TRACEBACK_VARIABLE] = "1"
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__, variable = before  # type: ignore[misc] # the same
        os.environ.pop(TRACEBACK_VARIABLE)
        if variable is not None:
            os.environ[TRACEBACK_VARIABLE] = variable
