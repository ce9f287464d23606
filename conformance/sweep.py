"""Random and structured cases on numbers in any amount, from a seed: what ``sweep`` runs.

They are written as case files, so that whatever they find is repeated, explained and kept like any other case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, cycle
from pathlib import Path
from typing import NamedTuple

import yaml

from conformance.block_ops import (
    ALL,
    NEEDING,
    NO_DEQUANTIZE,
    NO_DOT,
    OTHER_REFERENCE,
    REFERENCE_ONLY,
    SEARCH_SHARE,
    SEARCHED,
    WEIGHTED,
)
from conformance.errors import ConfigurationError, UsageError
from conformance.ggml_types import BY_NAME, GgmlType

TYPES = ALL

# Elements of one case: enough to keep the processes busy with numbers, few enough to be looked at.
_ELEMENTS = 2**20
# Blocks a row, in turn: a power of two, odd numbers, one.
_ROW_BLOCKS = (8, 5, 11, 1)

_Recipe = dict[str, object]
# What every quantizer of ggml has an answer for, blocks of zeros and sums beyond float32 being none of it.
_TAME: tuple[_Recipe, ...] = (
    {"distribution": "normal"},
    {"distribution": "uneven", "lo": -8, "hi": 8},
    {"distribution": "normal", "scale": 0.02},
    {"distribution": "half", "lo": -16, "hi": 16},
    {"distribution": "wide"},
    {"distribution": "uniform"},
)
_WILD: tuple[_Recipe, ...] = (
    {"distribution": "sparse", "lo": -6, "hi": 2},
    {"distribution": "uneven", "lo": -126, "hi": 60},
    {"distribution": "finite"},
)
_POSITIVE: tuple[_Recipe, ...] = (
    {"distribution": "half", "lo": 0, "hi": 20},
    {"distribution": "half", "lo": 0, "hi": 1},
    {"distribution": "half", "lo": 0, "hi": 20, "scale": 1e-6},
)
_ANY_SIGN: tuple[_Recipe, ...] = (
    {"distribution": "wide", "lo": -6, "hi": 6},
    {"distribution": "sparse", "lo": -3, "hi": 3},
)


class Sweep(NamedTuple):
    """How much of what: ``blocks`` of each type and op (a twentieth where a grid is searched), from ``seed``."""

    types: tuple[str, ...]
    blocks: int
    seed: int

    def write(self, folder: Path) -> Path:
        """Write a case file for each type below ``folder`` and give it.

        Raises UsageError for a type that has no such cases, ConfigurationError where nothing can be written.
        """
        for name in self.types:
            if name not in TYPES:
                raise UsageError(f"type {name!r} cannot be swept", hint=f"These can: {', '.join(TYPES)}.")
        try:
            self._write(folder)
        except OSError as problem:
            raise ConfigurationError(
                f"cannot write the cases: {problem.strerror or problem}", where=str(folder), hint="name another folder by --report"
            ) from problem
        return folder

    @property
    def suites(self) -> tuple[str, ...]:
        """The names of the case files; others may lie there, of an earlier sweep."""
        return tuple(f"sweep/{name.lower()}" for name in self.types or TYPES)

    def _write(self, folder: Path) -> None:
        (folder / "sweep").mkdir(parents=True, exist_ok=True)
        seeds = count(self.seed * 2**32)
        for name, suite in zip(self.types or TYPES, self.suites, strict=True):
            document = {"suite": suite, "spec": f"{name}: any numbers", "cases": dict(_cases(BY_NAME[name], self.blocks, seeds))}
            (folder / f"{suite}.yaml").write_text(yaml.safe_dump(document, sort_keys=False, width=140), encoding="utf-8")


def _cases(kind: GgmlType, blocks: int, seeds: Iterator[int]) -> Iterator[tuple[str, _Recipe]]:
    quantized = max(1, blocks // SEARCH_SHARE) if kind.name in SEARCHED else blocks
    if kind.name not in NEEDING:
        yield from _numbered("rows", _quantized(kind, quantized, seeds, weighted=False))
    if kind.name in (*WEIGHTED, *SEARCHED):
        yield from _numbered("imatrix", _quantized(kind, quantized, seeds, weighted=True))
    if kind.name not in NO_DEQUANTIZE:
        yield from _numbered("bytes", _raw(kind, blocks, seeds))


def _numbered(name: str, cases: Iterable[_Recipe]) -> Iterator[tuple[str, _Recipe]]:
    return ((f"{name}-{number}", case) for number, case in enumerate(cases))


def _quantized(kind: GgmlType, blocks: int, seeds: Iterator[int], *, weighted: bool) -> Iterator[_Recipe]:
    # Where no grid point is near, ggml's searches abort or are undefined: the declared cases say when (docs/block-rules.md, P6).
    searched = kind.name in SEARCHED
    importances = cycle(_POSITIVE if searched else (*_POSITIVE, *_ANY_SIGN))
    for (rows, cols), recipe in zip(_shapes(kind, blocks), cycle(_TAME if searched else (*_TAME, *_WILD))):
        # The reference function of a block without a number of size stores what its memory held before.
        ask = _asked(kind, with_reference=not weighted and recipe in _TAME)
        case: _Recipe = {"type": kind.name, "ask": ask, "rows": _random(seeds, recipe, rows, cols)}
        if weighted:
            case["imatrix"] = _random(seeds, next(importances), 1, cols)
            case["expect"] = {"gguf-py": {"quantize": ["accept", "unsupported"]}}  # gguf-py has some types, but no imatrix
        if kind.name not in NO_DOT:
            case["x"] = _random(seeds, {"distribution": "normal"}, 1, cols)
        yield case


def _asked(kind: GgmlType, *, with_reference: bool) -> list[str]:
    if kind.name in REFERENCE_ONLY:
        return ["quantize:ref"]
    ref = ["quantize:ref"] if kind.name in OTHER_REFERENCE and with_reference else []
    return ["quantize", *ref, "dequantize", *([] if kind.name in NO_DOT else ["dot"])]


def _raw(kind: GgmlType, blocks: int, seeds: Iterator[int]) -> Iterator[_Recipe]:
    for rows, cols in _shapes(kind, blocks):
        yield {"type": kind.name, "blocks": _random(seeds, {}, rows, cols)}


def _random(seeds: Iterator[int], recipe: _Recipe, rows: int, cols: int) -> _Recipe:
    return {"random": {"seed": next(seeds), "rows": rows, "cols": cols, **recipe}}


def _shapes(kind: GgmlType, blocks: int) -> Iterator[tuple[int, int]]:
    """Give rows and cols of each case until there are ``blocks`` blocks; short blocks make rows of as many elements."""
    left, least = blocks, max(1, 256 // kind.block)
    for row_blocks in cycle(size * least for size in _ROW_BLOCKS):
        rows = min(_ELEMENTS // (row_blocks * kind.block), -(-left // row_blocks))
        yield rows, row_blocks * kind.block
        left -= rows * row_blocks
        if left <= 0:
            return


def names(types: Sequence[str]) -> tuple[str, ...]:
    """Give the types as ggml writes them in capitals, each once."""
    return tuple(dict.fromkeys(name.upper() for name in types))
