"""Sound files as recipes: what a reader must take, in all the forms that it may come in."""

from __future__ import annotations

from typing import Any, NamedTuple

from conformance.cases.plan import WIDTHS
from conformance.ggml_types import BY_ID, GgmlType
from conformance.search.file_draws import Draw, choose
from conformance.search.file_texts import text_form
from conformance.values import VALUE_TYPES

Recipe = dict[str, Any]

MAX_PAIRS, MAX_TENSORS = 6, 4
# A tensor's data, in bytes: what is larger teaches a reader nothing that this does not.
_MAX_DATA = 600

ALIGNMENTS = (32, 64, 16, 8, 128, 4, 2, 1, 256)


class Words(NamedTuple):
    """Keys, names or strings: ordinary ones, and odd ones, which many readers refuse and which therefore come rarely."""

    plain: tuple[bytes, ...]
    odd: tuple[bytes, ...]

    def drawn(self, draw: Draw) -> bytes:
        """Give one of them, an odd one in 24."""
        return choose(draw, self.odd if draw.below(24) == 23 else self.plain)


# Names without a meaning, and those that programs look for, of which they expect one type.
_PLAIN_KEYS = b"""a b c.d general.name general.type general.architecture general.file_type general.quantization_version
llama.block_count llama.attention.head_count_kv tokenizer.ggml.tokens tokenizer.ggml.token_type tokenizer.ggml.eos_token_id
tokenizer.chat_template split.count"""
# Empty parts, capitals, no ASCII, NUL, names that readers keep for themselves.
_ODD_KEYS = (
    *(b"a..b", b".", b".a", b"a.", b"A.B", b"general.Name", b"a-b", b"a b", b"1", b"\xc3\xa9", b"\xe4\xbd\xa0.a", b"\xff", b"\xc3"),
    *(b"a\0", b"a\0b", b"\0", b"GGUF.version", b"GGUF.kv_count", b"GGUF.tensor_count", b"k" * 65, b"\n"),
)
_PLAIN_NAMES = b"""t u token_embd.weight blk.0.attn_q.weight output.weight rope_freqs.weight blk.10.ffn_down_exps.weight"""
_ODD_NAMES = (
    *(b"", b"T", b"a b", b".", b"x" * 63, b"x" * 62, b"y" * 63, b"\xc3\xa9", b"\xff", b"t\0", b"t\0u", b"\n", b"general.alignment"),
)
_PLAIN_STRINGS = (b"", b"a", b"llama", b"hello world", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\n", b"0", b"true", b"<s>", b"x" * 100)
_ODD_STRINGS = (b"a\0b", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"null", b" a ", b"\xef\xbb\xbfa")
KEYS = Words(tuple(_PLAIN_KEYS.split()), _ODD_KEYS)
NAMES = Words(tuple(_PLAIN_NAMES.split()), _ODD_NAMES)
STRINGS = Words(_PLAIN_STRINGS, _ODD_STRINGS)
# Bit patterns of each width: zeros, small numbers, limits, and what a float makes of them.
_BITS: dict[int, tuple[int, ...]] = {
    1: (0, 1, 2, 7, 0x7F, 0x80, 0xFE, 0xFF),
    2: (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x3C00, 0x00FF),
    4: (
        0,
        1,
        0x7FFFFFFF,
        0x80000000,
        0xFFFFFFFF,
        0x3F800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x7F800001,
        0x7F7FFFFF,
        0x01020304,
    ),
    8: (
        0,
        1,
        2**63 - 1,
        2**63,
        2**64 - 1,
        0x3FF0 << 48,
        0x7FF0 << 48,
        0x7FF8 << 48,
        (0x7FF0 << 48) + 1,
        2**53 + 1,
        0x0102030405060708,
    ),
}
_SCALARS = tuple(kind for kind in VALUE_TYPES if kind in WIDTHS)
_FORMS = (*(kind for kind in VALUE_TYPES if kind != "array"), "array", "array", "array")
_ITEMS = (*_SCALARS, "str", "str", "array")
_TYPES: tuple[GgmlType, ...] = tuple(kind for kind in BY_ID.values() if not kind.removed)
_COLS, _ROWS = (4, 1, 2, 3, 5, 8, 31, 32, 33, 0), (1, 2, 3, 1, 1, 2, 1, 0)


def document(draw: Draw) -> Recipe:
    """Give the recipe of a sound file: 0 to 6 pairs, 0 to 4 tensors, mostly below a kilobyte.

    Sound is what the layout allows: an array of arrays, which llama.cpp refuses, big-endian files, and keys that the text forbids
    are among them.
    """
    recipe: Recipe = {}
    if not (draw.below(8) + 1) % 8:
        recipe["version"] = 2
    if not (draw.below(16) + 1) % 16:
        recipe["byteorder"] = "big"
    if pairs := _pairs(draw):
        recipe["kv"] = pairs
    if tensors := _tensors(draw):
        recipe["tensors"] = tensors
    return recipe


def _pairs(draw: Draw) -> list[Recipe]:
    keys: dict[bytes, None] = {}
    for _ in range(draw.below(MAX_PAIRS + 1)):
        key = KEYS.drawn(draw)
        keys[key if key not in keys else key + b".%d" % len(keys)] = None
    pairs = [{"key": text_form(key), **_value(draw)} for key in keys]
    if pairs and draw.below(4) == 3:
        pairs[draw.below(len(pairs))] = {"key": "general.alignment", "u32": choose(draw, ALIGNMENTS)}
    return pairs


def _value(draw: Draw) -> Recipe:
    form = choose(draw, _FORMS)
    if form == "str":
        return {"str": text_form(STRINGS.drawn(draw))}
    return {"array": array(draw)} if form == "array" else {form: number(draw, form)}


def number(draw: Draw, kind: str) -> int | str:
    """Give a scalar of ``kind`` as a recipe writes it: a float by its bits, a bool 0 or 1."""
    if kind == "bool":
        return draw.below(2)
    return written(kind, choose(draw, _BITS[WIDTHS[kind]]))


def written(kind: str, bits: int) -> int | str:
    """Write the ``bits`` of a scalar of ``kind`` as a recipe's number."""
    width = WIDTHS[kind]
    if kind.startswith("f"):
        return f"0x{bits:0{2 * width}x}"
    return bits - 2 ** (8 * width) if kind.startswith("i") and bits >> (8 * width - 1) else bits


def array(draw: Draw, depth: int = 0) -> Recipe:
    """Give an array's form (``{u8: [1, 2]}``): 0 to 4 elements of any kind, arrays up to three deep."""
    kind, count = choose(draw, _ITEMS[:-1] if depth == 2 else _ITEMS), draw.below(5)
    if kind == "array":
        return {"array": [array(draw, depth + 1) for _ in range(min(count, 2))]}
    if kind == "str":
        return {"str": [text_form(STRINGS.drawn(draw)) for _ in range(count)]}
    return {kind: [number(draw, kind) for _ in range(count)]}


def _tensors(draw: Draw) -> list[Recipe]:
    names: dict[bytes, None] = {}
    for _ in range(draw.below(MAX_TENSORS + 1)):
        name = NAMES.drawn(draw)
        names[name if name not in names else name[:60] + b"%d" % len(names)] = None
    return [{"name": text_form(name), **_shaped(draw), **_data(draw)} for name in names]


def _shaped(draw: Draw) -> Recipe:
    """Give ``type`` and ``dims``; a row is a whole number of blocks."""
    kind = choose(draw, _TYPES)
    count = draw.below(4) + 1 if draw.below(16) != 15 or kind.block > 1 else 0
    dims = [choose(draw, _COLS) if kind.block == 1 else kind.block * choose(draw, (1, 2, 1, 1, 1, 1, 1, 0))] if count else []
    for _ in range(count - 1):
        dims.append(choose(draw, _ROWS))  # noqa: PERF401 - what is drawn depends on what was drawn before
    size = kind.row_bytes(dims[0]) if dims else kind.nbytes
    for place in range(1, len(dims)):
        dims[place] = dims[place] if size * dims[place] <= _MAX_DATA else 1
        size *= dims[place]
    return {"type": kind.name, "dims": dims}


def _data(draw: Draw) -> Recipe:
    """Give a tensor's data: mostly the builder's own, sometimes one byte all over, or any bytes."""
    form = draw.below(8)
    if form == 6:
        return {"data": {"fill": choose(draw, (0, 255, 127, 128))}}
    return {"data": {"random": draw.below(256)}} if form == 7 else {}
