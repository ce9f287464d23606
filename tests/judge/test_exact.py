"""The exact model of each type: held to the live library, to what its tables say, and to the claim that it rounds once."""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from exact_blocks import from_library, library, random_blocks, set_field, set_scale, special_blocks

from conformance.ggml_types import BY_NAME
from conformance.judge import exact
from conformance.judge.exact import EXACT_TYPES, MODELS, exact_dequantize, explain
from conformance.judge.exact.check import scale_blocks
from conformance.judge.exact.formula import function, names
from conformance.judge.exact.grids import grid
from conformance.judge.exact.real import F32, float32_bits, real, text
from conformance.subjects.authorities.llama_cpp.kinds import dequantizer, kinds

# Types whose last step may round, and where it does.
ROUNDED = {"Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K", "Q8_K", "MXFP4"}


def _check(name: str, blocks: np.ndarray) -> None:
    expected = from_library(name, blocks)
    for block, values in zip(blocks, expected, strict=True):
        found = exact_dequantize(name, block.tobytes())
        wrong = [element for element, bits in enumerate(values) if bits != found[element]]
        assert not wrong, (name, block.tobytes().hex(), hex(values[wrong[0]]), explain(name, block.tobytes(), wrong[0]))


def test_every_type_that_the_library_dequantizes_has_a_model() -> None:
    library()
    # Q8_1 has a definition, but the library no function for it.
    assert {name for name, kind in kinds().items() if dequantizer(kind)} == set(EXACT_TYPES) - {"Q8_1"}


