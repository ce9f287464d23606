"""What can be wrong in a file's fields: numbers at the edges, bytes that are no text, places that do not fit together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from conformance.cases.plan import WIDTHS
from conformance.ggml_types import BY_ID
from conformance.search.file_documents import written
from conformance.search.file_draws import Draw, choose
from conformance.search.file_fields import Anatomy, Site
from conformance.values import VALUE_TYPES


class Edit(NamedTuple):
    """Bytes that are written over a field."""

    site: Site
    raw: bytes


class Fault(NamedTuple):
    """What is changed in a sound file, and its name: edits, then a cut (bytes to keep, None: all), then bytes behind."""

    label: str
    edits: tuple[Edit, ...] = ()
    cut: int | None = None
    append: bytes = b""


# Edges of the widths, of ggml's limits and of its table of counts (SIZE_MAX / 344 and / 88 in ggml/src/gguf.cpp).
_EDGES = (
    *(
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        128,
        255,
        256,
        2**15,
        2**16 - 1,
        2**16,
        2**24,
        2**30,
        2**30 + 1,
    ),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**53 + 1, 2**60, 2**61, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 32),
    *(2**64 - 1, 53624256028225440, 53624256028225441, 209622091746699450, 209622091746699451),
)
_BY_WIDTH = {width: tuple(edge for edge in _EDGES if edge < 1 << 8 * width) for width in (1, 2, 4, 8)}
_BEYOND = (255, 256, 2**16, 2**31, 2**32 - 1)
_VERSIONS = (0, 1, 2, 3, 4, 5, 2 << 24, 3 << 24, 1 << 24, 2**16, 2**16 + 3, 2**31 + 3, 2**32 - 1)
# Numbers of fields that mean something by themselves, whatever their width.
_MEANINGS: dict[str, tuple[int, ...]] = {
    "version": _VERSIONS,
    "kv[*].type": (*range(15), *_BEYOND),
    "tensors[*].type": (*range(45), *_BEYOND),
    "tensors[*].n_dims": (0, 1, 2, 3, 4, 5, 6, 8, 9, 64, 65, 2**16, 2**31, 2**32 - 1),
    "general.alignment": (0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 2**30, 2**31, 2**32 - 1),
}
_MAGICS = (b"GGML", b"FUGG", b"ggjt", b"GGUf", b"gguf", b"GGLA", b"\0\0\0\0", b"GGU\0")
# Products of dimensions that wrap around in 64 bits, or nearly, by the number of dimensions: with sizes of 1, 2, 4, 8 bytes.
_WRAPPING: dict[int, tuple[tuple[int, ...], ...]] = {
    1: (
        *((2**62,), (2**63 - 1,), (2**64 - 1,), (1024819115206086208,), (2**58,), (2**61,)),
        # Of elements of 2, 4 and 8 bytes: sizes so near to 2^64 that only what is added to them passes it.
        *((2**63 - 32,), (2**62 - 16,), (2**61 - 8,)),
    ),
    2: (
        (2**32, 2**32),
        (2**62, 4),
        (2**63 - 1, 2),
        (3037000500, 3037000499),
        (1, 2**63 - 1),
        (2**31, 2**31),
        (2**40, 2**40),
        (0, 2**62),
    ),
    3: ((2**31, 2**31, 4), (2**62, 0, 4), (2**32, 2**31, 2), (2**22, 2**22, 2**22)),
    4: ((2**16, 2**16, 2**16, 2**16), (2**62, 4, 1, 1), (2**16, 2**16, 2**16, 2**15), (4, 2**62, 0, 2)),
}
_RESERVED = (
    b"general.alignment",
    b"general.architecture",
    b"GGUF.version",
    b"GGUF.kv_count",
    b"GGUF.tensor_count",
    b"general.type",
    b"split.no",
)


def field_fault(draw: Draw, taken: Anatomy) -> Fault:
    """Give a fault of one field, each kind of field with even chance."""
    site = choose(draw, choose(draw, taken.groups))
    if site.general == "magic":
        return Fault("magic=other", (Edit(site, choose(draw, _MAGICS)),))
    if site.kind in WIDTHS:
        return _number_fault(draw, taken, site)
    return _text_fault(draw, taken, site) if site.kind == "text" else _bytes_fault(draw, taken, site)


def _number_fault(draw: Draw, taken: Anatomy, site: Site) -> Fault:
    table = _MEANINGS.get(site.general) or (_MEANINGS["kv[*].type"] if site.general.endswith(".items") else None)
    if table is None and draw.below(2):
        near = _near(taken, site)
        table = near if draw.below(2) else _BY_WIDTH[site.length]
    elif table is None:
        table = _BY_WIDTH[site.length]
    value = choose(draw, table) & (1 << 8 * site.length) - 1
    return Fault(f"{site.general}={_said(taken, site, value)}", (Edit(site, value.to_bytes(site.length, taken.order)),))


def _near(taken: Anatomy, site: Site) -> tuple[int, ...]:
    """Give numbers around the field's own, and around what is left of the file behind it."""
    value, left = taken.number(site), len(taken.data) - site.end
    return value + 1, value - 1, value * 2, left, left + 1, left - 1, len(taken.data), left // 4, left // 8 + 1, value + 32, -value


