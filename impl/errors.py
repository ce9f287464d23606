"""What goes wrong, as types: a file that is refused, numbers that do not fit, a type that is not done."""

from __future__ import annotations

from typing import Literal

RejectClass = Literal[
    "truncated",
    "bad-magic",
    "bad-version",
    "byte-order",
    "bad-count",
    "bad-length",
    "bad-key",
    "duplicate-key",
    "bad-value-type",
    "bad-value",
    "bad-alignment",
    "bad-name",
    "duplicate-tensor",
    "bad-dims",
    "bad-tensor-type",
    "bad-block",
    "bad-offset",
    "bad-size",
    "missing-data",
    "too-deep",
    "bad-input",
    "other",
]

_CUT_SHORT = "The file is cut short, or a count or length before this place is wrong: compare its size with the original's."
_REWRITE = "Write the file again with a writer that keeps this rule."
_NEXT_STEP: dict[str, str] = {
    "truncated": _CUT_SHORT,
    "bad-length": _CUT_SHORT,
    "missing-data": "The file is cut short: compare its size with the original's, or read only its header.",
    "bad-magic": "This is no GGUF file, or something stands before its start.",
    "bad-version": "Convert the file to version 3.",
    "byte-order": "Convert the file to little-endian.",
}


class GgufError(ValueError):
    """A file that is refused, with the first fault in reading order.

    ``reject_class`` says what kind of fault, ``field`` which field is to blame (``kv[0].key.length``), ``at`` where that field
    starts, in bytes from the file's start; ``problem`` shows the offending value, ``hint`` says what to do next.
    """

    def __init__(self, reject_class: RejectClass, problem: str, *, field: str, at: int) -> None:
        super().__init__(problem)
        self.reject_class = reject_class
        self.problem = problem
        self.field = field
        self.at = at

    def __reduce__(self) -> tuple[object, ...]:
        return _gguf_error, (self.reject_class, self.problem, self.field, self.at)

    @property
    def hint(self) -> str:
        """What to do next."""
        return _NEXT_STEP.get(self.reject_class, _REWRITE)

    def __str__(self) -> str:
        return f"{self.field} at byte {self.at}: {self.problem}. {self.hint}"


def _gguf_error(reject_class: RejectClass, problem: str, field: str, at: int) -> GgufError:
    """Make the error again in another process: pickle gives no arguments by name."""
    return GgufError(reject_class, problem, field=field, at=at)


class InputError(ValueError):
    """Numbers, bytes or shapes that do not fit what is asked."""


class DescriptionError(InputError):
    """A file that shall be written and that no reader would take, or that its format cannot hold.

    ``reject_class`` says what kind of fault, ``field`` where it would stand (``kv[0].key``); ``problem`` shows the offending
    value, ``hint`` says what to do instead.
    """

    def __init__(self, reject_class: RejectClass, problem: str, *, field: str, hint: str) -> None:
        super().__init__(f"{field}: {problem}; {hint}")
        self.reject_class = reject_class
        self.problem = problem
        self.field = field
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return _description_error, (self.reject_class, self.problem, self.field, self.hint)


def _description_error(reject_class: RejectClass, problem: str, field: str, hint: str) -> DescriptionError:
    return DescriptionError(reject_class, problem, field=field, hint=hint)


class UnsupportedError(ValueError):
    """A ggml type, or a way to quantize it, that this implementation does not do."""