@pytest.mark.parametrize("name", EXACT_TYPES)
def test_random_blocks_are_the_librarys_bit_for_bit(name: str) -> None:
    library()
    _check(name, random_blocks(name, 8192 // BY_NAME[name].block + 32))


@pytest.mark.parametrize("name", EXACT_TYPES)
def test_scales_that_are_zero_subnormal_infinite_or_nan(name: str) -> None:
    library()
    _check(name, np.array(list(special_blocks(name))))


@pytest.mark.parametrize("name", ["F16", "BF16", "MXFP4", "NVFP4"])
def test_every_pattern_of_a_scale(name: str) -> None:
    library()
    for blocks in scale_blocks(name, np.random.default_rng(3)):
        _check(name, blocks)


@pytest.mark.parametrize("name", [name for name in EXACT_TYPES if BY_NAME[name].block == 32 and "d" in MODELS[name].scales])
def test_patterns_of_a_scale_all_over_its_range(name: str) -> None:
    """One pattern in 127, which is odd: every exponent with fractions of all sorts. The command's --scales takes all."""
    library()
    blocks = np.repeat(random_blocks(name, 1), (1 << 16) // 127, axis=0)
    for index, block in enumerate(blocks):
        set_scale(name, block, "d", 127 * index)
    _check(name, blocks)


# For each grid: a type that uses it, the f16 scale that makes a coordinate stand for itself, and what is added to it.
GRIDS = {
    "iq2xxs": ("IQ2_XXS", 8.0, 0.0),
    "iq2xs": ("IQ2_XS", 8.0, 0.0),
    "iq2s": ("IQ2_S", 8.0, 0.0),
    "iq3xxs": ("IQ3_XXS", 4.0, 0.0),
    "iq3s": ("IQ3_S", 1.0, 0.0),
    "iq1s": ("IQ1_S", 1.0, 0.125),
}


@pytest.mark.parametrize("name", GRIDS)
def test_each_point_of_each_grid_is_the_librarys(name: str) -> None:
    library()
    type_name, d, shift = GRIDS[name]
    points = grid(name)
    blocks = np.zeros((len(points), BY_NAME[type_name].nbytes), np.uint8)
    for point, block in enumerate(blocks):
        set_field(type_name, block, "d", np.float16(d).tobytes())
        set_field(type_name, block, "qs", bytes([point & 255]))
        if type_name == "IQ2_XS":
            set_field(type_name, block, "qs", point.to_bytes(2, "little"))
        elif point > 255:
            set_field(type_name, block, "qh", bytes([point >> 8]))
    values = np.array(from_library(type_name, blocks), np.uint32).view(np.float32) - np.float32(shift)
    assert points == [tuple(row) for row in values[:, : len(points[0])].astype(int).tolist()]


# What the integers of each formula range over.
BYTE, SIX_BITS, NIBBLE, SIGN = range(-128, 128), range(64), range(16), (-1, 1)
KVALUES, GRID_2, GRID_3 = range(-127, 114), (8, 25, 43), range(4, 63)
RANGES = {
    "Q1_0": {"q": range(2)},
    "Q2_0": {"q": range(4)},
    "Q4_0": {"q": NIBBLE},
    "Q4_1": {"q": NIBBLE},
    "Q5_0": {"q": range(32)},
    "Q5_1": {"q": range(32)},
    "Q8_0": {"q": BYTE},
    "Q8_1": {"q": BYTE},
    "IQ4_NL": {"kvalue": KVALUES},
    "NVFP4": {"kvalue": range(-12, 13)},
    "TQ1_0": {"q": range(3)},
    "TQ2_0": {"q": range(4)},
    "Q2_K": {"sc": NIBBLE, "m": NIBBLE, "q": range(4)},
    "Q3_K": {"sc": SIX_BITS, "q": range(8)},
    "Q4_K": {"sc": SIX_BITS, "m": SIX_BITS, "q": NIBBLE},
    "Q5_K": {"sc": SIX_BITS, "m": SIX_BITS, "q": range(32)},
    "Q6_K": {"sc": BYTE, "q": SIX_BITS},
    "IQ4_XS": {"ls": SIX_BITS, "kvalue": KVALUES},
    "IQ1_S": {"s": range(8), "grid": (-1, 0, 1), "sign": SIGN},
    "IQ1_M": {"s": range(8), "grid": (-1, 0, 1), "sign": SIGN},
    "IQ2_XXS": {"s": NIBBLE, "grid": GRID_2, "sign": SIGN},
    "IQ2_XS": {"s": NIBBLE, "grid": GRID_2, "sign": SIGN},
    "IQ2_S": {"s": NIBBLE, "grid": GRID_2, "sign": SIGN},
    "IQ3_XXS": {"s": NIBBLE, "grid": GRID_3, "sign": SIGN},
    "IQ3_S": {"s": NIBBLE, "grid": range(1, 16), "sign": SIGN},
}


def _steps(name: str) -> list[str]:
    """The operations of a formula, each a formula of its own, the last one first."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(MODELS[name].formula)) if isinstance(node, ast.BinOp)]


def _rounding(name: str, step: str) -> Iterator[str]:
    """Give the values of one step that are no float32, over all integers and the scales that need most bits.

    If the largest significand of a scale, all ones, and the smallest number fit when multiplied, every one in between does.
    """
    scales = {scale: tuple(map(number.read, _widest(number.digits))) for scale, number in MODELS[name].scales.items()}
    integers = {operand: tuple(map(real, values)) for operand, values in RANGES.get(name, {}).items()}
    needed = names(step)
    for values in product(*({**scales, **integers}[operand] for operand in needed)):
        value = function(step)(dict(zip(needed, values, strict=True)))
        if text(F32.read(float32_bits(value))) != text(value):
            yield f"{step} = {text(value)}"


def _widest(digits: int) -> tuple[int, ...]:
    """F16: largest significand at both ends of the exponents, and of the subnormals; one-byte formats: all."""
    return tuple(range(256)) if digits == 2 else (0x7BFF, 0xFBFF, 0x07FF, 0x03FF, 0x0001)


@pytest.mark.parametrize("name", sorted(RANGES))
def test_no_step_but_the_last_of_a_sum_can_round(name: str) -> None:
    last, *before = _steps(name)
    for step in before:
        assert next(_rounding(name, step), None) is None
    assert (next(_rounding(name, last), None) is not None) == (name in ROUNDED)


def test_formulas_that_the_proof_leaves_out() -> None:
    """F16 and BF16 have no step; Q8_K has one, which rounds; MXFP4 has one too, and rounds to infinity only."""
    left = {name: MODELS[name].formula for name in EXACT_TYPES if name not in RANGES}
    assert left == {"F16": "value", "BF16": "value", "Q8_K": "d * q", "MXFP4": "e * kvalue"}
    values = {e: exact_dequantize("MXFP4", bytes([e, *range(16)])) for e in range(256)}
    assert {e for e, bits in values.items() if 0x7F800000 in bits} == {253, 254, 255}
    exact_text = re.compile(r"= ([^ ]+) -> |= [^ ]+, rounded -> 0x[7f]f800000$")
    assert all(exact_text.search(explain("MXFP4", bytes([e, *range(16)]), i)) for e in range(256) for i in range(16))
    # 127 * (1 + 2^-23) is 127 and 127/64 steps of 2^-17: nearly two of them.
    assert explain("Q8_K", bytes.fromhex("0100803f") + bytes([127] * 288), 0).endswith("rounded -> 0x42fe0002")


@pytest.mark.parametrize(
    ("name", "block", "element", "expected"),
    [
        ("Q4_0", "003c" + "97" * 16, 0, "d = 0x3c00 = 1, q = 7: d * (q - 8) = 1 * (7 - 8) = -1 -> 0xbf800000"),
        ("Q4_0", "003c" + "97" * 16, 16, "d = 0x3c00 = 1, q = 9: d * (q - 8) = 1 * (9 - 8) = 1 -> 0x3f800000"),
        ("Q4_0", "00bc" + "88" * 16, 3, "d = 0xbc00 = -1, q = 8: d * (q - 8) = -1 * (8 - 8) = -0 -> 0x80000000"),
        ("Q8_0", "007c" + "00" * 32, 0, "d = 0x7c00 = infinity, q = 0: d * q = infinity * 0 = NaN -> 0x7fc00000"),
        ("F16", "0100", 0, "value = 0x0001 = 2^-24 -> 0x33800000"),
        (
            # 1 + 2^-24 lies half way between two float32; the even one is 1.
            "Q4_1",
            "0100003c" + "11" * 16,
            0,
            "d = 0x0001 = 2^-24, m = 0x3c00 = 1, q = 1: d * q + m = 2^-24 * 1 + 1 = 16777217*2^-24, rounded -> 0x3f800000",
        ),
        (
            "IQ2_XXS",
            "0048" + "01000000" + "01000080" + "00" * 56,
            0,
            "d = 0x4800 = 8, s = 8, point = 1, grid = 43, sign = -1: "
            "d * (0.5 + s) * 0.25 * grid * sign = 8 * (0.5 + 8) * 0.25 * 43 * -1 = -731 -> 0xc436c000",
        ),
    ],
)
def test_an_element_is_explained_in_one_line(name: str, block: str, element: int, expected: str) -> None:
    assert explain(name, bytes.fromhex(block), element) == expected


@pytest.mark.parametrize("name", EXACT_TYPES)
def test_what_is_explained_is_what_is_computed(name: str) -> None:
    (block,) = random_blocks(name, 1)
    values = exact_dequantize(name, block.tobytes())
    told = [explain(name, block.tobytes(), element) for element in range(len(values))]
    assert [int(line.rpartition(" -> ")[2], 16) for line in told] == values


def test_what_cannot_be_modelled_is_told() -> None:
    with pytest.raises(ValueError, match=r"no exact model of I8; there is one of each of: F16, BF16, Q1_0"):
        exact_dequantize("I8", b"\0")
    with pytest.raises(ValueError, match="a block of Q4_0 has 18 bytes, not 17"):
        exact_dequantize("Q4_0", bytes(17))
    with pytest.raises(ValueError, match="a block of Q4_0 has elements 0 to 31, not 32"):
        explain("Q4_0", bytes(18), 32)


def test_a_formula_has_nothing_but_sums_and_products() -> None:
    with pytest.raises(ValueError, match=re.escape("not part of a formula: a / b")):
        function("a / b")


def test_the_arithmetic_is_its_own() -> None:
    """Nothing of the reference, of gguf-py or of numpy; the command that compares with the library is the one exception."""
    folder = Path(exact.__file__).parent
    imported = set()
    for path in folder.glob("*.py"):
        if path.name != "check.py":
            imported |= _imports(ast.parse(path.read_text(encoding="utf-8")))
    ours = {module for module in imported if module.startswith("conformance")}
    assert ours - {"conformance.errors", "conformance.ggml_types", "conformance.judge.layouts"} <= {
        "conformance.judge.exact",
        *(f"conformance.judge.exact.{path.stem}" for path in folder.glob("*.py")),
    }
    assert imported - ours == {"__future__", "ast", "base64", "collections", "functools", "importlib", "operator", "re", "typing"}


def _imports(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module if node.module.startswith("conformance") else node.module.partition(".")[0])
    return found


def test_the_page_has_each_formula_and_where_it_rounds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exact-model.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z0-9_, ]+) \| `([^`]+)` \| ([^|]+) \|", page, re.MULTILINE)
    documented = {name: (formula, rounds) for listed, formula, rounds in rows for name in listed.split(", ")}
    assert {name: formula for name, (formula, _) in documented.items()} == {name: MODELS[name].formula for name in EXACT_TYPES}
    assert {name for name, (_, rounds) in documented.items() if rounds != "never"} == ROUNDED
