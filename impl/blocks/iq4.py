"""IQ4_NL and IQ4_XS: codes of 4 bits for 16 uneven levels; IQ4_XS keeps eight blocks in a super-block, with scales of 6 bits.

Source: ``quantize_row_iq4_nl_impl`` and what calls it, ``dequantize_row_iq4_*`` in ggml/src/ggml-quants.c,
``ggml_vec_dot_iq4_*_generic`` in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Codec, Floats, raw_bytes
from impl.blocks.extremes import signed_extreme
from impl.blocks.iq4_levels import multiply_levels, read_levels, write_codes
from impl.blocks.iq4_search import NOTHING, find_scales
from impl.blocks.iq4_steps import load_steps, store_steps
from impl.blocks.products import scaled, sum_in_order
from impl.blocks.rounding import column, reciprocal, to_f16
from impl.errors import InputError
from impl.types import by_name

IQ4_NL = np.dtype([("d", "<f2"), ("qs", "u1", (16,))])
IQ4_XS = np.dtype([("d", "<f2"), ("scales_h", "<u2"), ("scales_l", "u1", (4,)), ("qs", "u1", (128,))])
_NL_CODES = 2
_XS_CODES = 8

_TRIES = 7
_NO_IMATRIX = np.empty((0, 32), np.float32)


def _scales(x: Floats, imatrix: Floats | None, record: int, tries: int = _TRIES) -> Floats:
    """Give the scale of each 32 elements of ``x``, whatever its shape: float32 of shape (blocks,)."""
    found = np.empty(x.size // 32, np.float32)
    columns = (_NO_IMATRIX if imatrix is None else imatrix).reshape(-1, 32)
    columns.flags.writeable = False  # as ``x`` is: one kind of array, compiled for once
    find_scales(x.reshape(-1, 32), columns, record, tries, found)
    return found


def _quantize_iq4_nl(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    scale = _scales(x, imatrix, 1)
    out["d"] = to_f16(scale).reshape(out.shape)
    write_codes(x.reshape(-1, 1, 32), reciprocal(scale)[:, np.newaxis], raw_bytes(out), _NL_CODES)


def _quantize_iq4_nl_ref(x: Floats, out: Blocks) -> None:
    """Quantize with the first scale tried and the codes it was found with, not those nearest under it."""
    extreme = signed_extreme(x)
    out["d"] = to_f16(_scales(x, None, 1, tries=0))
    write_codes(x.reshape(-1, 1, 32), (np.float32(1) / (extreme / np.float32(-127)))[:, np.newaxis], raw_bytes(out), _NL_CODES)
    _repeat_codes(np.abs(extreme) < NOTHING, out)


def _repeat_codes(empty: npt.NDArray[np.bool_], out: Blocks) -> None:
    """Give blocks with nothing in them the codes of the last block before that has something, as ggml's buffer does.

    Raises InputError where there is none: ggml stores whatever its buffer held.
    """
    source = np.maximum.accumulate(np.where(empty, -1, np.arange(len(empty))))
    if len(source) and source[0] < 0:
        raise InputError(
            "row 0, block 0 of IQ4_NL has no number of 1e-15 or more: ggml's reference function stores for it what its memory"
            " happens to hold; use the normal path, or put another block first"
        )
    out["qs"] = out["qs"][source]


def _quantize_iq4_xs(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    raw = raw_bytes(out)
    scale = _scales(x, imatrix, 8).reshape(-1, 8)
    d = -signed_extreme(scale) / np.float32(32)
    out["d"] = to_f16(d).reshape(out.shape)
    inverse = np.empty_like(scale)
    store_steps(scale, d, raw, inverse)
    write_codes(x.reshape(-1, 8, 32), inverse, raw, _XS_CODES)


def _dequantize_iq4_nl(blocks: Blocks, out: Floats) -> None:
    read_levels(raw_bytes(blocks), _NL_CODES, column(blocks["d"]), out.reshape(-1, 1, 32))


def _dequantize_iq4_xs(blocks: Blocks, out: Floats) -> None:
    raw = raw_bytes(blocks)
    scale = np.empty((len(blocks), 8), np.float32)
    load_steps(raw, scale)
    scale *= column(blocks["d"])
    read_levels(raw, _XS_CODES, scale, out.reshape(-1, 8, 32))


def _dot_iq4_nl(w: Blocks, y: Blocks) -> Floats:
    sums = np.empty((len(w), 1), np.float32)
    multiply_levels(raw_bytes(w), _NL_CODES, np.ascontiguousarray(y["qs"])[:, np.newaxis], sums)
    return scaled(sums[:, 0], w, y)


def _dot_iq4_xs(w: Blocks, y: Blocks) -> Floats:
    """Add sub-block by sub-block: ``(dw * dy) * step * sum``."""
    raw = raw_bytes(w)
    step, sums = np.empty((2, w.size, 8), np.float32)
    load_steps(raw, step)
    multiply_levels(raw, _XS_CODES, np.ascontiguousarray(y["qs"]).reshape(-1, 8, 32), sums)
    step *= (w["d"].astype(np.float32) * y["d"]).reshape(-1, 1)
    step *= sums
    return sum_in_order(step.reshape(len(w), -1))


CODECS = (
    Codec(
        by_name("IQ4_NL"),
        IQ4_NL,
        dequantize=_dequantize_iq4_nl,
        dot=_dot_iq4_nl,
        partner="Q8_0",
        uses_imatrix=True,
        quantize_rows=_quantize_iq4_nl,
        quantize_ref=_quantize_iq4_nl_ref,
        ref_whole=True,
        compiled=True,
        streams=True,
    ),
    Codec(
        by_name("IQ4_XS"),
        IQ4_XS,
        dequantize=_dequantize_iq4_xs,
        partner="Q8_K",
        uses_imatrix=True,
        quantize_rows=_quantize_iq4_xs,
        dot_rows=_dot_iq4_xs,
        compiled=True,
        streams=True,
    ),
)