def _said(taken: Anatomy, site: Site, value: int) -> str:
    if site.general.endswith((".type", ".items")) and site.kind == "u32":
        return _type_said(site.general, value)
    before = taken.number(site)
    if value == 0:
        return "zero"
    if abs(value - before) == 1:
        return "more" if value > before else "less"
    if value > len(taken.data):
        return "negative" if value >> 8 * site.length - 1 else "huge" if value > 2**30 else "large"
    return "beyond" if value > len(taken.data) - site.end else "other"


def _type_said(general: str, value: int) -> str:
    if not general.startswith("tensors"):
        return VALUE_TYPES[value] if value < len(VALUE_TYPES) else "unknown"
    return "unknown" if value not in BY_ID else "removed" if BY_ID[value].removed else "other"


def _text_fault(draw: Draw, taken: Anatomy, site: Site) -> Fault:
    word, make = choose(draw, _TEXTS)
    raw = make(draw, taken, site)
    return Fault(f"{site.general}={word}", (Edit(site, raw),)) if raw else _bytes_fault(draw, taken, site)


def _placed(byte: int) -> Callable[[Draw, Anatomy, Site], bytes]:
    """Put a byte somewhere into the text."""

    def make(draw: Draw, _taken: Anatomy, site: Site) -> bytes:
        place = draw.below(site.length)
        return site.before[:place] + bytes((byte,)) + site.before[place + 1 :]

    return make


def _twin(draw: Draw, taken: Anatomy, site: Site) -> bytes:
    """Give another text of the kind and length: a key or name that is there twice."""
    others = [other.before for other in taken.named(site.general) if other.length == site.length and other.before != site.before]
    return choose(draw, others) if others else b""


def _reserved(draw: Draw, _taken: Anatomy, site: Site) -> bytes:
    words = [word for word in _RESERVED if len(word) == site.length and word != site.before]
    return choose(draw, words) if words else b""


def _truncated_utf8(_draw: Draw, _taken: Anatomy, site: Site) -> bytes:
    return site.before[:-1] + b"\xc3"


def _capitals(_draw: Draw, _taken: Anatomy, site: Site) -> bytes:
    return site.before.upper()


_TEXTS: tuple[tuple[str, Callable[[Draw, Anatomy, Site], bytes]], ...] = (
    ("nul", _placed(0)),
    ("not-utf8", _placed(0xFF)),
    ("not-utf8", _truncated_utf8),
    ("twin", _twin),
    ("twin", _twin),
    ("reserved", _reserved),
    ("capitals", _capitals),
    ("dot", _placed(0x2E)),
    ("control", _placed(0x0A)),
)


