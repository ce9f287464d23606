"""A request on numbers as a case: the mapping below its key in a case file (docs/cases.md), as short as it can be said."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from conformance.cases.integers import float_bits
from conformance.ggml_types import BY_NAME
from conformance.judge.layouts import FIELDS
from conformance.search.probe import Blocks, Floats, NumberProbe

Value = int | float | str
Recipe = dict[str, Any]

_WORDS = {0x7FC00000: "nan", 0xFFC00000: "-nan", 0x7F800000: "inf", 0xFF800000: "-inf"}


def case_of(probe: NumberProbe) -> Recipe:
    """Give the case's mapping: its input, and in ``ask`` the op (with its variant). Building it gives the probe's very bytes."""
    asked = f"{probe.op}:{probe.variant}" if probe.variant else probe.op
    return {"type": probe.type, **_input(probe), "ask": [asked]}


def _input(probe: NumberProbe) -> Recipe:
    block = BY_NAME[probe.type].block
    if probe.rows is not None:
        imatrix = {} if probe.imatrix is None else {"imatrix": float_recipe(probe.imatrix[None], block)}
        return {"rows": float_recipe(probe.rows, block), **imatrix}
    assert probe.blocks is not None  # noqa: S101 - what a NumberProbe has that has no rows
    blocks = block_recipe(probe.blocks, probe.type)
    return {"blocks": blocks} if probe.x is None else {"weights": blocks, "x": float_recipe(probe.x, block)}


def float_recipe(rows: Floats, block: int) -> Recipe:
    """Give the shortest recipe of float32 rows, for a type of ``block`` elements a block."""
    bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
    plain: Recipe = {"values": [[float_value(int(one)) for one in row] for row in bits]}
    if rows.shape[1] != block:
        return plain
    special = {"special": {f"row-{number}": _special(row) for number, row in enumerate(bits)}}
    return min(plain, special, key=_length)


def _special(bits: npt.NDArray[np.uint32]) -> Recipe:
    """Give one row of one block: the value that is there most often, or a ramp, and what differs from it; or all values."""
    forms: list[Recipe] = [{"values": [float_value(int(one)) for one in bits]}]
    common = Counter(bits.tolist()).most_common(1)[0][0]
    bases: list[tuple[Recipe, npt.NDArray[np.uint32]]] = [({"fill": float_value(common)}, np.full_like(bits, common))]
    if len(bits) > 1 and isinstance(step := float_value(int(bits[1])), int | float):
        with np.errstate(all="ignore"):
            ramp = (np.float64(step) * np.arange(len(bits))).astype(np.float32)
        bases.append(({"ramp": step}, ramp.view(np.uint32)))
    for form, base in bases:
        changed = np.flatnonzero(base != bits)
        forms.append(form | ({"set": {int(at): float_value(int(bits[at])) for at in changed}} if len(changed) else {}))
    return min(forms, key=_length)


def _length(recipe: Recipe) -> int:
    return len(yaml.safe_dump(recipe, default_flow_style=True, width=10**9))


def float_value(bits: int) -> Value:
    """Give how a case says a float32: an integer, the shortest decimal, a word, or the bits where no decimal reads back to them."""
    if bits in _WORDS:
        return _WORDS[bits]
    number = np.uint32(bits).view(np.float32)
    if np.isnan(number):
        return f"0x{bits:08x}"
    decimal = float(str(number))
    value: Value = int(decimal) if decimal.is_integer() and abs(decimal) < 2**24 and bits != 0x80000000 else decimal
    return value if float_bits(repr(value), "f32") == bits else f"0x{bits:08x}"


def block_recipe(rows: Blocks, type_name: str) -> Recipe:
    """Give the recipe of rows of blocks: hex, with a blank between fields; a row that comes again and again is written once."""
    first = _hex(rows[0], type_name)
    if len(rows) > 1 and (rows == rows[0]).all():
        return {"repeat": {"hex": first, "rows": len(rows)}}
    return {"hex": [_hex(row, type_name) for row in rows]}


def _hex(row: Blocks, type_name: str) -> str:
    size = BY_NAME[type_name].nbytes
    fields = FIELDS.get(type_name, ())
    spans = [(field.offset, field.offset + field.nbytes) for field in fields] or [(0, size)]
    return " ".join(row[start + begin : start + end].tobytes().hex() for start in range(0, len(row), size) for begin, end in spans)
