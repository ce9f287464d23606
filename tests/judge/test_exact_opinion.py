"""The exact model's word on a divergence: who is right about the value, and how it comes about."""

from pathlib import Path

import numpy as np
import pytest

from conformance.ggml_types import BY_NAME
from conformance.judge.numbers import Shape, compare_outputs

# Two blocks: d = 1 and d = 2; the nibbles are 7 (elements 0 to 15) and 9 (16 to 31), so -1, 1 and -2, 2.
BLOCKS = bytes.fromhex("003c" + "97" * 16 + "0040" + "97" * 16)
SHAPE = Shape("dequantize", BY_NAME["Q4_0"], 32, "llama.cpp", floats=True, width=32, subject="mine")


def _values() -> np.ndarray:
    return np.repeat(np.array([-1, 1, -2, 2], np.float32), 16)


def _remarks(
    tmp_path: Path, expected: np.ndarray, found: np.ndarray, shape: Shape = SHAPE, data: bytes = BLOCKS
) -> tuple[str, ...]:
    blocks = tmp_path / "blocks.bin"
    blocks.write_bytes(data)
    (divergence,) = compare_outputs(shape._replace(blocks=blocks), expected.view(np.uint8), found.view(np.uint8))
    return divergence.remarks


def _changed(value: float, index: int = 51) -> np.ndarray:
    values = _values()
    values[index] = value
    return values


HOW = "d = 0x4000 = 2, q = 9: d * (q - 8) = 2 * (9 - 8) = 2 -> 0x40000000"


def test_the_subject_is_wrong(tmp_path: Path) -> None:
    assert _remarks(tmp_path, _values(), _changed(3)) == ("exact model: 0x40000000: llama.cpp is right, mine is not", HOW)


def test_the_authority_is_wrong(tmp_path: Path) -> None:
    assert _remarks(tmp_path, _changed(3), _values()) == ("exact model: 0x40000000: mine is right, llama.cpp is not", HOW)


def test_both_are_wrong(tmp_path: Path) -> None:
    expected = ("exact model: 0x40000000: neither llama.cpp nor mine is right", HOW)
    assert _remarks(tmp_path, _changed(3), _changed(4)) == expected


def test_a_nan_is_right_whatever_its_payload(tmp_path: Path) -> None:
    shape = Shape("dequantize", BY_NAME["F16"], 1, "llama.cpp", floats=True, width=1, nan_payload=True, subject="mine")
    (ours, theirs) = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC02000, 0x7FC00001))
    nan, one = bytes.fromhex("017e"), np.ones(1, np.float32)
    assert _remarks(tmp_path, ours, one, shape, nan)[0] == "exact model: 0x7fc00000: llama.cpp is right, mine is not"
    assert _remarks(tmp_path, ours, theirs, shape, nan)[0] == "exact model: 0x7fc00000: it does not say which NaN"


@pytest.mark.parametrize("size", [0, 35])
def test_a_file_that_was_cut_short_is_told(tmp_path: Path, size: int) -> None:
    remarks = _remarks(tmp_path, _values(), _changed(3), data=BLOCKS[:size])
    assert remarks == ("exact model: block 1 of the input cannot be read again",)


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    shape = SHAPE._replace(blocks=tmp_path / "gone.bin")
    (divergence,) = compare_outputs(shape, _values().view(np.uint8), _changed(3).view(np.uint8))
    assert divergence.remarks == ("exact model: block 1 of the input cannot be read again",)


def test_no_word_without_the_blocks_or_without_a_model(tmp_path: Path) -> None:
    (divergence,) = compare_outputs(SHAPE, _values().view(np.uint8), _changed(3).view(np.uint8))
    assert divergence.remarks == ()
    shape = SHAPE._replace(kind=BY_NAME["F32"])
    assert _remarks(tmp_path, _values(), _changed(3), shape, _values().tobytes()) == ()


def test_each_class_of_difference_has_its_own_word(tmp_path: Path) -> None:
    blocks = tmp_path / "blocks.bin"
    blocks.write_bytes(BLOCKS)
    found = _changed(3)
    found[0] = np.nan
    remarks = [d.remarks[1] for d in compare_outputs(SHAPE._replace(blocks=blocks), _values().view(np.uint8), found.view(np.uint8))]
    assert remarks == ["d = 0x3c00 = 1, q = 7: d * (q - 8) = 1 * (7 - 8) = -1 -> 0xbf800000", HOW]
