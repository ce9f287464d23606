"""``impl.validate`` against the live ``ggml_validate_row_data``."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import numpy.typing as npt
import pytest
from impl_live import Live

import impl
from impl.types import TYPES, by_name

KINDS = [kind.name for kind in TYPES if not kind.removed]
BLOCKS = 64

# Bytes of each type's scales, written down from ggml-common.h: (offset, width in bytes).
SCALES = {
    **dict.fromkeys(("Q1_0", "Q2_0", "Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS", "IQ1_S"), ((0, 2),)),
    **dict.fromkeys(("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "F16", "BF16"), ((0, 2),)),
    **dict.fromkeys(("Q4_1", "Q5_1", "Q8_1", "Q4_K", "Q5_K"), ((0, 2), (2, 2))),
    **dict.fromkeys(("F32", "Q8_K"), ((0, 4),)),
    "F64": ((0, 8),),
    "Q2_K": ((80, 2), (82, 2)),
    "Q3_K": ((108, 2),),
    "Q6_K": ((208, 2),),
    "IQ1_M": ((49, 1), (51, 1), (53, 1), (55, 1)),
    "TQ1_0": ((52, 2),),
    "TQ2_0": ((64, 2),),
    "MXFP4": ((0, 1),),
    "NVFP4": ((0, 1), (1, 1), (2, 1), (3, 1)),
}


def _library(live: Live, kind: str, data: npt.NDArray[np.uint8]) -> bool:
    function = live.base.ggml_validate_row_data
    function.restype = ctypes.c_bool
    return bool(function(by_name(kind).id, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.size)))


def _sound(kind: str, count: int = BLOCKS) -> npt.NDArray[np.uint8]:
    """Random blocks whose scales are finite: the upper byte of each is one that no exponent of ones has."""
    rng = np.random.default_rng(11)
    blocks = rng.integers(0, 256, (count, by_name(kind).nbytes), dtype=np.uint8)
    for offset, width in SCALES.get(kind, ()):
        blocks[:, offset + width - 1] = 0x3B
    return blocks


@pytest.mark.parametrize("kind", KINDS)
def test_random_blocks_one_by_one(live: Live, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    rng = np.random.default_rng(12)
    blocks = rng.integers(0, 256, (300, by_name(kind).nbytes), dtype=np.uint8)
    accepted = [_library(live, kind, block) for block in blocks]
    assert [impl.validate(kind, block) is None for block in blocks] == accepted
    found = impl.validate(kind, blocks)
    assert (found.block if found else None) == (accepted.index(False) if False in accepted else None)
    capfd.readouterr()  # the library tells each refusal on stderr


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in SCALES and kind != "Q8_1"])
def test_every_upper_byte_of_each_scale(live: Live, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    """The bytes below it at their bounds. Both verdicts must come, or the sweep would show nothing."""
    verdicts = set()
    for offset, width in SCALES[kind]:
        lower = list(itertools.product((0, 1, 0x7F, 0x80, 0xFF), repeat=min(width - 1, 2)))
        block = _sound(kind, 1)[0]
        for upper, below in itertools.product(range(256), lower):
            block[offset : offset + width] = [*[0] * (width - 1 - len(below)), *below, upper]
            accepted = _library(live, kind, block)
            assert (impl.validate(kind, block) is None) == accepted, block[offset : offset + width]
            verdicts.add(accepted)
    assert verdicts == ({True} if kind in ("NVFP4", "IQ1_M") else {True, False})
    capfd.readouterr()


@pytest.mark.parametrize("kind", KINDS)
def test_one_damaged_block_among_sound_ones(live: Live, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    blocks = _sound(kind)
    assert (impl.validate(kind, blocks) is None) == _library(live, kind, blocks) == (kind != "Q8_1")
    for offset, width in SCALES.get(kind, ()):
        damaged = blocks.copy()
        damaged[41, offset : offset + width] = 255
        found = impl.validate(kind, damaged)
        assert (found is None) == _library(live, kind, damaged)
        assert found is None or kind == "Q8_1" or found.block == 41
    capfd.readouterr()


def test_iq1_m_with_its_scale_spread_over_four_words(live: Live, capfd: pytest.CaptureFixture[str]) -> None:
    for scale in (0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF, 0xFBFF, 0x0000, 0x7D32):
        block = _sound("IQ1_M", 1)[0]
        for word in range(4):
            block[49 + 2 * word] = block[49 + 2 * word] & 0x0F | (scale >> 4 * word & 0xF) << 4
        accepted, found = _library(live, "IQ1_M", block), impl.validate("IQ1_M", block)
        assert (found is None) == accepted == (scale & 0x7C00 != 0x7C00)
        assert found is None or f"(0x{scale:04x} as f16)" in found.problem
    capfd.readouterr()


@pytest.mark.parametrize("value", [3.4028234663852886e38, 3.4028235677973362e38, 3.4028235677973366e38, 1e300, -1e39])
def test_a_float64_is_judged_as_float32(live: Live, capfd: pytest.CaptureFixture[str], value: float) -> None:
    data = np.array([value]).view(np.uint8)
    assert (impl.validate("F64", data) is None) == _library(live, "F64", data)
    capfd.readouterr()


@pytest.mark.parametrize(("kind", "field", "offset"), [("Q4_K", "dmin", 2), ("Q2_K", "d", 80), ("Q5_1", "m", 2), ("Q8_0", "d", 0)])
def test_the_scale_to_blame_is_named_with_its_bits(kind: str, field: str, offset: int) -> None:
    blocks = _sound(kind)
    blocks[5, offset : offset + 2] = [0x00, 0xFC]
    assert impl.validate(kind, blocks) == (5, field, f"{field} is -infinite (0xfc00 as f16)")


def test_the_first_bad_block_is_given_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("impl.validation.PIECE", 16)
    blocks = _sound("Q8_0")
    blocks[[37, 50], :2] = 255
    found = impl.validate("Q8_0", blocks)
    assert found is not None
    assert (found.block, found.problem) == (37, "d is NaN (0xffff as f16)")


def test_what_is_no_whole_number_of_blocks_is_refused(live: Live, capfd: pytest.CaptureFixture[str]) -> None:
    data = np.zeros(35, np.uint8)
    assert not _library(live, "Q8_0", data)
    with pytest.raises(impl.InputError, match=r"35 bytes are no whole number of Q8_0 blocks, which take 34 bytes"):
        impl.validate("Q8_0", data)
    capfd.readouterr()


def test_a_removed_type_is_unknown() -> None:
    with pytest.raises(impl.UnsupportedError, match="Q4_2"):
        impl.validate("Q4_2", b"")


@pytest.mark.parametrize("kind", KINDS)
def test_no_blocks_at_all(live: Live, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    assert (impl.validate(kind, b"") is None) == _library(live, kind, np.zeros(0, np.uint8))
    capfd.readouterr()
