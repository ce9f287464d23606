"""Q2_K to Q6_K against the live library, bit for bit, and their layouts by exact values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from impl_live import Live, bits

import impl
from impl.types import by_name

KINDS = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
ONE = np.float16(1).view(np.uint16)


def random_blocks(kind: str, count: int, seed: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, by_name(kind).nbytes), dtype=np.uint8)


def check_dequantize(live: Live, kind: str, blocks: npt.NDArray[np.uint8]) -> None:
    ours = impl.dequantize(kind, blocks, (len(blocks), 256))
    assert (bits(ours) == bits(live.dequantize(kind, blocks.reshape(-1)))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    check_dequantize(live, kind, random_blocks(kind, 3000, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_every_f16_scale_is_taken_alike(live: Live, kind: str) -> None:
    """All 65,536 patterns at each place, zeros, subnormals, infinities and NaNs among them, over random codes."""
    for at in HALVES[kind]:
        for part in range(0, 1 << 16, 1 << 14):
            blocks = random_blocks(kind, 1 << 14, 4)
            blocks[:, at : at + 2] = np.arange(part, part + (1 << 14)).astype("<u2").view(np.uint8).reshape(-1, 2)
            check_dequantize(live, kind, blocks)


def block(kind: str, **fields: list[int]) -> npt.NDArray[np.uint8]:
    """Give one block of zeros with the given bytes at the start of the named fields, and d = dmin = 1."""
    starts = {"Q2_K": {"scales": 0, "qs": 16}, "Q3_K": {"hmask": 0, "qs": 32, "scales": 96}}[kind]
    made = np.zeros(by_name(kind).nbytes, np.uint8)
    for at in HALVES[kind]:
        made[at : at + 2].view(np.uint16)[:] = ONE
    for name, values in fields.items():
        made[starts[name] : starts[name] + len(values)] = values
    return made


def test_q2_k_has_scale_in_the_low_nibble_and_four_runs_a_byte() -> None:
    y = impl.dequantize("Q2_K", block("Q2_K", scales=[0x52, 0, 0x01, 0, 0x03], qs=[0b11100100]), (256,))
    assert y[[0, 1, 32, 64, 96]].tolist() == [2 * 0 - 5, -5, 1, 3 * 2, 0]


def test_q3_k_subtracts_4_where_the_high_bit_is_clear() -> None:
    y = impl.dequantize("Q3_K", block("Q3_K", hmask=[1], qs=[0b00001010], scales=[1, *[0] * 7, 2]), (256,))
    assert y[[0, 1, 32]].tolist() == [2 * (1 + 2 * 16 - 32), -4 * (1 + 2 * 16 - 32), (2 - 4) * -32]
