"""Random words for numbers by the million. Not the generator of the cases (docs/numbers.md): what search finds is written out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]


class Draws:
    """Words from a seed: the same seed gives the same ones, on every machine (numpy fixes the stream of SFC64)."""

    def __init__(self, seed: int) -> None:
        self._source = np.random.SFC64(seed)

    def words(self, *shape: int) -> Words:
        """Give uint32 of ``shape``, each bit even odds."""
        count = int(np.prod(shape))
        # Whole raw words are several times as quick as Generator.bytes, which draws half a word at a time.
        raw = self._source.random_raw((count + 1) // 2).astype("<u8", copy=False)
        return raw.view("<u4")[:count].reshape(shape)

    def octets(self, *shape: int) -> npt.NDArray[np.uint8]:
        """Give uint8 of ``shape``, each bit even odds."""
        count = int(np.prod(shape))
        return self.words((count + 3) // 4).view(np.uint8)[:count].reshape(shape)

    def below(self, bound: int, *shape: int) -> npt.NDArray[np.int64]:
        """Give integers from 0 to ``bound`` - 1, about as often each; ``bound`` is at most 2^16."""
        return ((self.words(*shape) >> np.uint32(16)).astype(np.int64) * bound) >> 16

    def between(self, low: int, high: int, *shape: int) -> npt.NDArray[np.int64]:
        """Give integers from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1, *shape)

    def sizes(self, low: int, high: int, *shape: int) -> npt.NDArray[np.float32]:
        """Give positive float32 with exponents from ``low`` to ``high`` (-149 to 127): any significand, or of every other one 1."""
        significands = (self.words(*shape) & np.uint32(0x7FFFFF)) * (self.words(*shape) & np.uint32(1))
        ones = (significands | np.uint32(0x3F800000)).view(np.float32)
        return np.ldexp(ones, self.between(low, high, *shape).astype(np.int32))
