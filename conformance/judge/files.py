"""Compare two written files byte for byte, and name the field of the first byte that differs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from conformance.cases.walk import fields_of
from conformance.judge.divergence import Divergence, HexLine
from conformance.judge.hexdump import dump_file
from conformance.judge.output import Bytes, Digests, differing_ranges

# Fields shown around the first difference.
_AROUND = 6


def compare_files(op: str, authority: str, expected: Bytes | Digests, found: Bytes) -> list[Divergence]:
    """Give the first difference of ``found`` from ``expected``, an authority's file or what is recorded of one; none if equal."""
    if isinstance(expected, Digests):
        return list(_compare_digests(op, authority, expected, found))
    common = min(expected.nbytes, found.nbytes)
    wrong = np.flatnonzero(expected[:common] != found[:common])
    if not len(wrong) and expected.nbytes == found.nbytes:
        return []
    return [_difference(op, authority, expected, found, int(wrong[0]) if len(wrong) else common)]


def _difference(op: str, authority: str, expected: Bytes, found: Bytes, at: int) -> Divergence:
    longer = expected if expected.nbytes > at else found
    fields = fields_of(longer.tobytes())
    field = fields.at(at)
    path = field.path if field else "rest"
    sizes = "" if expected.nbytes == found.nbytes else f"; it has {found.nbytes} bytes instead of {expected.nbytes}"
    ours, theirs = _byte(expected, at), _byte(found, at)
    return Divergence(
        signature=f"{op}:-:bytes:{re.sub(r'[0-9]+', '*', path)}",
        op=op,
        authority=authority,
        summary=f"byte {at} of the file written ({path}) is {theirs} instead of {ours}{sizes}",
        expected=ours,
        found=theirs,
        field=path,
        at=at,
        hexdump=tuple(_dump(expected, found, at)),
    )


def _byte(data: Bytes, at: int) -> str:
    return f"0x{data[at]:02x}" if at < data.nbytes else "not there"


def _dump(expected: Bytes, found: Bytes, at: int) -> Iterator[HexLine]:
    """Give the fields around ``at`` as expected, then the one at fault as found."""
    for name, data, limit in (("expected", expected.tobytes(), _AROUND), ("found", found.tobytes(), 1)):
        for line in dump_file(data, fields_of(data), mark=at, limit=limit):
            yield HexLine(line.offset, line.data, f"{line.field} {name}" if line.mark else line.field, line.mark, line.elided)


def _compare_digests(op: str, authority: str, expected: Digests, found: Bytes) -> Iterator[Divergence]:
    if found.nbytes != expected.nbytes:
        yield _recorded(op, authority, "size", f"the file written has {found.nbytes} bytes instead of {expected.nbytes}")
        return
    ranges = differing_ranges(expected, found)
    if ranges:
        first, end = ranges[0]
        yield _recorded(op, authority, "digest", f"bytes {first} to {end - 1} of the file written differ from the recorded digest")


def _recorded(op: str, authority: str, kind: str, summary: str) -> Divergence:
    return Divergence(
        signature=f"{op}:-:{kind}:{'blocks' if kind == 'digest' else 'output'}",
        op=op,
        authority=authority,
        summary=summary,
        remarks=("only digests are recorded of a file this long: run with --oracle live to see the byte",),
    )
