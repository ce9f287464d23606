"""What the families of rows, blocks and importances hold, worked out anew from the definition of each type."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import floor

import numpy as np
import numpy.typing as npt
import pytest

import impl
from conformance.block_ops import ALL, NO_DEQUANTIZE, SEARCHED, TYPES_OF
from conformance.ggml_types import BY_NAME
from conformance.search.block_families import BLOCK_FAMILIES
from conformance.search.draws import Draws
from conformance.search.imatrix_families import IMATRIX_FAMILIES, make_imatrix
from conformance.search.number_plans import NumberPlan
from conformance.search.row_families import FAMILIES, RowRecipe, make_rows
from impl.blocks import iq4_levels

F32 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint8]
HALF = Fraction(1, 2)


def rows(family: str, kind: str = "Q8_0", n: int = 64, cols: int = 256, low: int = -4, high: int = 4, width: int = 32) -> F32:
    return make_rows(RowRecipe(family, low, high, width), kind, n, cols, Draws(5))


def raw(family: str, kind: str, blocks: int) -> U8:
    plan = NumberPlan(op="dequantize", type=kind, cols=BY_NAME[kind].block, rows=blocks, seed=5, blocks=family)
    made = plan.expand(2**30).blocks
    assert made is not None
    return made


def exact(block: F32) -> list[Fraction]:
    return [Fraction(float(value)) for value in block]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_makes_rows_of_any_length_for_each_type(family: str) -> None:
    for kind, (n, count) in product(ALL, ((1, 1), (5, 3))):
        made = rows(family, kind, n, count * BY_NAME[kind].block)
        assert (made.shape, made.dtype) == ((n, count * BY_NAME[kind].block), np.float32), kind
        assert made.flags.c_contiguous, kind
        assert family == "specials" or np.isfinite(made).all(), kind


def test_bell_is_of_one_size_a_row() -> None:
    made = np.abs(rows("bell", n=400))
    assert (made < 32).all()
    largest = made.max(axis=1)
    assert {int(size) for size in np.floor(np.log2(largest))} >= {-4, 0, 3}
    assert len(np.unique(made)) > 50_000


def test_exponents_pairs_classes_with_significands() -> None:
    bits = rows("exponents", n=200, low=-126, high=127).view(np.uint32)
    fields, significands = bits >> 23 & 0xFF, bits & 0x7FFFFF
    assert (fields[::2] == fields[::2, :1]).all()
    assert len(np.unique(fields[1::2])) == 254
    assert {0, 1, 0x400000, 0x7FFFFF, 0x555555, 0x0FFF, 0x1000} <= set(significands.ravel().tolist())
    assert len(np.unique(significands)) == 16
    assert len(np.unique(bits >> 31)) == 2


def steps_of(kind: str, block: F32) -> list[Fraction]:
    """Give each element in units of the exact scale that the type's definition takes from the block."""
    values = exact(block)
    if kind == "Q4_1":
        least, most = min(values), max(values)
        return [(value - least) * 15 / (most - least) for value in values]
    if kind == "MXFP4":
        greatest = max(map(abs, values))
        exponent = floor(np.log2(float(greatest)))
        return [abs(value) / Fraction(2) ** (exponent - 2) for value in values]
    levels = {"Q8_0": 127, "Q4_0": -8, "Q5_0": -16, "Q3_K": -4, "Q6_K": -32, "IQ4_NL": -127, "TQ2_0": 1}[kind]
    greatest = max(values, key=abs)
    return [value * levels / greatest for value in values]


