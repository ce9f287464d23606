"""IQ1_S and IQ1_M against the live library, bit for bit, and by exact values."""

from __future__ import annotations

import numpy as np
import pytest
from impl_live import Live, bits
from impl_rows import rows_with_specials
from impl_weights import searched_rows

import impl
from impl.types import by_name

KINDS = ["IQ1_S", "IQ1_M"]
COLS = 768
ROWS = dict(searched_rows(2, COLS))
SPECIAL = dict(rows_with_specials())


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    """With every f16 scale, zeros, subnormals, infinities and NaNs among them."""
    blocks = np.random.default_rng(3).integers(0, 256, (1 << 16, by_name(kind).nbytes), dtype=np.uint8)
    d = np.arange(1 << 16, dtype=np.uint16)
    if kind == "IQ1_S":
        blocks[:, :2] = d.astype("<u2").view(np.uint8).reshape(-1, 2)
    else:
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (d >> 4 * i & 15) << 4
    for part in np.array_split(blocks, 8):
        ours = impl.dequantize(kind, part, (len(part), 256))
        assert (bits(ours) == bits(live.dequantize(kind, part.reshape(-1)))).all()


# The first and last points of ``iq1s_grid`` in ggml/src/ggml-common.h.
POINTS = {0: [-1] * 8, 1: [1, *[-1] * 7], 2: [0, 0, *[-1] * 6], 2047: [1] * 8}


def test_iq1_s_index_code_and_shift() -> None:
    """Upper index bits stand 3 by 3 in each word, the code of 32 elements above, the shift on top."""
    low, high = [0, 1, 2, 255], [0, 0, 0, 7]
    words = [sum(high[i] << 3 * i for i in range(4)) | code << 12 | (code % 2) << 15 for code in range(8)]
    block = np.array([0, 0x3C, *low * 8, *(byte for word in words for byte in word.to_bytes(2, "little"))], np.uint8)
    values = impl.dequantize("IQ1_S", block, (256,)).reshape(8, 4, 8)
    points = np.array([POINTS[index] for index in (0, 1, 2, 2047)])
    for code in range(8):
        assert (values[code] == (2 * code + 1) * (points + (-0.125 if code % 2 else 0.125))).all()


def test_iq1_m_index_codes_and_shifts() -> None:
    """A nibble for each 8 elements: upper index bits, shift on top. Words: four codes of 16 elements, 4 bits of d on top."""
    low, nibbles = [0, 1, 2, 255], [0, 8, 0, 15]
    high = [nibbles[0] | nibbles[1] << 4, nibbles[2] | nibbles[3] << 4]
    codes = [(3 * i + 1) % 8 for i in range(16)]
    d = [0, 0, 0xC, 0x3]  # 0x3C00 is 1.0
    words = [sum(codes[4 * i + j] << 3 * j for j in range(4)) | d[i] << 12 for i in range(4)]
    block = np.array([*low * 8, *high * 8, *(byte for word in words for byte in word.to_bytes(2, "little"))], np.uint8)
    values = impl.dequantize("IQ1_M", block, (256,)).reshape(8, 4, 8)
    moved = np.array([POINTS[index] for index in (0, 1, 2, 2047)]) + np.array([[0.125], [-0.125], [0.125], [-0.125]])
    factors = np.array([2 * code + 1 for code in codes]).reshape(8, 2)
    assert (values == np.repeat(factors, 2, axis=1)[:, :, np.newaxis] * moved).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [*ROWS, *SPECIAL])
def test_dot_products_have_the_same_bits(live: Live, kind: str, rows: str) -> None:
    x = {**ROWS, **SPECIAL}[rows]
    w = np.random.default_rng(5).integers(0, 256, (len(x), by_name(kind).row_bytes(x.shape[1])), dtype=np.uint8)
    theirs = [live.dot(kind, "Q8_K", w[i], live.quantize("Q8_K", x[i]), x.shape[1]) for i in range(len(x))]
    assert (bits(impl.dot(kind, w, x)) == bits(np.array(theirs))).all()
