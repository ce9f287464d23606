"""A value of a recipe together with where it stands, so that every error can name file, line and path."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from conformance.cases import integers
from conformance.cases.located import LocatedDict, LocatedList
from conformance.errors import ConfigurationError

T = TypeVar("T")


class Entry:
    """One value (text, number, mapping or list), its ``file`` and ``line`` (0 where there is no file) and its ``path``."""

    __slots__ = ("file", "line", "path", "value")

    def __init__(self, value: Any, file: str, line: int, path: str) -> None:
        self.value = value
        self.file = file
        self.line = line
        self.path = path

    @classmethod
    def of(cls, value: Any, path: str = "") -> Entry:
        """Wrap a tree's root; a tree out of YAML brings file and line with it."""
        if isinstance(value, LocatedDict | LocatedList):
            return cls(value, value.file, value.line, path)
        return cls(value, "", 0, path)

    @property
    def where(self) -> str:
        """``file:line``, empty for a recipe made in Python."""
        return f"{self.file}:{self.line}" if self.file else ""

    def error(self, message: str, hint: str = "") -> ConfigurationError:
        """Give (not raise) the error that says ``message`` of this value."""
        return ConfigurationError(f"{self.path}: {message}" if self.path else message, where=self.where, hint=hint)

    def shown(self) -> str:
        """Give the value for a message, cut where it is long."""
        text = str(self.value)
        return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"

    def is_mapping(self) -> bool:
        """Tell whether it is a mapping."""
        return isinstance(self.value, Mapping)

    def is_list(self) -> bool:
        """Tell whether it is a list or tuple."""
        return isinstance(self.value, list | tuple)

    def mapping(self, allowed: Collection[str] = ()) -> dict[str, Entry]:
        """Give the entries of a mapping; with ``allowed``, any other key is refused, the nearest admissible one named."""
        if not isinstance(self.value, Mapping):
            raise self.error(f"{self.shown()} is no mapping", f"write a mapping{_of_keys(allowed)}")
        entries = {str(key): self._child(key, item) for key, item in self.value.items()}
        for key in entries:
            if allowed and key not in allowed:
                raise self.unknown_key(key, allowed)
        return entries

    def unknown_key(self, key: str, allowed: Collection[str]) -> ConfigurationError:
        """Give the error for ``key``, which is none of ``allowed``."""
        child = self._child(key, self.value.get(key))
        return ConfigurationError(
            f"{self.path}: unknown key `{key}`" if self.path else f"unknown key `{key}`",
            where=child.where,
            hint=nearest(key, allowed),
        )

    def one_of(self, allowed: Collection[str]) -> tuple[str, Entry]:
        """Give key and entry of a mapping that has exactly one key, which is one of ``allowed``."""
        entries = self.mapping(allowed)
        if len(entries) != 1:
            found = ", ".join(entries) or "none"
            raise self.error(f"expected exactly one key, found {found}", f"keep one of: {', '.join(allowed)}")
        return next(iter(entries.items()))

    def sequence(self) -> list[Entry]:
        """Give the entries of a list."""
        if not self.is_list():
            raise self.error(f"{self.shown()} is no list", "write it as [a, b, ...]")
        lines = self.value.lines if isinstance(self.value, LocatedList) else [self.line] * len(self.value)
        return [Entry(item, self.file, lines[i], f"{self.path}[{i}]") for i, item in enumerate(self.value)]

    def text(self) -> str:
        """Give the text of a scalar."""
        if not isinstance(self.value, str):
            raise self.error(f"{self.shown()} is no text", "write a plain or quoted scalar")
        return self.value

    def choice(self, options: Collection[str]) -> str:
        """Give a text that is one of ``options``."""
        text = self.text()
        if text not in options:
            raise self.error(f"`{text}` is not known here", nearest(text, options))
        return text

    def integer(self, low: int, high: int) -> int:
        """Give an integer in ``low`` to ``high``, both included."""
        value = self._parsed(integers.parse_integer)
        if not low <= value <= high:
            raise self.error(f"{self.shown()} is out of range", f"the range is {low} to {high}")
        return value

    def float64(self) -> float:
        """Give a finite decimal as f64."""
        value = self._parsed(integers.parse_float)
        if value - value != 0:
            raise self.error(f"{self.shown()} is not finite", "write a finite number")
        return value

    def float_bits(self, kind: str) -> int:
        """Give the bits of a float of ``kind`` f32 or f64."""
        return self._parsed(lambda value: integers.float_bits(value, kind))

    def hexadecimal(self) -> bytes:
        """Give the bytes that hex digits stand for; blanks between them are free."""
        return self._parsed(integers.parse_hex)

    def boolean(self) -> bool:
        """Give ``true`` or ``false``."""
        if isinstance(self.value, bool):
            return self.value
        return self.choice(("true", "false")) == "true"

    def _parsed(self, parse: Callable[[Any], T]) -> T:
        try:
            return parse(self.value)
        except ValueError as error:
            message, _, hint = str(error).partition("\n")
            raise self.error(message, hint) from None

    def _child(self, key: Any, item: Any) -> Entry:
        line = self.value.lines.get(key, self.line) if isinstance(self.value, LocatedDict) else self.line
        return Entry(item, self.file, line, f"{self.path}.{key}" if self.path else str(key))


def nearest(word: str, options: Collection[str]) -> str:
    """Give the hint that names the option nearest to ``word`` and then all of them."""
    close = difflib.get_close_matches(word, [*options], n=1)
    return (f"did you mean `{close[0]}`? " if close else "") + f"admissible: {', '.join(options)}"


def _of_keys(allowed: Collection[str]) -> str:
    return f" of: {', '.join(allowed)}" if allowed else ""
