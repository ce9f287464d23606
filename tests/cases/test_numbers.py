from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from conformance.cases.numbers import DISTRIBUTIONS, draw_bytes, draws, random_floats

from . import scalar_numbers as scalar

DOCS = Path(__file__).parents[2] / "docs" / "numbers.md"
# The range (lo, hi) of those that have one is the default, as docs/numbers.md states them.
MODELS: dict[str, Callable[[], Callable[..., int]]] = {
    "uniform": lambda: scalar.uniform,
    "normal": lambda: scalar.normal,
    "bits": lambda: scalar.bits,
    "finite": lambda: scalar.finite,
    "wide": lambda: lambda stream: scalar.wide(stream, -16, 16),
    "uneven": lambda: scalar.Uneven(-16, 16),
    "sparse": lambda: lambda stream: scalar.sparse(stream, -16, 16),
    "half": lambda: lambda stream: scalar.half(stream, -128, 127),
}
SEEDS = [0, 1, 42, 2**63, 2**64 - 1]


def scalar_bits(name: str, seed: int, count: int) -> list[int]:
    stream = scalar.splitmix64(seed)
    model = MODELS[name]()
    return [model(stream) for _ in range(count)]


def vector_bits(name: str, seed: int, count: int) -> list[int]:
    return [int(each) for each in random_floats(name, seed, count).view(np.uint32)]


def test_the_generator_is_the_published_one() -> None:
    # Seed 1234567 as on rosettacode.org, "Pseudo-random numbers/Splitmix64".
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert draws(1234567, 5).tolist() == published
    assert list(islice(scalar.splitmix64(1234567), 5)) == published
    assert int(draws(0, 1)[0]) == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_are_the_scalar_models(seed: int) -> None:
    assert draws(seed, 1000).tolist() == list(islice(scalar.splitmix64(seed), 1000))


def test_there_may_be_no_draws() -> None:
    assert draws(7, 0).tolist() == []
    assert draw_bytes(7, 0).tolist() == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_floats_are_the_scalar_models_bit_for_bit(name: str, seed: int) -> None:
    assert vector_bits(name, seed, 600) == scalar_bits(name, seed, 600)


def test_every_distribution_has_a_model() -> None:
    assert set(DISTRIBUTIONS) == set(MODELS)


@pytest.mark.parametrize(("low", "high"), [(-127, 128), (0, 0), (-127, -127), (128, 128), (-3, 5)])
def test_wide_covers_exactly_its_range(low: int, high: int) -> None:
    found = random_floats("wide", 5, 4000, (low, high)).view(np.uint32)
    stream = scalar.splitmix64(5)
    assert found.tolist() == [scalar.wide(stream, low, high) for _ in range(4000)]
    exponents = (found >> 23 & 255).astype(int) - 127
    assert (exponents.min(), exponents.max()) == (low, high)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (-(2**20), 2**20), (7, 7)])
def test_half_is_exact_over_its_range(low: int, high: int) -> None:
    stream = scalar.splitmix64(9)
    expected = [scalar.half(stream, low, high) for _ in range(500)]
    assert random_floats("half", 9, 500, (low, high)).view(np.uint32).tolist() == expected


def test_distributions_are_what_they_are_called() -> None:
    normal = random_floats("normal", 3, 40000).astype(np.float64)
    uniform = random_floats("uniform", 3, 40000).astype(np.float64)
    # Ten standard errors of the mean (1/200 and 0.577/200) and of the variance.
    assert abs(normal.mean()) < 0.05
    assert abs(normal.var() - 1) < 0.08
    assert abs(uniform.mean()) < 0.03
    assert (uniform.min() >= -1, uniform.max() < 1) == (True, True)
    assert np.isfinite(random_floats("finite", 3, 40000)).all()
    assert not np.isfinite(random_floats("bits", 3, 40000)).all()


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_bytes_are_each_draws_lowest_byte_first(count: int) -> None:
    assert draw_bytes(42, count).tobytes() == scalar.stream_bytes(42, count)


def documented(section: str) -> dict[str, list[int]]:
    """The table below a heading of docs/numbers.md: first column, then hexadecimal numbers."""
    part = DOCS.read_text("utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `?([a-z0-9]+)`? \| (0x.*) \|$", part, flags=re.MULTILINE)
    return {name: [int(each, 16) for each in re.findall(r"0x[0-9A-Fa-f]+", numbers)] for name, numbers in rows}


def test_check_values_in_the_docs_are_the_scalar_models() -> None:
    of_draws, of_floats = documented("Check values: draws"), documented("Check values: floats")
    assert set(of_draws) == {"0", "42"}
    assert set(of_floats) == set(MODELS)
    for seed, numbers in of_draws.items():
        assert numbers == list(islice(scalar.splitmix64(int(seed)), 5))
    for name, numbers in of_floats.items():
        assert numbers == scalar_bits(name, 42, 4)
