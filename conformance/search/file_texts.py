"""Keys, names and strings of a recipe: from their form to bytes, and from bytes to the form that reads best."""

from __future__ import annotations

from typing import Any

from conformance.cases.entry import Entry
from conformance.cases.recipe import parse_text

TextForm = Any  # text, {hex: ...} or {repeat: ..., count: ...}


def text_bytes(form: TextForm) -> bytes:
    """Give the bytes that a key, a name or a string has in the file. Raises ConfigurationError."""
    return parse_text(Entry.of(form)).raw


def text_form(raw: bytes) -> TextForm:
    """Give plain text where that shows every byte, else ``{hex: ...}``."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": raw.hex()}
    return text if text.isprintable() and text == text.strip() else {"hex": raw.hex()}