def halfway(kind: str, step: Fraction) -> bool:
    if kind == "MXFP4":
        return step in {Fraction(number, 4) for number in (1, 3, 5, 7, 10, 14, 20)}
    if kind == "IQ4_NL":
        return any(2 * step == int(one) + int(other) for one, other in pairwise(iq4_levels.LEVELS))
    return step % 1 == HALF


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        *(("Q8_0", 32), ("Q4_0", 32), ("Q5_0", 32), ("Q4_1", 32), ("MXFP4", 32)),
        *(("Q3_K", 16), ("Q6_K", 16), ("IQ4_NL", 32), ("TQ2_0", 256)),
    ],
)
def test_ties_lie_in_the_middle_of_two_levels(kind: str, width: int) -> None:
    """Of every other sub-block or so the scale is a power of two, and all but the greatest are ties exactly."""
    blocks = rows("ties", kind, n=100, cols=256).reshape(-1, width)[:100]
    ties = [sum(halfway(kind, step) for step in steps_of(kind, block)) for block in blocks]
    assert sum(count >= width - 4 for count in ties) > 30


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q5_0"])
def test_straddle_lies_beside_the_middle_on_either_side(kind: str) -> None:
    blocks = rows("straddle", kind, n=100, cols=32)
    off = [step % 1 - HALF for block in blocks for step in steps_of(kind, block)]
    near = [distance for distance in off if abs(distance) < Fraction(1, 10_000)]
    assert len(near) > 0.8 * len(off)
    assert min(sum(distance < 0 for distance in near), sum(distance > 0 for distance in near)) > len(near) // 4


def test_straddle_hits_what_rounds_up_only_in_separate_steps() -> None:
    """x / d + 8.5, the product rounded to float32 before the sum, reaches an integer that the exact sum does not (H01)."""
    blocks = rows("straddle", "Q4_0", n=3000, cols=32)
    greatest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    inverse = (np.float32(1) / (greatest / np.float32(-8))).astype(np.float32)
    apart = np.floor(blocks * inverse + np.float32(8.5))
    fused = np.floor((blocks.astype(np.float64) * inverse.astype(np.float64) + 8.5).astype(np.float32))
    assert (apart != fused).any()


def half_neighbours(value: float) -> tuple[Fraction, Fraction]:
    """Give the two f16 around ``value``, the one beyond 65504 being where the next one would be."""
    size = abs(value)
    exponent = max(floor(np.log2(size)) if size else -14, -14)
    unit = Fraction(2) ** (exponent - 10)
    below = floor(Fraction(size) / unit) * unit
    return below, below + unit


def test_scales_lie_in_the_middle_of_two_f16() -> None:
    """Q8_0's greatest over 127, within the rounding of one product and one step aside."""
    greatest = [float(value) for value in np.abs(rows("scales", "Q8_0", n=5000, cols=32)).max(axis=1)]
    scales = [Fraction(value) / 127 for value in greatest]
    distances = []
    for scale in scales:
        below, above = half_neighbours(float(scale))
        distances.append(abs(scale - (below + above) / 2) / scale)
    assert sum(distance < Fraction(1, 2**21) for distance in distances) > 0.95 * len(distances)
    with np.errstate(over="ignore"):
        stored = np.array([float(scale) for scale in scales], dtype=np.float32).astype(np.float16)
    assert {0.0, np.inf, float(np.float16(65504))} <= set(stored.tolist())
    assert ((stored > 0) & (stored < 2**-14)).any()


def test_midpoints_of_f16_hold_its_overflow_and_its_subnormals() -> None:
    made = rows("midpoints", "F16", n=200, cols=1000)
    bits = np.abs(made).view(np.uint32)
    assert {int(np.float32(65520).view(np.uint32)) + step for step in (-1, 0, 1)} <= set(bits.ravel().tolist())
    assert np.float32(2**-25).view(np.uint32) in bits
    sample = [float(value) for value in made.ravel()[:3000]]
    middles = [sum(half_neighbours(value)) / 2 for value in sample]
    exactly = sum(middle == abs(Fraction(value)) for middle, value in zip(middles, sample, strict=True))
    assert 1200 < exactly < 1800  # one of two is moved by one unit


def test_midpoints_of_bf16_stand_between_two_of_its_patterns() -> None:
    low = rows("midpoints", "BF16", n=50).view(np.uint32) & 0xFFFF
    assert set(low.ravel().tolist()) == {0x7FFF, 0x8000, 0x8001}


def test_outlier_is_one_in_a_sub_block() -> None:
    ordered = np.sort(np.abs(rows("outlier", n=300)).reshape(-1, 32), axis=1)
    ratios = ordered[:, -1] / ordered[:, -2]
    assert (ratios > 2).mean() > 0.95
    assert ratios.max() > 2**28


@pytest.mark.parametrize("width", [16, 32])
def test_uneven_sub_blocks_differ_in_size(width: int) -> None:
    parts = np.abs(rows("uneven", n=50, low=-30, high=20, width=width)).reshape(50, -1, width).max(axis=2)
    assert (parts.max(axis=1) / parts.min(axis=1) > 2**20).mean() > 0.9