def _bytes_fault(draw: Draw, _taken: Anatomy, site: Site) -> Fault:
    place, count = draw.below(site.length), draw.below(4) + 1
    drawn = bytes(draw.below(256) for _ in range(min(count, site.length - place)))
    raw = site.before[:place] + drawn + site.before[place + len(drawn) :]
    return Fault(f"{site.general}=bytes", (Edit(site, raw),))


def flipped(draw: Draw, taken: Anatomy) -> Fault:
    """Flip one bit anywhere in the file."""
    offset = draw.below(len(taken.data))
    site = taken.at(offset)
    raw = bytearray(site.before)
    raw[min(offset - site.offset, site.length - 1)] ^= 1 << draw.below(8)
    return Fault(f"{site.general}=flipped", (Edit(site, bytes(raw)),))


def scrambled(draw: Draw, taken: Anatomy) -> Fault:
    """Write some bytes anywhere in the file."""
    return _bytes_fault(draw, taken, taken.at(draw.below(len(taken.data))))


def cut(draw: Draw, taken: Anatomy) -> Fault:
    """End the file where a field ends, or anywhere."""
    offset = draw.below(len(taken.data))
    return Fault("cut", cut=offset if draw.below(2) else taken.at(offset).offset)


def grown(draw: Draw, taken: Anatomy) -> Fault:
    """Put bytes behind the end."""
    size = choose(draw, (1, 2, 7, 8, 31, 32, 33, 64))
    fill = choose(draw, (0, 0xFF, 1, 0x47))
    return Fault("appended", append=bytes((fill,)) * size if taken.data else b"\0")


def places(draw: Draw, taken: Anatomy) -> Fault | None:
    """Let tensors lie elsewhere: changed places, one upon the other, shifted, wrapped around. None without tensors."""
    sites = taken.named("tensors[*].offset")
    if not sites:
        return None
    word, change = choose(draw, _PLACES)
    one, other = choose(draw, sites), choose(draw, sites)
    first, second = taken.number(one), taken.number(other)
    edits = [Edit(one, _u64(change(first, second), taken))]
    if word == "swapped":
        edits.append(Edit(other, _u64(first, taken)))
    return Fault(f"tensors[*].offset={word}", tuple(edits))


_PLACES: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    ("swapped", lambda _own, other: other),
    ("overlap", lambda _own, other: other),
    ("shifted", lambda own, _other: own + 32),
    ("shifted", lambda own, _other: own + 1),
    ("shifted", lambda own, _other: own + 8),
    ("far", lambda own, _other: own + 2**20),
    ("wrapped", lambda own, _other: 2**64 - 32 - own),
    ("wrapped", lambda own, _other: 2**63 + own),
)


def _u64(value: int, taken: Anatomy) -> bytes:
    return (value % 2**64).to_bytes(8, taken.order)


def wrapping(draw: Draw, taken: Anatomy) -> Fault | None:
    """Give a tensor dimensions whose product wraps around, or nearly. None without tensors."""
    if not taken.tensors:
        return None
    entry = choose(draw, taken.tensors)
    sites = [site for name, site in entry.items() if name.startswith("dims")]
    if len(sites) not in _WRAPPING or sites[0].length != 8:
        return None
    numbers = choose(draw, _WRAPPING[len(sites)])
    return Fault("tensors[*].dims=wrapping", tuple(Edit(site, _u64(n, taken)) for site, n in zip(sites, numbers, strict=True)))


def patches(edits: Sequence[Edit], taken: Anatomy) -> dict[str, Any]:
    """Give what a recipe's ``patch`` says for these edits."""
    return {edit.site.path: _patch(edit, taken) for edit in edits}


def _patch(edit: Edit, taken: Anatomy) -> Any:
    if edit.site.kind in WIDTHS and len(edit.raw) == WIDTHS[edit.site.kind]:
        return written(edit.site.kind, int.from_bytes(edit.raw, taken.order))
    return {"hex": edit.raw.hex()}
