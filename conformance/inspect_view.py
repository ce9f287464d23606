"""A file's description as lines for a terminal. Text out of the file is escaped: it may be hostile."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from conformance.inspect import Description, Entry, TensorEntry, TensorValues
from conformance.printable import number, one_line, plural

_CHARACTERS = 80
_HEAD, _CALM, _BAD, _GOOD = "bold", "dim", "bold red", "green"
_ESCAPED_BYTES = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}


def render(description: Description, console: Console) -> None:
    """Print the description, one line an item; a line that is too long is wrapped by the terminal, not cut."""
    for line in lines(description):
        console.print(line, soft_wrap=True)


def lines(description: Description) -> Iterator[Text]:
    """Give the file's lines: what it is, then its metadata and tensors, or of one tensor the values asked for."""
    yield from _summary(description)
    yield Text()
    if description.values is not None:
        yield from _tensor_values(description.values)
    else:
        yield from _metadata(description)
        yield from _tensors(description.tensors)
    yield Text()
    if description.problem:
        yield Text(f"not sound: {one_line(description.problem)}", style=_BAD)
    else:
        yield Text("sound: llama.cpp's rules hold and all data is there", style=_GOOD)


def _summary(description: Description) -> Iterator[Text]:
    tensors = description.tensors
    parameters = sum(math.prod(tensor.ne) for tensor in tensors)
    types = ", ".join(f"{kind} {number(count)}" for kind, count in Counter(tensor.type for tensor in tensors).most_common())
    yield Text.assemble((shown(description.path), _HEAD), f" · GGUF {description.version} · {plural(description.size, 'byte')}")
    yield Text(f"alignment {description.alignment} · data at {number(description.data_offset)}")
    counts = f"{plural(len(description.metadata), 'pair')} · {plural(len(tensors), 'tensor')} · {plural(parameters, 'element')}"
    yield Text(f"{counts} · {types}" if types else counts)


def _metadata(description: Description) -> Iterator[Text]:
    if not description.metadata:
        return
    yield Text("metadata", style=_HEAD)
    limit = None if description.whole else _CHARACTERS
    rows = [(shown(entry.key), _type(entry), _entry_values(entry, limit)) for entry in description.metadata]
    yield from table(rows, "<<<")
    yield Text()


def _type(entry: Entry) -> str:
    return entry.type if entry.items is None else f"{entry.items}[{number(entry.count)}]"


def _entry_values(entry: Entry, limit: int | None) -> str:
    is_text = "str" in (entry.type, entry.items)
    values = ", ".join(_quoted(value, limit) if is_text else value for value in entry.values)
    left_out = entry.count - len(entry.values)
    return f"{values}{', ' if values else ''}… {number(left_out)} more" if left_out else values


def _quoted(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return f'"{shown(text)}"'
    return f'"{shown(text[:limit])}"… ({plural(len(text), "character")})'


def _tensors(tensors: Sequence[TensorEntry]) -> Iterator[Text]:
    if not tensors:
        yield Text("no tensors", style=_HEAD)
        return
    yield Text("tensors (ne fastest first, at from the file's start)", style=_HEAD)
    rows = [(number(one.index), shown(one.name), one.type, _ne(one), number(one.at), number(one.nbytes)) for one in tensors]
    yield from table([("#", "name", "type", "ne", "at", "bytes"), *rows], "><<>>>")


def _ne(tensor: TensorEntry) -> str:
    return f"[{', '.join(map(str, tensor.ne))}]"


def _tensor_values(values: TensorValues) -> Iterator[Text]:
    tensor = values.tensor
    where = f"ne {_ne(tensor)} · {plural(tensor.nbytes, 'byte')} at {number(tensor.at)}"
    yield Text.assemble((f"tensor {tensor.index} {shown(tensor.name)}", _HEAD), f" · {tensor.type} · {where}")
    yield from table([(number(index), one.value, one.bits) for index, one in enumerate(values.values)], ">><")
    left_out = values.elements - len(values.values)
    if values.note:
        yield Text(f"  {one_line(values.note)}", style=_CALM)
    elif left_out:
        yield Text(f"  … {number(left_out)} more", style=_CALM)


def table(rows: Sequence[tuple[str, ...]], align: str) -> Iterator[Text]:
    """Lay rows out in columns, two spaces apart; ``align`` has ``<`` or ``>`` for each column."""
    widths = [max((cell_len(cell) for cell in column), default=0) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for cell, width, side in zip(row, widths, align, strict=True):
            gap = " " * (width - cell_len(cell))
            cells.append(cell + gap if side == "<" else gap + cell)
        yield Text(f"  {'  '.join(cells)}".rstrip())


def shown(text: str) -> str:
    r"""Give text out of the file as one safe line; a byte that is not UTF-8 becomes ``\xff``."""
    return one_line(text.translate(_ESCAPED_BYTES))