def test_gaps_are_sub_blocks_of_zeros_beside_others() -> None:
    zeros = (rows("gaps", n=200, width=16).reshape(200, -1, 16) == 0).all(axis=2)
    assert 0.2 < zeros.mean() < 0.3
    assert (zeros.any(axis=1) & ~zeros.all(axis=1)).mean() > 0.9


def test_sparse_is_mostly_zeros() -> None:
    assert 0.85 < (rows("sparse") == 0).mean() < 0.9


def test_zeros_hold_both_zeros_and_subnormals() -> None:
    made = rows("zeros", n=40)
    bits = made.view(np.uint32)
    least = np.finfo(np.float32).tiny
    assert not bits[0::4].any()
    assert set(bits[1::4].ravel().tolist()) == {0, 0x80000000}
    assert (np.abs(made[2::4]) < least).all()
    assert 0.1 < (made[2::4] != 0).mean() < 0.4
    assert (np.abs(made[3::4]) <= least).all()
    assert {1.0, -1.0} == set((made[3::4][np.abs(made[3::4]) == least] / least).tolist())


def test_constant_is_one_size_and_nearly_differs_in_the_last_bits() -> None:
    made = np.abs(rows("constant")).reshape(-1, 32)
    assert (made == made[:, :1]).all()
    assert len(np.unique(made[:, 0])) > 100
    spread = np.abs(rows("nearly")).reshape(-1, 32).view(np.uint32)
    spans = spread.max(axis=1) - spread.min(axis=1)
    assert (spans <= 4).all()
    assert (spans > 0).mean() > 0.9


def test_ramp_climbs_by_one_step() -> None:
    made = rows("ramp", n=20)
    for row in made[::2]:
        assert row.tolist() == [float(np.float32(i * row[1])) for i in range(256)]
    assert (made[1::2, 0] != 0).any()


def test_huge_overflows_where_squares_are_summed() -> None:
    made = rows("huge", n=100)
    with np.errstate(over="ignore"):
        assert np.isinf((made * made).sum(axis=1)).all()
        assert np.isinf(made.sum(axis=1)).any()


def test_any_has_all_exponents() -> None:
    assert len(np.unique(rows("any").view(np.uint32) >> 23 & 0xFF)) == 255


def test_specials_are_few() -> None:
    made = rows("specials", n=200)
    assert np.isnan(made).any()
    assert np.isposinf(made).any()
    assert np.isneginf(made).any()
    assert 0.98 < np.isfinite(made).mean() < 1


def test_mixed_has_rows_of_different_kinds() -> None:
    made = rows("mixed", n=30)
    alike = (np.abs(made).reshape(30, -1, 32) == np.abs(made).reshape(30, -1, 32)[:, :, :1]).all(axis=(1, 2))
    climbing = (np.diff(made, axis=1) > 0).all(axis=1)
    assert 0 < alike.sum() < 10
    assert 0 < climbing.sum() < 10


SCALED = [kind for kind in ALL if kind not in ("F16", "BF16", *NO_DEQUANTIZE)]


@pytest.mark.parametrize("kind", SCALED)
def test_sane_and_unit_blocks_say_numbers(kind: str) -> None:
    """By the reference: any bytes would give a NaN or an infinity in one of 32 blocks with an f16 scale."""
    for family in ("sane", "unit"):
        blocks = raw(family, kind, 300)
        values = impl.dequantize(kind, blocks, (300, BY_NAME[kind].block))
        assert np.isfinite(values).all(), family
        assert (values != 0).any(axis=1).mean() > 0.9, family
        assert np.abs(values).max() < 2**20, family


def test_bytes_are_any() -> None:
    blocks = raw("bytes", "Q4_1", 5000)
    assert all(len(np.unique(blocks[:, at])) == 256 for at in range(20))


