"""What a subject did with one request: one frozen type an outcome.

``Ok``, ``Reject``, ``Unsupported`` and ``Error`` are what a subject says of itself; ``Crash``, ``Timeout``,
``Memory`` and ``Protocol`` are what the harness finds out about it.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

from conformance.values import Header

RejectClass = Literal[
    "truncated",  # the file ends before a declared header field, or before the data section starts
    "bad-magic",
    "bad-version",
    "byte-order",  # the version reads as byte-swapped
    "bad-count",  # tensor count or pair count out of range
    "bad-length",  # a string or array claims more than a reader allows or than the file still holds
    "bad-key",  # empty, or breaks a rule on keys
    "duplicate-key",
    "bad-value-type",  # unknown value type, nested array where they are refused
    "bad-value",  # a value that its type does not allow (a bool of 2, text that is not UTF-8)
    "bad-alignment",  # wrong type or wrong value of general.alignment
    "bad-name",  # a tensor's name is too long or not text
    "duplicate-tensor",
    "bad-dims",  # number of dimensions, negative, or element count out of range
    "bad-tensor-type",  # unknown or removed ggml type
    "bad-block",  # row length is no multiple of the block's
    "bad-offset",
    "bad-size",  # a size in bytes, or a sum of them, out of range
    "missing-data",  # the data section is shorter than the directory says
    "too-deep",  # nesting beyond the reader's limit
    "bad-input",  # numbers that cannot be quantized, shapes that do not fit
    "other",  # refused, reason not classified: compares equal to every class
]
REJECT_CLASSES: tuple[str, ...] = get_args(RejectClass)


_LAST_WORDS = re.compile(r"^(?P<said>(panic|fatal error|FATAL ERROR): .*)|^thread '.*panicked at .*:\n(?P<rust>.*)", re.MULTILINE)


class Ok(msgspec.Struct, frozen=True, tag="ok", tag_field="outcome", omit_defaults=True):
    """The subject answered: a header, or (ops with an output file) nothing but that it wrote it."""

    header: Header | None = None


class Reject(msgspec.Struct, frozen=True, tag="reject", tag_field="outcome", omit_defaults=True):
    """The subject refused the input cleanly; ``at`` and ``field`` say where it puts the blame, if it can."""

    reject_class: str = "other"
    message: str = ""
    at: int | None = None
    field: str | None = None


class Unsupported(msgspec.Struct, frozen=True, tag="unsupported", tag_field="outcome"):
    """The subject does not do this op or type; for one that its hello declares this is a failure."""

    reason: str


class Error(msgspec.Struct, frozen=True, tag="error", tag_field="outcome"):
    """The adapter itself failed (an exception that is not a verdict on the input)."""

    message: str


class Crash(msgspec.Struct, frozen=True, tag="crash", tag_field="outcome"):
    """The process ended before it answered: ``how`` is a signal's name ("SIGSEGV") or "exit 3"."""

    how: str
    stderr: str = ""

    @property
    def last_words(self) -> str:
        """The line that says what it died of: a panic of Go, Rust or Node, which a trace or a note follows, else the last one."""
        found = _LAST_WORDS.search(self.stderr)
        return (found["said"] or found["rust"]).strip() if found else self.stderr.strip().rpartition("\n")[2]


class Timeout(msgspec.Struct, frozen=True, tag="timeout", tag_field="outcome"):
    """No answer within the limit."""

    seconds: float


class Memory(msgspec.Struct, frozen=True, tag="memory", tag_field="outcome"):
    """Resident memory passed the limit (bytes)."""

    resident: int
    limit: int


class Protocol(msgspec.Struct, frozen=True, tag="protocol", tag_field="outcome"):
    """The answer broke the protocol; ``problem`` names how, ``excerpt`` shows the start of what came."""

    problem: str
    excerpt: str = ""


Outcome = Ok | Reject | Unsupported | Error | Crash | Timeout | Memory | Protocol

# Outcomes that satisfy no expectation of a subject, `either` included.
FAILURES = (Unsupported, Error, Crash, Timeout, Memory, Protocol)


def outcome_name(outcome: Outcome) -> str:
    """Give the outcome's word, with what tells it from others of its kind: ``reject bad-magic``, ``crash SIGABRT``."""
    match outcome:
        case Reject(reject_class=detail) | Crash(how=detail):
            return f"{outcome.__struct_config__.tag} {detail}"
        case _:
            return str(outcome.__struct_config__.tag)
