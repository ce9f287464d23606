from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from conformance.cases.rows import block_rows, float_rows, row_names
from conformance.errors import ConfigurationError

from . import scalar_numbers as scalar

SPECIAL = {
    "zeros": {"fill": 0},
    "tiny": {"ramp": "1e-9"},
    "huge": {"ramp": "1e7"},
    "inf": {"ramp": 1, "set": {"3": "inf"}},
    "nan": {"ramp": 1, "set": {"3": "nan"}},
    "half": {"ramp": 1, "add": 0.5, "set": {"0": 127}},
}


def bits(rows: np.ndarray) -> list[list[int]]:
    return rows.view(np.uint32).tolist()


def test_the_six_special_blocks() -> None:
    rows = float_rows({"special": SPECIAL}, "Q8_0")
    assert (rows.shape, rows.dtype) == ((6, 32), np.float32)
    assert row_names({"special": SPECIAL}) == ("zeros", "tiny", "huge", "inf", "nan", "half")
    zeros, _, huge, inf, nan, half = (row.tolist() for row in rows)
    assert zeros == [0.0] * 32
    assert huge == [i * 1e7 for i in range(32)]
    assert inf == [float(i) if i != 3 else float("inf") for i in range(32)]
    assert half == [127.0] + [i + 0.5 for i in range(1, 32)]
    assert bits(rows)[4][3] == 0x7FC00000
    assert nan[:3] + nan[4:] == [0.0, 1.0, 2.0] + [float(i) for i in range(4, 32)]


def test_a_ramp_rounds_once_from_the_f64_product() -> None:
    tiny = float_rows({"special": SPECIAL}, "Q8_0")[1]
    step = Fraction(float("1e-9"))
    for index, found in enumerate(tiny):
        product = Fraction(float(step * index))  # the f64 product, correctly rounded
        lower, upper = (Fraction(float(np.nextafter(found, np.float32(side)))) for side in (-1, 1))
        assert 2 * abs(Fraction(float(found)) - product) <= min(upper - Fraction(float(found)), Fraction(float(found)) - lower)


def test_bits_in_fill_set_and_values_are_kept() -> None:
    signalling = {"a": {"fill": "0x7f800001", "set": {"31": "-0.0"}}, "b": {"values": ["0xff800001"] * 32}}
    assert bits(float_rows({"special": signalling}, "Q4_0")) == [[0x7F800001] * 31 + [0x80000000], [0xFF800001] * 32]


@pytest.mark.parametrize(("name", "model"), [("uniform", scalar.uniform), ("normal", scalar.normal), ("bits", scalar.bits)])
def test_random_rows_take_the_stream_row_by_row(name: str, model: Any) -> None:
    rows = float_rows({"random": {"seed": 42, "rows": 3, "cols": 64, "distribution": name}}, "Q8_0")
    stream = scalar.splitmix64(42)
    assert bits(rows) == [[model(stream) for _ in range(64)] for _ in range(3)]


def test_scale_multiplies_once_in_f32() -> None:
    plain = float_rows({"random": {"seed": 1, "blocks": 4}}, "Q8_0")
    scaled = float_rows({"random": {"seed": 1, "blocks": 4, "scale": "1e-3"}}, "Q8_0")
    factor = Fraction(float(np.float32(1e-3)))
    for before, after in zip(plain[0], scaled[0], strict=True):
        exact = Fraction(float(before)) * factor
        spacing = Fraction(float(np.spacing(np.abs(after))))
        assert 2 * abs(Fraction(float(after)) - exact) <= spacing


def test_blocks_are_one_row() -> None:
    assert float_rows({"random": {"seed": 1, "blocks": 3}}, "Q4_K").shape == (1, 768)
    assert float_rows({"random": {"seed": 1, "cols": 512}}, "Q4_K").shape == (1, 512)


def test_values_and_concat() -> None:
    recipe = {
        "concat": [
            {"values": [[1] * 32, [2] * 32]},
            {"special": {"z": {"fill": 0}}},
            {"random": {"seed": 1, "rows": 2, "cols": 32}},
        ]
    }
    rows = float_rows(recipe, "Q8_0")
    assert rows.shape == (5, 32)
    assert rows[:3, 0].tolist() == [1.0, 2.0, 0.0]
    assert row_names(recipe) == ("", "", "z", "", "")


def test_exponents_pair_every_exponent_with_both_signs_and_every_significand() -> None:
    rows = float_rows({"exponents": {}}, "Q8_0")
    assert rows.shape == (256, 32)
    assert len(set(rows.view(np.uint32).ravel().tolist())) == 256 * 32
    assert bits(rows)[0][:2] == [0x00000000, 0x80000000]
    assert bits(rows)[255][:4] == [0x7F800000, 0xFF800000, 0x7F800001, 0xFF800001]
    assert row_names({"exponents": {"lo": 3, "hi": 4}}) == ("exponent 3", "exponent 4")
    assert float_rows({"exponents": {"lo": 3, "hi": 4}}, "Q4_K").shape == (2, 256)


def test_an_outlier_stands_at_each_place() -> None:
    recipe = {"outlier": {"ramp": 1, "at": [0, 31], "value": -100}}
    expected = [[-100.0, *map(float, range(1, 32))], [*map(float, range(31)), -100.0]]
    assert float_rows(recipe, "Q8_0").tolist() == expected
    assert row_names(recipe) == ("outlier at 0", "outlier at 31")


