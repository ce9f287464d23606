"""Hypothesis strategies for numbers: plans, rows, blocks, importances, and requests to one process in sequence."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import Any

import msgspec
import numpy as np
from hypothesis import strategies as st

from conformance.block_ops import NEEDING, OTHER_REFERENCE, SEARCHED, TYPES_OF, takes_imatrix
from conformance.cases.entry import nearest
from conformance.errors import UsageError
from conformance.ggml_types import BY_NAME
from conformance.search.block_families import BLOCK_FAMILIES, make_blocks
from conformance.search.draws import Draws
from conformance.search.imatrix_families import IMATRIX_FAMILIES, TAME_IMATRIX, make_imatrix
from conformance.search.number_plans import MAX_ROWS, NumberPlan
from conformance.search.probe import Blocks, Floats, NumberProbe
from conformance.search.probe_rows import stack
from conformance.search.row_families import FAMILIES, FINITE, TAME, WITHOUT_GAPS, RowRecipe, make_rows

_SEEDS = st.integers(0, 2**64 - 1)
# Blocks a row: one, odd numbers, powers of two; for types of one element a block, row lengths beside those of vectors.
_ROW_BLOCKS = (1, 2, 3, 5, 8, 11)
_ROW_LENGTHS = (1, 3, 8, 31, 32, 33, 255, 256, 257, 1000)
# Quantizers have the most to go wrong in.
_SHARES = {"quantize": 3, "quantize:ref": 3, "dequantize": 2, "dot": 1, "matvec": 1}
# A few rows, or, seven times of eight, as many as a request may have.
_ROWS = st.sampled_from((1, 2, 3, 5, 8, *[MAX_ROWS] * 35))
_WIDTHS = (16, 32, 64, 256)
# Ranges of exponents that mean something: ordinary weights, what f16 scales can say, what float32 can.
_TAME_RANGES = ((-4, 4), (-8, 8), (0, 0))
_RANGES = (*_TAME_RANGES, *_TAME_RANGES, (-12, -2), (-30, 20), (-126, 60), (-149, -100), (100, 127), (-149, 127))
# Where every seventh plan or so has what is not finite, the others are not lost to NaN.
_ANY_ROWS = (*FINITE, *FAMILIES, "specials", "any")
_X_ROWS = ("bell", "exponents", "ties", "straddle", "uneven", "outlier", "gaps", "zeros", "scales", "huge", "any", "specials")


def number_plans(
    types: Iterable[str] | None = None, ops: Iterable[str] | None = None, *, tame: bool | None = None
) -> st.SearchStrategy[NumberPlan]:
    """Draw plans of requests on numbers; ``plan.expand(2**20)`` makes a NumberProbe of up to so many elements.

    ``types``: names of ggml types, by default all that have blocks. ``ops``: ``quantize``, ``dequantize``, ``dot``, ``matvec`` or
    ``quantize:ref``, by default all. ``tame``: True for what ggml is known to have an answer for, False for anything; by default
    only types whose quantizer searches a grid (IQ1, IQ2, IQ3) are spared what ggml aborts on. Raises UsageError for a name that is
    not known, and where none of the types has any of the ops.
    """
    asked = tuple(TYPES_OF) if ops is None else tuple(ops)
    wanted = tuple(BY_NAME) if types is None else tuple(types)
    _check_names(asked, TYPES_OF, "op")
    _check_names(wanted, BY_NAME, "type")
    pairs = [(op, name) for op in asked for name in TYPES_OF[op] * _SHARES[op] if name in wanted]
    if not pairs:
        raise UsageError(f"{', '.join(wanted)}: no type with {', '.join(asked)}", hint=f"ops and types: {_offered(asked)}")
    return st.sampled_from(pairs).flatmap(lambda pair: _plans(*pair, tame))


def _check_names(names: tuple[str, ...], known: Iterable[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"there is no {what} {name!r}", hint=nearest(name, list(known)))


def _offered(ops: tuple[str, ...]) -> str:
    return "; ".join(f"{op}: {', '.join(TYPES_OF[op])}" for op in ops)


@cache
def _plans(asked: str, name: str, tame: bool | None) -> st.SearchStrategy[NumberPlan]:
    """Give the plans of one op and type. Few draws each, from strategies made once: a search draws some hundred a second."""
    op, _, variant = asked.partition(":")
    fixed = {"op": st.just(op), "type": st.just(name), "variant": st.just(variant)}
    drawn = {"cols": _cols(name), "rows": _ROWS, "seed": _SEEDS, **_PARTS[asked](name, tame)}
    return st.builds(NumberPlan, **fixed, **drawn)


@cache
def _cols(name: str) -> st.SearchStrategy[int]:
    block = BY_NAME[name].block
    if block == 1:
        return st.sampled_from(_ROW_LENGTHS)
    # Short blocks make rows of few blocks, or rows as long as those of the others.
    return st.sampled_from(sorted({count * least for count in _ROW_BLOCKS for least in (block, max(256, block))}))


@cache
def _recipes(families: tuple[str, ...], ranges: tuple[tuple[int, int], ...] = _RANGES) -> st.SearchStrategy[RowRecipe]:
    """Give what makes float rows: a family, the exponents of its numbers, the width of its sub-blocks."""
    every = product(families, ranges, _WIDTHS)
    return st.sampled_from([RowRecipe(family, low, high, width) for family, (low, high), width in every])


def _quantized_rows(*, tame: bool, families: tuple[str, ...] = TAME) -> st.SearchStrategy[RowRecipe]:
    return _recipes(families, _TAME_RANGES) if tame else _recipes(_ANY_ROWS)


_Parts = dict[str, st.SearchStrategy[Any]]


def _quantize(name: str, tame: bool | None) -> _Parts:
    spared = (name in SEARCHED) if tame is None else tame
    parts: _Parts = {"row": _quantized_rows(tame=spared)}
    if takes_imatrix(name):
        families = TAME_IMATRIX if spared else tuple(IMATRIX_FAMILIES)
        without = () if name in NEEDING else (None,) * len(families)
        parts["imatrix"] = st.sampled_from((*without, *families))
    return parts


def _reference(name: str, tame: bool | None) -> _Parts:
    """Of IQ4_NL by default without blocks of zeros, whose codes are those of the block before (docs/block-rules.md, N4)."""
    return {"row": _quantized_rows(tame=name in OTHER_REFERENCE if tame is None else tame, families=WITHOUT_GAPS)}


def _dequantize(_name: str, _tame: bool | None) -> _Parts:
    return {"blocks": st.sampled_from(tuple(BLOCK_FAMILIES))}


def _matvec(_name: str, _tame: bool | None) -> _Parts:
    # With scales that are NaN, most of a row's sums are; so there are more of the others.
    return {"blocks": st.sampled_from(("sane", "unit", *BLOCK_FAMILIES)), "row": _recipes(_X_ROWS)}


def _dot(name: str, tame: bool | None) -> _Parts:
    return {**_matvec(name, tame), "one_x": st.booleans()}


_PARTS = {
    "quantize": _quantize,
    "quantize:ref": _reference,
    "dequantize": _dequantize,
    "dot": _dot,
    "matvec": _matvec,
}


@st.composite
def _float_rows(draw: st.DrawFn, name: str, max_rows: int, tame: bool) -> Floats:
    rows = make_rows(draw(_quantized_rows(tame=tame)), name, max_rows, draw(_cols(name)), Draws(draw(_SEEDS)))
    # Rows are made and then taken, so that hypothesis can take them away one at a time, from either end.
    last, count = draw(st.integers(0, max_rows - 1)), draw(st.integers(1, max_rows))
    taken = rows[max(0, last + 1 - count) : last + 1]
    return _trimmed(taken, draw(st.integers(0, 96)), draw(st.integers(0, 32)), draw(st.integers(0, 255)))


def _trimmed(rows: Floats, bits: int, halvings: int, place: int) -> Floats:
    """Keep ``bits`` bits of each significand, and of each row what lies in a window: half of it at 7, a quarter at 6, and so on.

    Hypothesis cannot make the numbers themselves simpler; by these three it takes away. Most of what it draws keeps everything.
    """
    cols = rows.shape[1]
    mask = np.uint32(0xFFFFFFFF << max(0, 23 - bits) & 0xFFFFFFFF)
    kept = max(1, cols >> max(0, 8 - halvings))
    start = min(place * cols >> 8, cols - kept)
    trimmed = np.zeros_like(rows)
    trimmed[:, start : start + kept] = (rows.view(np.uint32) & mask).view(np.float32)[:, start : start + kept]
    return trimmed


def float_rows(type: str, max_rows: int = 8, *, tame: bool = False) -> st.SearchStrategy[Floats]:  # noqa: A002 - ggml's own word for it
    """Draw float32 arrays of shape (1 to ``max_rows``, a multiple of the type's block) for a quantizer to ``type``.

    Exponent classes, ties and numbers beside them, one outlier, sub-blocks of very different size, zeros and subnormals, sums that
    overflow, now and then NaN and infinity; ``tame`` leaves out what not every quantizer of ggml has an answer for. Shrinking takes
    rows, elements and bits away. Raises UsageError for a type that has no blocks.

        @given(float_rows("Q4_K"))
        def test_my_quantizer(rows): ...
    """
    return _float_rows(_known(type), max_rows, tame)


def raw_blocks(type: str, max_rows: int = 8) -> st.SearchStrategy[Blocks]:  # noqa: A002 - ggml's own word for it
    """Draw uint8 arrays of shape (1 to ``max_rows``, a multiple of the type's bytes a block) for a dequantizer of ``type``.

    Any bytes, special scales, scales of 1 with all packed sub-scales, equal bytes, few bits, a walking bit. Raises UsageError for a
    type that has no blocks.
    """
    return _raw_blocks(_known(type), max_rows)


@st.composite
def _raw_blocks(draw: st.DrawFn, name: str, max_rows: int) -> Blocks:
    family = draw(st.sampled_from(tuple(BLOCK_FAMILIES)))
    n, cols = draw(st.integers(1, max_rows)), draw(_cols(name))
    return make_blocks(family, name, n, cols, Draws(draw(_SEEDS)))


def _known(name: str) -> str:
    known = [other for other in BY_NAME if any(other in names for names in TYPES_OF.values())]
    _check_names((name,), known, "type with blocks")
    return name


def imatrices(cols: int, *, tame: bool = False) -> st.SearchStrategy[Floats]:
    """Draw importances, float32 of shape (``cols``,): ordinary ones, and unless ``tame`` zeros, tiny, huge, negative, NaN, one big.

    Raises UsageError for ``cols`` below 1.
    """
    if cols < 1:
        raise UsageError(f"an imatrix of {cols} columns", hint="give the row's length, 1 or more")
    families = st.sampled_from(TAME_IMATRIX if tame else tuple(IMATRIX_FAMILIES))
    return st.builds(lambda family, seed: make_imatrix(family, cols, Draws(seed)), families, _SEEDS)


@st.composite
def number_sequences(
    draw: st.DrawFn,
    types: Iterable[str] | None = None,
    ops: Iterable[str] | None = None,
    *,
    max_elements: int = 2**14,
    tame: bool | None = None,
) -> list[NumberProbe]:
    """Draw requests to be put to one process one after the other, whose answers must not depend on those before.

    The last one repeats the first: the very request again, or its rows after other rows within one request. ``types``, ``ops``,
    ``tame``: as of ``number_plans``; each request has up to ``max_elements`` elements. Raises UsageError as ``number_plans`` does.
    """
    plans = number_plans(types, ops, tame=tame)
    plan = draw(plans)
    first = plan.expand(max_elements)
    others = [other.expand(max_elements) for other in draw(st.lists(plans, min_size=1, max_size=3))]
    if draw(st.booleans()):
        return [first, *others, first]
    asked = f"{plan.op}:{plan.variant}" if plan.variant else plan.op
    before = draw(number_plans([plan.type], [asked], tame=tame))
    before = msgspec.structs.replace(before, cols=plan.cols, imatrix=plan.imatrix)
    return [first, *others, stack([before.expand(max_elements), first])]
