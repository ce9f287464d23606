"""The key-value pairs as a mapping whose values are made when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from impl.container.rules import Pair
from impl.container.values import Nested, Numbers, PythonValue, Strings, Value, text, type_name


class Metadata(Mapping[str, PythonValue]):
    """Pairs by key, in file order. ``metadata[key]`` is a bool, int, float, str or a list of them, or of such lists.

    Text that is not UTF-8 is decoded with ``surrogateescape``: encode it the same way to have its bytes back.
    """

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        self._values = {text(pair.key): pair.value for pair in pairs}

    def __getitem__(self, key: str) -> PythonValue:
        return self._values[key].get()

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def value(self, key: str) -> Value:
        """Give the value as it stands in the file: its type, and its bytes in ``raw``.

        Raises:
            KeyError: no such key.

        """
        return self._values[key]

    def type(self, key: str) -> str:
        """Name the value's type: ``"u32"``, ``"str"``, ``"array"``, ..."""
        return type_name(self._values[key])

    def items_type(self, key: str) -> str | None:
        """Name the type of an array's elements, also where it is empty; None for what is no array."""
        value = self._values[key]
        return value.items.name if isinstance(value, (Numbers, Strings, Nested)) else None
