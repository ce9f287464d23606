"""Q8_K against the live library, byte for byte, and its sums by exact arithmetic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from impl_live import Live, bits
from impl_rows import finite_rows, rows_with_specials

import impl
from impl.blocks.q8_k import Q8_K

ROWS = {**dict(finite_rows()), **dict(rows_with_specials())}


def without_stale_sums(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Clear the sums of blocks of zeros, which the library does not write."""
    records = blocks.reshape(-1).view(Q8_K).copy()
    records["bsums"][(records["d"] == 0) & ~records["qs"].any(axis=1)] = 0
    return records.view(np.uint8)


@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_quantized_to_the_same_bytes(live: Live, rows: str) -> None:
    x = ROWS[rows].reshape(-1, 512)
    assert (impl.quantize("Q8_K", x).reshape(-1) == without_stale_sums(live.quantize("Q8_K", x))).all()


def test_any_bytes_are_dequantized_to_the_same_floats(live: Live) -> None:
    blocks = np.random.default_rng(1).integers(0, 256, (2000, 292), dtype=np.uint8)
    assert (bits(impl.dequantize("Q8_K", blocks, (2000, 256))) == bits(live.dequantize("Q8_K", blocks.reshape(-1)))).all()


def test_the_first_of_equal_magnitudes_gives_the_scale_its_sign() -> None:
    x = np.zeros(256, np.float32)
    x[[3, 9, 20]] = [-127, 127, 0.5]
    record = impl.quantize("Q8_K", x).view(Q8_K)[0]
    assert record["d"] == 1
    assert record["qs"][[3, 9, 20]].tolist() == [-127, 127, 0]  # a tie goes to the even


def test_zeros_have_a_scale_of_zero_and_no_sums() -> None:
    assert not impl.quantize("Q8_K", np.full((2, 256), -0.0, np.float32)).any()


def test_the_sums_are_those_of_16_quants_each() -> None:
    record = impl.quantize("Q8_K", np.random.default_rng(2).standard_normal(512).astype(np.float32)).view(Q8_K)
    assert record["bsums"].tolist() == record["qs"].reshape(2, 16, 16).sum(axis=2).tolist()
