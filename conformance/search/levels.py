"""Where a type rounds: the levels that an element is rounded to, in units of the scale of its sub-block.

Source: the functions ``quantize_row_*_ref`` and the tables ``kvalues_iq4nl``, ``kvalues_mxfp4`` in ggml/src/ggml-quants.c and
ggml-common.h. They only choose inputs worth trying, so a type whose search moves its scale is none the worse served.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Format(NamedTuple):
    """A float format: ``digits`` of significand after the point, the exponents ``low`` to ``high`` that are worth trying.

    ``least``: the exponent of the distance between two subnormals; one below all others where there are none.
    """

    digits: int
    least: int
    low: int
    high: int


# From half the least subnormal to what overflows.
HALF = Format(10, -24, -25, 15)
_UE4M3 = Format(3, -9, -10, 8)
_E8M0 = Format(0, -127, -127, 124)


class Levels(NamedTuple):
    """``levels``: ascending multiples of the scale; ``width``: elements that share a scale.

    ``affine``: a minimum is added. ``fine``: the sub-block's scale is itself up to so many times the stored one.
    ``stored``: the format of that.
    """

    levels: tuple[float, ...]
    width: int
    affine: bool = False
    fine: int = 1
    stored: Format = HALF

    @property
    def midpoints(self) -> npt.NDArray[np.float32]:
        """What lies in the middle between two neighbouring levels, float32."""
        levels = np.array(self.levels, dtype=np.float32)
        return (levels[1:] + levels[:-1]) / np.float32(2)

    @property
    def extreme(self) -> float:
        """The level farthest from 0."""
        return max(self.levels, key=abs)


def _integers(low: int, high: int) -> tuple[float, ...]:
    return tuple(float(level) for level in range(low, high + 1))


_IQ4 = (-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0)
_FP4 = (-6.0, -4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_IQ2 = (-43.0, -25.0, -8.0, 8.0, 25.0, 43.0)
_IQ3 = (-62.0, -52.0, -44.0, -36.0, -28.0, -20.0, -12.0, -4.0, 4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0)
_IQ1 = (-1.125, -0.875, -0.125, 0.125, 0.875, 1.125)

LEVELS: dict[str, Levels] = {
    "Q4_0": Levels(_integers(-8, 7), 32),
    "Q4_1": Levels(_integers(0, 15), 32, affine=True),
    "Q5_0": Levels(_integers(-16, 15), 32),
    "Q5_1": Levels(_integers(0, 31), 32, affine=True),
    "Q8_0": Levels(_integers(-127, 127), 32),
    "Q8_1": Levels(_integers(-127, 127), 32),
    "Q8_K": Levels(_integers(-127, 127), 256),
    "Q1_0": Levels(_integers(-1, 1), 128),
    "Q2_0": Levels(_integers(-1, 2), 64),
    "Q2_K": Levels(_integers(0, 3), 16, affine=True, fine=15),
    "Q3_K": Levels(_integers(-4, 3), 16, fine=32),
    "Q4_K": Levels(_integers(0, 15), 32, affine=True, fine=63),
    "Q5_K": Levels(_integers(0, 31), 32, affine=True, fine=63),
    "Q6_K": Levels(_integers(-32, 31), 16, fine=128),
    "IQ4_NL": Levels(_IQ4, 32),
    "IQ4_XS": Levels(_IQ4, 32, fine=32),
    "IQ2_XXS": Levels(_IQ2, 32, fine=31),
    "IQ2_XS": Levels(_IQ2, 16, fine=31),
    "IQ2_S": Levels(_IQ2, 16, fine=31),
    "IQ3_XXS": Levels(_IQ3, 32, fine=31),
    "IQ3_S": Levels(_IQ3, 32, fine=31),
    "IQ1_S": Levels(_IQ1, 32, fine=15),
    "IQ1_M": Levels(_IQ1, 16, fine=15),
    "TQ1_0": Levels(_integers(-1, 1), 256),
    "TQ2_0": Levels(_integers(-1, 1), 256),
    "MXFP4": Levels(_FP4, 32, stored=_E8M0),
    "NVFP4": Levels(_FP4, 16, stored=_UE4M3),
}
