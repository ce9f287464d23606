"""The adapter's loop: requests as lines of JSON on stdin, one answer a line on stdout; and its use from a shell."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import IO, NoReturn

from impl.container.profiles import PROFILES
from impl.errors import DescriptionError, GgufError, InputError, UnsupportedError
from impl.subject import Json, Subject

OPS = ("hello", "header", "load", "tensor", "dequantize", "quantize", "dot", "matvec", "write")

EXIT_OK = 0
EXIT_REJECT = 1
EXIT_USAGE = 2
EXIT_ERROR = 3

_USAGE = (
    "usage: python -m impl [--profile llama.cpp | gguf-py | spec] [hello | header FILE | load FILE]; "
    "without arguments it serves requests from stdin"
)


def main(subject: Subject, arguments: list[str]) -> int:
    """Serve stdin without arguments and end the process; with ``header FILE`` or ``load FILE`` answer once and give the exit code.

    ``--profile NAME`` before them says by whose rules files are read.
    """
    match arguments:
        case ["--profile", profile, *rest]:
            return main(subject.reading_as(profile), rest) if profile in PROFILES else _usage(f"unknown profile {profile}")
        case []:
            return _serve_standard_streams(subject)
        case ["hello"]:
            return _once(subject, {"op": "hello"})
        case ["header" | "load" as op, path]:
            return _usage(f"cannot read {path}: {why}") if (why := _unreadable(path)) else _once(subject, {"op": op, "path": path})
    return _usage(f"unknown arguments: {' '.join(arguments)}")


def serve(subject: Subject, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer each line of ``requests`` until they end."""
    for line in requests:
        answers.write(to_json(answer(subject, line)) + b"\n")
        answers.flush()


def answer(subject: Subject, line: bytes) -> Json:
    """Give the answer to one request line, whatever it holds."""
    seq = 0
    try:
        request = json.loads(line)
        seq = request["seq"]
        return {"seq": seq, **respond(subject, request["op"], request)}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return {"seq": seq, "error": _one_line(f"not a request: {type(error).__name__}: {error}")}


def respond(subject: Subject, op: str, request: Json) -> Json:
    """Do one request; give ``ok``, ``reject``, ``unsupported`` or ``error``."""
    if op not in OPS:
        return {"unsupported": _one_line(f"op {op!r}; these are done: {', '.join(OPS)}")}
    try:
        return {"ok": getattr(subject, op)(request)}
    except (GgufError, InputError) as error:
        return {"reject": _rejected(error)}
    except UnsupportedError as error:
        return {"unsupported": _one_line(str(error))}
    except Exception as error:  # noqa: BLE001 - the loop must outlive any fault of one request, and "error" is how it is told
        return {"error": _one_line(f"{type(error).__name__}: {error}")}


def _rejected(error: GgufError | InputError) -> Json:
    """Give a refusal's class, and its place where that is known."""
    if isinstance(error, GgufError):
        return {"class": error.reject_class, "message": _one_line(error.problem), "at": error.at, "field": error.field}
    if isinstance(error, DescriptionError):
        return {"class": error.reject_class, "message": _one_line(str(error)), "field": error.field}
    return {"class": "bad-input", "message": _one_line(str(error))}


def to_json(value: Json) -> bytes:
    """Give ``value`` as one line of JSON, without its end."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _one_line(text: str) -> str:
    """Make one line of text that UTF-8 can hold (a file's name may bring lone surrogates)."""
    return " ".join(text.encode("utf-8", "replace").decode("utf-8").split())


def _serve_standard_streams(subject: Subject) -> NoReturn:
    """Serve, and end the process at once: every answer is flushed, and to take numba's modules apart takes a fifth of a second."""
    try:
        serve(subject, sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(EXIT_ERROR)  # nobody is left to answer to
    os._exit(EXIT_OK)


def _once(subject: Subject, request: Json) -> int:
    """Print the answer's JSON and give 0, or the reject's and give 1, or an error's text to stderr and give 3."""
    response = respond(subject, request["op"], request)
    if "error" in response:
        sys.stderr.write(f"{response['error']}\n")
        return EXIT_ERROR
    sys.stdout.buffer.write(to_json(response.get("ok") or response["reject"]) + b"\n")
    return EXIT_OK if "ok" in response else EXIT_REJECT


def _unreadable(path: str) -> str:
    """Say why a file cannot be read; nothing if it can."""
    try:
        if stat.S_ISFIFO(Path(path).stat().st_mode):  # to open it would be to wait
            return "it is a pipe: copy what it gives to a file"
        with Path(path).open("rb"):
            return ""
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        return getattr(error, "strerror", None) or str(error)


def _usage(problem: str) -> int:
    sys.stderr.write(f"{_one_line(problem)}\n{_USAGE}\n")
    return EXIT_USAGE
