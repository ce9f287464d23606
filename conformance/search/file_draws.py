"""Where choices come from: a seed, or a row of bytes that can itself be made simpler."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Draw(Protocol):
    """Chooses numbers. What it chooses first is the simplest: whoever asks puts the plain before the odd."""

    def below(self, count: int) -> int:
        """Give one of 0 to ``count`` - 1."""
        ...


class Seeded:
    """Choices of even chance from a seed: the same ones for the same seed."""

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - inputs for tests, no secrets

    def below(self, count: int) -> int:
        """Give one of 0 to ``count`` - 1."""
        return int(self._random() * count)


class Tape:
    """Choices out of bytes, one a byte (two where there are more than 256 to choose from); after their end, always 0.

    Smaller bytes make simpler choices, so that hypothesis makes a document simpler by making bytes smaller. It draws a row of bytes
    in one step, where a document's fifty choices would each cost as much.
    """

    __slots__ = ("_at", "_bytes")

    def __init__(self, data: bytes) -> None:
        self._bytes = data
        self._at = 0

    def below(self, count: int) -> int:
        """Give one of 0 to ``count`` - 1, which is at most 65535."""
        width = 1 if count <= 256 else 2
        taken = int.from_bytes(self._bytes[self._at : self._at + width], "little")
        self._at += width
        return taken % count if count else 0


def choose(draw: Draw, options: Sequence[T]) -> T:
    """Give one of ``options``, the simplest of which comes first."""
    return options[draw.below(len(options))]
