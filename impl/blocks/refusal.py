"""Numbers that cannot be quantized: ggml would turn them into integers, which C leaves undefined.

The check is one pass over all rows, so that an error can say where the number stands.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Floats
from impl.blocks.kernel import kernel
from impl.errors import InputError
from impl.types import TensorType

_STRETCH = 4096
_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITE = 0x7F800000


def refuse_non_finite(rows: Floats, kind: TensorType) -> None:
    """Raise InputError for the first NaN or infinity in ``rows``, of shape (rows, cols)."""
    _refuse(rows, kind, nans=True)


def refuse_infinite(rows: Floats, kind: TensorType) -> None:
    """Raise InputError for the first infinity in ``rows``, of shape (rows, cols)."""
    _refuse(rows, kind, nans=False)


def _refuse(rows: Floats, kind: TensorType, *, nans: bool) -> None:
    at = _first_special(rows.reshape(-1).view(np.int32), nans)
    if at < 0:
        return
    row, col = divmod(at, rows.shape[1])
    block, element = divmod(col, kind.block)
    raise InputError(
        f"row {row}, block {block}, element {element} is {rows[row, col]}: {kind.name} cannot be made of it, "
        "since C leaves the conversion to an integer undefined; put a finite number there"
    )


@kernel
def _first_special(bits: npt.NDArray[np.int32], nans: bool) -> int:
    """Give the place of the first infinity (and NaN, where those count), or -1. Stretches without any are passed quickly."""
    for start in range(0, len(bits), _STRETCH):
        stretch = bits[start : start + _STRETCH]
        greatest = np.int32(0)
        for j in range(len(stretch)):
            greatest = max(greatest, np.int32(stretch[j] & _MAGNITUDE))
        if greatest >= _INFINITE:
            for j in range(len(stretch)):
                magnitude = stretch[j] & _MAGNITUDE
                if magnitude == _INFINITE or (nans and magnitude > _INFINITE):
                    return start + j
    return -1
