"""The ggml types: number in a file, name, elements a block, bytes a block.

Source: the enum ``ggml_type`` (ggml/include/ggml.h) and the ``block_*`` structs (ggml/src/ggml-common.h).
"""

from __future__ import annotations

import reprlib
from typing import NamedTuple

from impl.errors import UnsupportedError


class TensorType(NamedTuple):
    """One ggml type. A type that ggml has removed keeps its number and has neither ``block`` nor ``nbytes``."""

    id: int
    name: str
    block: int = 0
    nbytes: int = 0

    @property
    def removed(self) -> bool:
        """True for a number that ggml no longer reads."""
        return self.block == 0

    def row_bytes(self, cols: int) -> int:
        """Give the bytes of a row of ``cols`` elements; ``cols`` is a multiple of ``block``."""
        return cols // self.block * self.nbytes


TYPES: tuple[TensorType, ...] = (
    TensorType(0, "F32", 1, 4),
    TensorType(1, "F16", 1, 2),
    TensorType(2, "Q4_0", 32, 18),
    TensorType(3, "Q4_1", 32, 20),
    TensorType(4, "Q4_2"),
    TensorType(5, "Q4_3"),
    TensorType(6, "Q5_0", 32, 22),
    TensorType(7, "Q5_1", 32, 24),
    TensorType(8, "Q8_0", 32, 34),
    TensorType(9, "Q8_1", 32, 36),
    TensorType(10, "Q2_K", 256, 84),
    TensorType(11, "Q3_K", 256, 110),
    TensorType(12, "Q4_K", 256, 144),
    TensorType(13, "Q5_K", 256, 176),
    TensorType(14, "Q6_K", 256, 210),
    TensorType(15, "Q8_K", 256, 292),
    TensorType(16, "IQ2_XXS", 256, 66),
    TensorType(17, "IQ2_XS", 256, 74),
    TensorType(18, "IQ3_XXS", 256, 98),
    TensorType(19, "IQ1_S", 256, 50),
    TensorType(20, "IQ4_NL", 32, 18),
    TensorType(21, "IQ3_S", 256, 110),
    TensorType(22, "IQ2_S", 256, 82),
    TensorType(23, "IQ4_XS", 256, 136),
    TensorType(24, "I8", 1, 1),
    TensorType(25, "I16", 1, 2),
    TensorType(26, "I32", 1, 4),
    TensorType(27, "I64", 1, 8),
    TensorType(28, "F64", 1, 8),
    TensorType(29, "IQ1_M", 256, 56),
    TensorType(30, "BF16", 1, 2),
    TensorType(31, "Q4_0_4_4"),
    TensorType(32, "Q4_0_4_8"),
    TensorType(33, "Q4_0_8_8"),
    TensorType(34, "TQ1_0", 256, 54),
    TensorType(35, "TQ2_0", 256, 66),
    TensorType(36, "IQ4_NL_4_4"),
    TensorType(37, "IQ4_NL_4_8"),
    TensorType(38, "IQ4_NL_8_8"),
    TensorType(39, "MXFP4", 32, 17),
    TensorType(40, "NVFP4", 64, 36),
    TensorType(41, "Q1_0", 128, 18),
    TensorType(42, "Q2_0", 64, 18),
)

_BY_NAME = {kind.name: kind for kind in TYPES if not kind.removed}


def by_id(number: int) -> TensorType:
    """Give the type with this number in a file, removed ones included.

    Raises:
        UnsupportedError: the number is none of ggml's.

    """
    if not 0 <= number < len(TYPES):
        raise UnsupportedError(f"unknown ggml type number {number}: the known ones are 0 to {len(TYPES) - 1}")
    return TYPES[number]


def by_name(name: str) -> TensorType:
    """Give the type that ggml calls ``name``, in capitals (``"Q4_K"``).

    Raises:
        UnsupportedError: no type of that name, or one that ggml has removed.

    """
    if not isinstance(name, str) or name not in _BY_NAME:
        # reprlib: numbers given where the name belongs are not printed in full
        raise UnsupportedError(f"unknown ggml type {reprlib.repr(name)}: the known ones are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
