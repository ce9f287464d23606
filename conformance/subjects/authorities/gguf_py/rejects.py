"""Why gguf-py refused a file: from the exception, and from the function of the package that it came from.

``GGUFReader`` raises plain ValueError, KeyError, IndexError, RecursionError and OverflowError, some of them numpy's own, so
the place counts as much as the text. Source: gguf/gguf_reader.py of gguf 0.19.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from types import TracebackType

from conformance.adapter import Reject

# What GGUFReader raises about a file. Anything else is a fault of the adapter or the machine.
VERDICTS = (ValueError, KeyError, IndexError, RecursionError, OverflowError)

# Start of the message, or the end of it -> class.
_STARTS = (
    ("GGUF magic invalid", "bad-magic"),
    ("Sorry, file appears to be version", "bad-version"),
    ("Duplicate ", "duplicate-key"),
    ("Bad type for general.alignment field", "bad-alignment"),
    ("Invalid alignment", "bad-alignment"),
    ("Found duplicated tensor with name", "duplicate-tensor"),
    ("cannot mmap an empty file", "truncated"),
    ("maximum supported dimension for an ndarray", "bad-dims"),
    ("Maximum allowed dimension exceeded", "bad-dims"),
    ("array is too big", "bad-dims"),
)
_ENDS = (
    ("is not a valid GGUFValueType", "bad-value-type"),
    ("is not a valid GGMLQuantizationType", "bad-tensor-type"),
)
_RESHAPE = re.compile(r"cannot reshape array of size \d+ into shape \(([\d,]*)\)")

# numpy's and Python's texts for fewer bytes, or fewer values, than asked for.
_SHORT = ("When changing to a larger dtype", "not enough values to unpack")


def refusal(error: Exception) -> Reject:
    """Give the Reject for an exception out of ``GGUFReader`` or of ``ReaderField.contents``."""
    message = str(error.args[0]) if error.args else ""
    text = f"{type(error).__name__}: {error}"
    return Reject(_judge(error, message, list(_places(error.__traceback__))), text)


def _judge(error: Exception, message: str, places: list[str]) -> str:
    if isinstance(error, UnicodeDecodeError):
        return _not_text(places)
    if isinstance(error, RecursionError):
        return "too-deep"
    if shape := _RESHAPE.match(message):
        return _too_large(shape[1])
    if "quant_shape_to_byte_shape" in places:
        return "bad-block"
    return _by_message(message) or _by_place(error, message, places)


def _places(traceback: TracebackType | None) -> Iterator[str]:
    """Give the names of the functions on the way to the exception, outermost first."""
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_name
        traceback = traceback.tb_next


def _not_text(places: list[str]) -> str:
    """Tell what is not UTF-8: keys are decoded when pairs are read, names with the tensors, values when asked for."""
    if "_build_fields" in places:
        return "bad-key"
    return "bad-value" if "contents" in places else "bad-name"


def _too_large(shape: str) -> str:
    """Tell a shape whose product wraps around 2^64, so that no data can fit it, from data that are missing."""
    return "bad-dims" if prod(int(n) for n in shape.split(",") if n) >= 1 << 64 else "missing-data"


def _by_message(message: str) -> str | None:
    starts = (name for start, name in _STARTS if message.startswith(start))
    ends = (name for end, name in _ENDS if message.endswith(end))
    return next(starts, None) or next(ends, None)


def _by_place(error: Exception, message: str, places: list[str]) -> str:
    """Tell a file that ends early, by where the bytes were missing; "other" for what is no such thing."""
    short = isinstance(error, IndexError) or message.startswith(_SHORT)
    if not short:
        return "other"
    return "missing-data" if "_build_tensors" in places and "_get" in places else "truncated"
