"""Annotated hexdumps as text: offset, bytes, their characters, and the field that they belong to."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.judge.divergence import HexLine
from conformance.printable import one_line, plural

_ASCII = range(0x20, 0x7F)


def _cells(data: str) -> tuple[str, str]:
    """Give the bytes in pairs of digits and as characters; data that is not hex stays as it came."""
    try:
        raw = bytes.fromhex(data)
    except ValueError:
        return one_line(data), ""
    return raw.hex(" "), "".join(chr(byte) if byte in _ASCII else "." for byte in raw)


def _carets(one: str, other: str) -> str:
    pairs = zip(one.split(" "), other.split(" "), strict=False)
    return " ".join("  " if first == second else "^^" for first, second in pairs).rstrip()


def hexdump_lines(lines: Sequence[HexLine]) -> list[str]:
    """Lay out a hexdump; ``>`` marks the lines at fault, and bytes left out of a field are counted below it.

    Of two marked lines on one offset (expected, found) carets mark the bytes that differ.
    """
    cells = [_cells(line.data) for line in lines]
    bytes_width = max((len(hexed) for hexed, _ in cells), default=0)
    text_width = max((len(text) for _, text in cells), default=0)
    laid_out: list[str] = []
    before: tuple[int, str] | None = None
    for line, (hexed, text) in zip(lines, cells, strict=True):
        mark = ">" if line.mark else " "
        row = f"{mark} {line.offset:08x}  {hexed:<{bytes_width}}  {text:<{text_width}}  {one_line(line.field)}"
        laid_out.append(row.rstrip())
        if before is not None and before[0] == line.offset:
            laid_out.append(f"{'':{row.index(hexed)}}{_carets(before[1], hexed)}")
        before = (line.offset, hexed) if line.mark else None
        if line.elided:
            laid_out.append(f"  ........  ({plural(line.elided, 'byte')} of {one_line(line.field)} left out)")
    return laid_out
