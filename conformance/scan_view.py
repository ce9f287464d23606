"""A scan as lines for a terminal: the tensors that a person should look at, the rest summed up by type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from conformance.inspect_view import shown, table
from conformance.printable import number, one_line, plural
from conformance.scan import COUNTED, ScaleCounts, Scan, TensorScan

_HEAD, _CALM, _BAD, _GOOD = "bold", "dim", "bold red", "green"
_TOTALS = ("type", "scale", "tensors", "blocks", "zero", "subnormal", "infinite", "NaN", "all 0", "lost", "coarse", "rows refused")
_WHOLE = ("zero_blocks", "lost_blocks", "coarse_blocks", "refused_rows")


def render(scanned: Scan, console: Console) -> None:
    """Print the scan, one line an item; a line that is too long is wrapped by the terminal, not cut."""
    for line in lines(scanned):
        console.print(line, soft_wrap=True)


def lines(scanned: Scan) -> Iterator[Text]:
    """Give the scan's lines: the file, the remarkable tensors, all tensors by type, and the verdict."""
    yield Text.assemble((shown(scanned.path), _HEAD), f" · GGUF {scanned.version} · {plural(scanned.size, 'byte')}")
    yield Text()
    remarkable = [tensor for tensor in scanned.tensors if tensor.remarkable]
    if remarkable:
        yield Text("tensors to look at", style=_HEAD)
        for tensor in remarkable:
            yield from _tensor(tensor)
        yield Text()
    if scanned.tensors:
        yield Text("blocks by type (of F32, F16, BF16, F64: values)", style=_HEAD)
        yield from table([_TOTALS, *_totals(scanned.tensors)], "<<" + ">" * (len(_TOTALS) - 2))
        yield Text()
    yield from _verdict(scanned, len(remarkable))


def _tensor(tensor: TensorScan) -> Iterator[Text]:
    where = f" · {tensor.type} · {plural(tensor.rows, 'row')} of ne {', '.join(map(str, tensor.ne))}"
    yield Text.assemble(f"  {tensor.index} ", (shown(tensor.name), _HEAD), where)
    for what in _remarks(tensor):
        yield Text(f"      {what}", style=_BAD if tensor.found else "")


def _remarks(tensor: TensorScan) -> Iterator[str]:
    if tensor.missing:
        yield "the file ends before its data"
    for counts in tensor.scales:
        yield from _of_scale(tensor, counts)
    if tensor.zero_blocks:
        lost = f", {number(tensor.lost_blocks)} of them although their codes differ (lost)" if tensor.lost_blocks else ""
        yield f"{_blocks(tensor, tensor.zero_blocks)} all 0{lost}"
    if tensor.coarse_blocks:
        yield f"{_blocks(tensor, tensor.coarse_blocks)} with a scale so small that rounding it may have moved the values (coarse)"
    if tensor.refused_rows:
        yield f"{plural(tensor.refused_rows, 'row')} refused by llama.cpp's validation; the first at {one_line(tensor.first)}"


def _of_scale(tensor: TensorScan, counts: ScaleCounts) -> Iterator[str]:
    names = ["infinite", "nan"] if tensor.holds_values else ["infinite", "nan", "subnormal"]
    if counts.zero > tensor.zero_blocks and not tensor.holds_values:
        names.append("zero")
    told = [(getattr(counts, name), "NaN" if name == "nan" else name) for name in names]
    parts = [f"{number(count)} {name}" for count, name in told if count]
    if parts:
        yield f"{counts.field}: {', '.join(parts)}"


def _blocks(tensor: TensorScan, count: int) -> str:
    return plural(count, "value" if tensor.holds_values else "block")


def _totals(tensors: Sequence[TensorScan]) -> Iterator[tuple[str, ...]]:
    """Give a row for each scale of each type; what is said of a whole block stands in the type's first row."""
    for kind in dict.fromkeys(tensor.type for tensor in tensors):
        these = [tensor for tensor in tensors if tensor.type == kind]
        head = (kind, number(len(these)), number(sum(tensor.blocks for tensor in these)))
        wholes = [sum(getattr(tensor, name) for tensor in these) for name in _WHOLE]
        fields = [counts.field for counts in these[0].scales] or ["-"]
        for at, field in enumerate(fields):
            total = ScaleCounts(field)
            for tensor in these:
                if tensor.scales:
                    total.add(tensor.scales[at])
            counted = tuple(_dash(getattr(total, name)) for name in COUNTED)
            first = at == 0
            yield (
                head[0] if first else "", field, *(head[1:] if first else ("", "")), *counted,
                *(_dash(whole) if first else "" for whole in wholes),
            )  # fmt: skip


def _dash(count: int) -> str:
    return number(count) if count else "-"


def _verdict(scanned: Scan, remarkable: int) -> Iterator[Text]:
    found = sum(tensor.found for tensor in scanned.tensors)
    if scanned.problem:
        yield Text(f"not sound: {one_line(scanned.problem)}", style=_BAD)
    if found:
        yield Text(f"not sound: something is wrong in {plural(found, 'tensor')} of {number(len(scanned.tensors))}", style=_BAD)
    if not scanned.found:
        also = f"; {plural(remarkable, 'tensor')} with blocks of zeros only" if remarkable else ""
        yield Text(f"sound: every scale and value is a number, no scale is lost{also}", style=_GOOD)
