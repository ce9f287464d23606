"""Q8_K: 256 signed bytes, a float32 scale, and the sum of each 16; it serves dot products with the K and IQ types only.

Source: ``quantize_row_q8_K_ref`` and ``dequantize_row_q8_K`` in ggml/src/ggml-quants.c. The library leaves the sums of a block
of zeros as it finds them; here they are 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.kernel import inner, kernel
from impl.blocks.nearest import nearest
from impl.types import by_name

Q8_K = np.dtype([("d", "<f4"), ("qs", "i1", (256,)), ("bsums", "<i2", (16,))])

_STEPS = np.float32(-127)
_ONE = np.float32(1)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITE = np.int32(0x7F800000)


@inner
def _extreme(x: Floats) -> np.float32:
    """Give the first element of greatest magnitude; 0 where all are zeros or NaN.

    Magnitudes are compared as integers, which order like the floats and can be reduced in any order.
    """
    bits = x.view(np.int32)
    greatest = np.int32(0)
    for i in range(len(bits)):
        magnitude = bits[i] & _MAGNITUDE
        magnitude = np.int32(0) if magnitude > _INFINITE else magnitude
        greatest = max(greatest, magnitude)
    if greatest == 0:
        return np.float32(0)
    i = 0
    while bits[i] & _MAGNITUDE != greatest:
        i += 1
    return np.float32(x[i])


@kernel
def _quantize(x: Floats, d: Floats, qs: npt.NDArray[np.int8], sums: npt.NDArray[np.int16]) -> None:
    for block in range(len(x)):
        row = x[block]
        extreme = _extreme(row)
        if extreme == 0:
            d[block] = extreme
            qs[block] = 0
            sums[block] = 0
            continue
        inverse = _STEPS / extreme
        codes = qs[block]
        for i in range(256):
            codes[i] = np.int8(min(nearest(np.float32(inverse * row[i])), np.int32(127)))
        for j in range(16):
            total = np.int32(0)
            for i in range(16):
                total += codes[16 * j + i]
            sums[block, j] = total
        d[block] = _ONE / inverse


def _quantize_q8_k(x: Floats, out: Blocks) -> None:
    _quantize(x, out["d"], out["qs"], out["bsums"])


@kernel
def _dequantize(d: Floats, raw: Bytes, out: Floats) -> None:
    for block in range(len(raw)):
        scale, quants, row = d[block], raw[block, 4:260].view(np.int8), out[block]
        for i in range(len(quants)):
            row[i] = scale * np.float32(quants[i])


def _dequantize_q8_k(blocks: Blocks, out: Floats) -> None:
    _dequantize(np.ascontiguousarray(blocks["d"]), raw_bytes(blocks), out)


CODECS = (Codec(by_name("Q8_K"), Q8_K, dequantize=_dequantize_q8_k, quantize_ref=_quantize_q8_k, compiled=True, streams=True),)
