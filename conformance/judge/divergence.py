"""A divergence: one located difference between a subject's outcome and an authority's."""

from __future__ import annotations

import msgspec


class HexLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of an annotated hexdump: ``data`` in hex, the ``field`` that it belongs to, ``mark`` on the line at fault."""

    offset: int
    data: str
    field: str
    mark: bool = False
    # Bytes of the field that are left out after this line.
    elided: int = 0


class FloatBits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two float32 bit patterns side by side; ``ulps`` is their distance, None where one of them is NaN."""

    expected: str
    found: str
    ulps: int | None = None


# What a remark begins with that tells why a divergence is known.
KNOWN_REMARK = "known "


class Divergence(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One located difference.

    ``signature`` is what stays the same when only the input changes (``op:type:kind:place``). ``field`` is a field path of
    the file (``kv[0].key.length``) or of the block (``qs[3]``); ``at`` is a file offset for files, a byte offset in the whole
    output for blocks. ``row``, ``block``, ``byte`` (within the block) and ``elements`` (within the row) locate numbers;
    ``input`` shows what was to be quantized there. In all, ``different`` of ``compared`` differ, counted in ``unit``.
    """

    signature: str
    op: str
    authority: str
    summary: str
    expected: str = ""
    found: str = ""
    field: str | None = None
    at: int | None = None
    row: int | None = None
    row_name: str | None = None
    block: int | None = None
    byte: int | None = None
    elements: tuple[int, ...] = ()
    input: str | None = None
    bits: FloatBits | None = None
    different: int | None = None
    compared: int | None = None
    unit: str | None = None
    # How the differences spread over a block's fields: {"qs": 873}; shown where the unit is bytes.
    by_field: dict[str, int] = {}
    largest_ulps: int | None = None
    # Of floats, how the differences of this kind spread by distance: place 0 counts distances of 0 (zeros of other sign), place n
    # those from 2^(n-1) to 2^n - 1 ulps; those from or to a NaN have none and are not counted.
    by_distance: tuple[int, ...] = ()
    hexdump: tuple[HexLine, ...] = ()
    # What a person should know besides: the known entry that expected another signature, why no bit can be named.
    remarks: tuple[str, ...] = ()