def test_every_form_has_as_many_names_as_rows() -> None:
    forms: list[dict[str, Any]] = [
        {"random": {"seed": 1, "blocks": 2}},
        {"random": {"seed": 1, "rows": 3, "cols": 32}},
        {"special": SPECIAL},
        {"values": [[0] * 32] * 2},
        {"exponents": {"lo": 1, "hi": 9}},
        {"outlier": {"fill": 1, "at": [5], "value": 2}},
    ]
    for recipe in [*forms, {"concat": [{"special": SPECIAL}, {"outlier": {"fill": 1, "at": [5], "value": 2}}]}]:
        assert len(row_names(recipe)) == len(float_rows(recipe, "Q8_0"))


def test_random_blocks_are_the_generators_bytes() -> None:
    rows, cols = block_rows({"random": {"seed": 7, "rows": 3, "cols": 64}}, "Q8_0")
    assert (rows.shape, rows.dtype, cols) == ((3, 68), np.uint8, 64)
    assert rows.tobytes() == scalar.stream_bytes(7, 3 * 68)
    assert block_rows({"random": {"seed": 7, "blocks": 2}}, "Q6_K")[0].shape == (1, 420)


def test_hex_repeat_and_concat_of_blocks() -> None:
    one = "0102" + "00" * 16
    rows, cols = block_rows({"concat": [{"hex": [one]}, {"repeat": {"hex": "ff" * 18, "rows": 2}}]}, "Q4_0")
    assert cols == 32
    assert rows.tolist() == [[1, 2] + [0] * 16, [255] * 18, [255] * 18]


def test_a_sweep_visits_every_scale_once() -> None:
    rows, cols = block_rows({"sweep": {"hex": "aa" * 18, "at": 0, "width": 2}}, "Q4_0")
    assert (rows.shape, cols) == ((65536, 18), 32)
    assert rows[0x3C00].tolist() == [0x00, 0x3C] + [0xAA] * 16
    assert len({row.tobytes() for row in rows}) == 65536
    last, _ = block_rows({"sweep": {"hex": "aa" * 18, "at": 17, "width": 1}}, "Q4_0")
    assert last[:, 17].tolist() == list(range(256))


@pytest.mark.parametrize(
    ("recipe", "part"),
    [
        ({}, "exactly one key, found none"),
        ({"randm": {}}, "did you mean `random`"),
        ({"random": {"blocks": 1}}, "`seed` is missing"),
        ({"random": {"seed": 1}}, "shape is not clear"),
        ({"random": {"seed": 1, "blocks": 1, "cols": 32}}, "shape is not clear"),
        ({"random": {"seed": 1, "blocks": 1, "rows": 2}}, "shape is not clear"),
        ({"random": {"seed": 1, "cols": 33}}, "a row of 33 is no multiple"),
        ({"random": {"seed": 1, "blocks": 0}}, "`0` is out of range"),
        ({"random": {"seed": -1, "blocks": 1}}, "`-1` is out of range"),
        ({"random": {"seed": 1, "blocks": 1, "distribution": "nromal"}}, "did you mean `normal`"),
        ({"random": {"seed": 1, "blocks": 1, "lo": 1}}, "`uniform` takes no range"),
        ({"random": {"seed": 1, "blocks": 1, "distribution": "wide", "lo": 3, "hi": 2}}, "range 3 to 2 is empty"),
        ({"random": {"seed": 1, "blocks": 1, "distribution": "wide", "hi": 129}}, "`129` is out of range"),
        ({"random": {"seed": 1, "blocks": 1, "distribution": "half", "hi": 2**20 + 1}}, "`1048577` is out of range"),
        ({"special": {}}, "no rows"),
        ({"special": {"a": {}}}, "no such row"),
        ({"special": {"a": {"fill": 0, "add": 1}}}, "no such row"),
        ({"special": {"a": {"ramp": "nan"}}}, "`nan` is not finite"),
        ({"special": {"a": {"fill": 0, "set": {"32": 1}}}}, "no element `32`"),
        ({"special": {"a": {"values": [1]}}}, "1 values for a block of 32"),
        ({"special": {"a": {"fill": "x"}}}, "`x` is no float"),
        ({"values": [[1] * 32, [1] * 64]}, "different lengths"),
        ({"values": [[]]}, "rows are empty"),
        ({"values": [[1] * 31]}, "a row of 31"),
        ({"concat": [{"values": [[1] * 32]}, {"values": [[1] * 64]}]}, "rows of [32, 64] elements"),
        ({"exponents": {"hi": 256}}, "`256` is out of range"),
        ({"outlier": {"fill": 0, "value": 1}}, "needs `at` and `value`"),
        ({"outlier": {"fill": 0, "value": 1, "at": [32]}}, "`32` is out of range"),
    ],
)
def test_a_wrong_float_recipe_says_what_is_wrong(recipe: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        float_rows(recipe, "Q8_0")
    assert part in str(caught.value)
    assert str(caught.value).startswith("rows")


@pytest.mark.parametrize(
    ("recipe", "part"),
    [
        ({"special": {}}, "unknown key `special`"),
        ({"hex": ["00"]}, "a row of 1 bytes"),
        ({"hex": [""]}, "a row of 0 bytes"),
        ({"hex": ["zz"]}, "no hex text"),
        ({"hex": ["00" * 18, "00" * 36]}, "rows of [32, 64] elements"),
        ({"repeat": {"hex": "00" * 18}}, "no such repeat"),
        ({"sweep": {"hex": "00" * 18, "at": 17, "width": 2}}, "`17` is out of range"),
        ({"sweep": {"hex": "00" * 18, "at": 0, "width": 3}}, "`3` is out of range"),
        ({"sweep": {"hex": "00" * 18}}, "no such sweep"),
        ({"random": {"seed": 1, "blocks": 1, "distribution": "normal"}}, "unknown key `distribution`"),
    ],
)
def test_a_wrong_block_recipe_says_what_is_wrong(recipe: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        block_rows(recipe, "Q4_0")
    assert part in str(caught.value)
