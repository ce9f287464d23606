"""Looks at rows before they are quantized, and refuses what would silently come back as something else."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.arguments import require_floats
from impl.blocks.codec import Floats
from impl.errors import InputError, UnsupportedError
from impl.scale_rules import RULES, Prediction, Rule
from impl.types import TensorType, by_name

# Elements looked at in one go.
PIECE = 1 << 18


def check(type: str, rows: npt.NDArray[np.float32]) -> None:  # noqa: A002 - ggml's word
    """Refuse float32 ``rows`` of shape (..., cols) of which ``impl.quantize(type, rows)`` would make something else.

    Refused are, in the order of the blocks: an element that is NaN or infinite; a block whose scale the type cannot hold; a block
    whose scale is stored so coarsely that its largest value is off by more than the type's tolerance, or is lost altogether.
    ``amax`` is the largest magnitude of a block; ``impl.scale_rules.RULES`` has each type's rule:

    - Tolerance 1 %, the scale as it will be stored: Q8_0 ``d = amax/127``, Q4_0 ``amax/8``, Q5_0 ``amax/16``, Q2_0, TQ1_0 and
      TQ2_0 ``amax``, Q1_0 the mean magnitude; Q4_1 and Q5_1 ``d = (max-min)/15`` or ``/31`` and ``m = min``, each by what it
      does to the extremes; Q8_1 as Q8_0, and its sum must fit float16.
    - Scales that ggml searches for, near an estimate: Q2_K, Q4_K, Q5_K ``d = range/45, /945, /1953`` and ``dmin = -min/15, /63,
      /63``; Q3_K ``amax/128``; Q6_K ``amax/4096``; IQ4_NL ``amax/127``; IQ4_XS ``amax/4064``; IQ2 ``amax/155``; IQ3 ``amax/465``;
      IQ1 ``amax/15``. Tolerance one step of the largest code, measured by the worst that float16's rounding can do; too large is
      what does not fit when the search doubles it (IQ1: makes it 16 times as large).
    - F16, BF16: the number must not become infinite. MXFP4: amax at least 2^-125. NVFP4: amax/6 at least 2^-10, and cut off to 448
      by no more than 1/16. Q8_K: 127/amax must be finite.

    Raises:
        InputError: the first such block, with row, block, element and value; or ``rows`` is not float32, or of no whole blocks.
        UnsupportedError: nothing is quantized to this type.

    """
    kind = by_name(type)
    if type not in RULES:
        raise UnsupportedError(f"nothing is quantized to {type}; there are rules for: {', '.join(RULES)}")
    blocks = _blocks(kind, rows)
    step = max(1, PIECE // kind.block)
    for start in range(0, len(blocks), step):
        with np.errstate(all="ignore"):  # overflow is what is looked for
            _check_piece(kind, blocks[start : start + step], start, rows.shape[-1] // kind.block)


def _blocks(kind: TensorType, rows: npt.NDArray[np.float32]) -> Floats:
    require_floats(rows, "rows")
    if rows.shape[-1] % kind.block:
        raise InputError(f"a row of {rows.shape[-1]} elements is no multiple of {kind.block}, the block of {kind.name}")
    return np.ascontiguousarray(rows).reshape(-1, kind.block)


def _check_piece(kind: TensorType, piece: Floats, start: int, row_blocks: int) -> None:
    rule = RULES[kind.name]
    finite = np.asarray(np.isfinite(piece).all(axis=1))
    sound = piece if finite.all() else np.where(finite[:, np.newaxis], piece, np.float32(0))
    found = rule.predict(sound)
    refused = ~finite | ~(found.error <= rule.tolerance)
    if not refused.any():
        return
    block = int(refused.argmax())
    element = int((~np.isfinite(piece[block])).argmax() if not finite[block] else np.abs(piece[block]).argmax())
    row, in_row = divmod(start + block, row_blocks)
    problem = _too_coarse(kind, rule, found, block) if finite[block] else "it must be a finite number"
    raise InputError(f"row {row}, block {in_row}, element {element} is {piece[block, element]:.9g}: {problem}")


def _too_coarse(kind: TensorType, rule: Rule, found: Prediction, block: int) -> str:
    scale, stored, error = (float(part[block]) for part in found)
    what = f"{kind.name} keeps {rule.text}, here about {scale:.3g}, as {rule.stored_as}"
    advice = f"make the numbers of the tensor {'smaller' if scale > 1 else 'larger'}, or keep it in F32"
    if not np.isfinite(error):
        return f"{what}, which cannot hold it; {advice}"
    lost = "it is stored as 0 and the block is lost" if stored == 0 else f"the largest value may come back {error:.1%} off"
    return f"{what}: {lost}; {advice}"
