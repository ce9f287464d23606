"""A plain reader of sound GGUF files that notes where each field lies: a second opinion on the builder's field map."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Spot = tuple[str, int, int]

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


class Walker:
    """Walks over one file; ``spots`` collects (path, offset, length)."""

    def __init__(self, data: bytes, sign: str = "<", long: str = "Q") -> None:
        self.data, self.sign, self.long, self.at = data, sign, long, 0
        self.spots: list[Spot] = []

    def header(self) -> list[Spot]:
        """All fields before the header's padding."""
        self.skip("magic", 4)
        self.number("version", "I")
        tensors, pairs = self.number("n_tensors", self.long), self.number("n_kv", self.long)
        for index in range(pairs):
            self.text(f"kv[{index}].key")
            self.value(f"kv[{index}].value", self.number(f"kv[{index}].type", "I"))
        for index in range(tensors):
            self.tensor(f"tensors[{index}]")
        return self.spots

    def tensor(self, path: str) -> None:
        self.text(f"{path}.name")
        for dim in range(self.number(f"{path}.n_dims", "I")):
            self.number(f"{path}.dims[{dim}]", self.long)
        self.number(f"{path}.type", "I")
        self.number(f"{path}.offset", "Q")

    def value(self, path: str, kind: int) -> None:
        if kind == 8:
            self.text(path)
        elif kind == 9:
            items = self.number(f"{path}.items", "I")
            for index in range(self.number(f"{path}.length", self.long)):
                self.value(f"{path}[{index}]", items)
        else:
            self.skip(path, SIZES[kind])

    def text(self, path: str) -> None:
        self.skip(path, self.number(f"{path}.length", self.long))

    def number(self, path: str, code: str) -> int:
        (value,) = struct.unpack_from(self.sign + code, self.data, self.at)
        self.skip(path, struct.calcsize(code))
        return int(value)

    def skip(self, path: str, length: int) -> None:
        self.spots.append((path, self.at, length))
        self.at += length


def numbered(spots: list[Spot]) -> Iterator[str]:
    """The paths alone."""
    return (path for path, _, _ in spots)