def scale_and_minimum(packed: U8, j: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Sub-block ``j`` of Q4_K and Q5_K, as ggml's get_scale_min_k4 unpacks it."""
    if j < 4:
        return packed[:, j] & 63, packed[:, j + 4] & 63
    return packed[:, j + 4] & 15 | packed[:, j - 4] >> 6 << 4, packed[:, j + 4] >> 4 | packed[:, j] >> 6 << 4


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K"])
def test_unit_has_all_packed_scales_in_each_sub_block(kind: str) -> None:
    blocks = raw("unit", kind, 4096)
    assert blocks[:, :4].tolist() == [[0, 0x3C, 0, 0x3C]] * 4096
    for j in range(8):
        assert [len(np.unique(part)) for part in scale_and_minimum(blocks[:, 4:16], j)] == [64, 64]


def test_unit_has_all_packed_scales_of_q3_k() -> None:
    packed = raw("unit", "Q3_K", 4096)[:, 96:108]
    for j in range(16):
        low = packed[:, j % 8] >> (4 if j >= 8 else 0) & 15
        assert len(np.unique(low | (packed[:, 8 + j % 4] >> 2 * (j // 4) & 3) << 4)) == 64


HALVES = {0x0000, 0x8000, 0x0001, 0x03FF, 0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00}


@pytest.mark.parametrize(
    ("kind", "offsets"),
    [("Q4_0", (0,)), ("Q4_1", (0, 2)), ("Q8_1", (0, 2)), ("Q2_K", (80, 82)), ("Q6_K", (208,)), ("IQ3_S", (0,)), ("TQ1_0", (52,))],
)
def test_scales_take_special_values_in_each_field(kind: str, offsets: tuple[int, ...]) -> None:
    blocks = raw("scales", kind, 300)
    for offset in offsets:
        assert set(np.ascontiguousarray(blocks[:, offset : offset + 2]).view("<u2").ravel().tolist()) >= HALVES


def test_scales_of_one_byte_take_all_values() -> None:
    assert len(np.unique(raw("scales", "MXFP4", 256)[:, 0])) == 256
    assert all(len(np.unique(raw("scales", "NVFP4", 256)[:, at])) == 256 for at in range(4))


def test_scales_of_iq1_m_stand_in_the_tops_of_four_words() -> None:
    words = np.ascontiguousarray(raw("scales", "IQ1_M", 60)[:, 48:]).view("<u2")
    assembled = words[:, 0] >> 12 | words[:, 1] >> 8 & 0xF0 | words[:, 2] >> 4 & 0xF00 | words[:, 3] & 0xF000
    assert set(assembled.tolist()) >= HALVES


def test_scales_of_q8_k_are_float32() -> None:
    found = np.ascontiguousarray(raw("scales", "Q8_K", 60)[:, :4]).view(np.uint32)
    assert {0, 0x80000000, 1, 0x7F800000, 0x7FC00000, 0x7F7FFFFF} <= set(found.ravel().tolist())


def test_same_blocks_are_one_byte_again_and_again() -> None:
    blocks = raw("same", "Q4_0", 4000)
    assert (blocks[1::2] == blocks[1::2, :1]).all()
    assert (blocks[::2, 2:] == blocks[::2, 2:3]).all()
    assert len(np.unique(blocks[:, 5])) == 256


def test_few_blocks_have_few_bits_or_lack_few() -> None:
    bits = np.unpackbits(raw("few", "Q8_0", 400)[:, 2:], axis=1).mean(axis=1)
    assert (bits[np.arange(400) % 4 != 3] < 0.25).all()
    assert (bits[3::4] > 0.75).all()


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_K", "IQ1_S"])
def test_a_walking_bit_comes_to_each_place(kind: str) -> None:
    size = 8 * BY_NAME[kind].nbytes
    bits = np.unpackbits(raw("walking", kind, 2 * size), axis=1)
    for start, others in ((0, bits[2::2]), (1, bits[3::2])):
        usual = (bits[start::2].mean(axis=0) > 0.5).astype(np.uint8)
        changed = bits[start::2] != usual
        assert (changed.sum(axis=1) == 1).all()
        assert changed.any(axis=0).all()
        assert len(others)


def importances(family: str, cols: int = 256) -> F32:
    return make_imatrix(family, cols, Draws(9))


def test_importances_are_what_their_families_say() -> None:
    made = {family: importances(family) for family in IMATRIX_FAMILIES}
    assert all((imatrix.shape, imatrix.dtype) == ((256,), np.float32) for imatrix in made.values())
    assert (made["ones"] == 1).all()
    assert (made["positive"] > 0).all()
    assert 32 <= (made["some_zero"] == 0).sum() < 200
    assert not made["zero"].any()
    assert ((made["tiny"] > 0) & (made["tiny"] < 2**-29)).all()
    assert ((made["huge"] >= 2**30) & np.isfinite(made["huge"])).all()
    assert (made["negative"] < 0).any()
    assert (made["negative"] > 0).any()
    assert np.sort(made["one_big"])[-1] > np.sort(made["one_big"])[-2] * 2
    assert np.isfinite(made["specials"]).sum() == 255


def plans() -> list[NumberPlan]:
    row = RowRecipe("mixed")
    return [
        NumberPlan(op="quantize", type="Q4_K", cols=512, rows=20, seed=1, row=row, imatrix="some_zero"),
        NumberPlan(op="quantize", type="Q8_1", cols=32, rows=20, seed=1, row=row, variant="ref"),
        NumberPlan(op="dequantize", type="IQ3_S", cols=256, rows=20, seed=1, blocks="bytes"),
        NumberPlan(op="dot", type="Q5_0", cols=64, rows=20, seed=1, row=row, blocks="sane"),
        NumberPlan(op="matvec", type="Q5_0", cols=64, rows=20, seed=1, row=row, blocks="sane"),
    ]


def contents(plan: NumberPlan, most: int = 2**20) -> list[bytes]:
    probe = plan.expand(most)
    return [array.tobytes() for array in (probe.rows, probe.blocks, probe.x, probe.imatrix) if array is not None]


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.op)
def test_a_plan_makes_the_same_each_time_and_another_seed_something_else(plan: NumberPlan) -> None:
    assert contents(plan) == contents(plan)
    other = NumberPlan(**{name: getattr(plan, name) for name in plan.__struct_fields__} | {"seed": 2})
    assert all(mine != its for mine, its in zip(contents(plan), contents(other), strict=True))


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.op)
def test_a_plan_keeps_to_its_rows_and_to_the_size_that_is_asked_for(plan: NumberPlan) -> None:
    assert plan.expand().n == 20
    assert plan.expand(plan.cols * 7).n == 7
    assert plan.expand(1).n == 1
    probe = plan.expand()
    assert probe.x is None or probe.x.shape == ((1 if plan.op == "matvec" else 20), plan.cols)


def test_where_a_grid_is_searched_there_are_a_twentieth_of_the_rows() -> None:
    assert all(
        NumberPlan(op="quantize", type=kind, cols=256, rows=10**6, seed=1, row=RowRecipe("bell"), imatrix="ones").expand(2**18).n
        == (51 if kind in SEARCHED else 1024)
        for kind in ("IQ1_S", "IQ2_XS", "IQ3_S", "Q4_K", "IQ4_XS")
    )


@pytest.mark.parametrize(
    ("kind", "family", "imatrix", "variant", "tame"),
    [
        ("IQ2_XS", "bell", "positive", "", True),
        ("IQ2_XS", "bell", "negative", "", False),
        ("IQ2_XS", "huge", "positive", "", False),
        ("IQ3_S", "specials", None, "", False),
        ("Q4_K", "specials", "negative", "", True),
        ("IQ4_NL", "zeros", None, "ref", False),
        ("IQ4_NL", "gaps", None, "", True),
    ],
)
def test_tame_is_what_ggml_has_an_answer_for(kind: str, family: str, imatrix: str | None, variant: str, tame: bool) -> None:
    plan = NumberPlan(op="quantize", type=kind, cols=256, rows=1, seed=1, row=RowRecipe(family), imatrix=imatrix, variant=variant)
    assert plan.tame is tame


def test_labels_name_the_families() -> None:
    assert [plan.label for plan in plans()] == ["mixed/some_zero", "mixed", "bytes", "sane*mixed", "sane*mixed"]


@pytest.mark.parametrize("family", BLOCK_FAMILIES)
def test_each_family_makes_blocks_of_each_type(family: str) -> None:
    for kind in TYPES_OF["dequantize"]:
        blocks = raw(family, kind, 3)
        assert (blocks.shape, blocks.dtype) == ((3, BY_NAME[kind].nbytes), np.uint8), kind
