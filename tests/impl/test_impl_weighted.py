"""Q4_0, Q4_1, Q5_0 and Q5_1 with an imatrix against the live library, byte for byte."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from impl_live import Live
from impl_rows import rows_with_specials
from impl_weights import imatrices, searched_rows

import impl
from impl.types import by_name

KINDS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1"]
COLS = 768
ROWS = dict(searched_rows(3, COLS))
IMATRICES = dict(imatrices(COLS))
SPECIAL = dict(rows_with_specials())


def check(live: Live, kind: str, rows: npt.NDArray[np.float32], imatrix: npt.NDArray[np.float32]) -> None:
    nbytes = by_name(kind).nbytes
    ours = impl.quantize(kind, rows, imatrix).reshape(-1, nbytes)
    assert np.flatnonzero((ours != live.quantize_chunk(kind, rows, imatrix).reshape(-1, nbytes)).any(axis=1)).tolist() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("imatrix", IMATRICES)
@pytest.mark.parametrize("rows", ROWS)
def test_an_imatrix_weighs_alike(live: Live, kind: str, imatrix: str, rows: str) -> None:
    check(live, kind, ROWS[rows], IMATRICES[imatrix])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", SPECIAL)
def test_specials_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    """Rounding is by an addition, so that NaN and infinities have defined answers too."""
    check(live, kind, SPECIAL[rows], dict(imatrices(SPECIAL[rows].shape[1]))["positive"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cols", [32, 96, 2016, 2080, 4096])
def test_any_number_of_blocks(live: Live, kind: str, cols: int) -> None:
    """64 blocks are searched side by side, of one row or of several, and the rows differ in their mean square."""
    rng = np.random.default_rng(cols)
    rows = (rng.standard_normal((5, cols)) * 10.0 ** rng.uniform(-2, 2, (5, 1))).astype(np.float32)
    check(live, kind, rows, rng.uniform(0.1, 10, cols).astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_an_imatrix_of_ones_is_not_none(kind: str) -> None:
    rows = ROWS["normal"]
    assert (impl.quantize(kind, rows, np.ones(COLS, np.float32)) != impl.quantize(kind, rows)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows(kind: str) -> None:
    assert impl.quantize(kind, np.empty((0, 32), np.float32), np.ones(32, np.float32)).shape == (0, by_name(kind).nbytes)
