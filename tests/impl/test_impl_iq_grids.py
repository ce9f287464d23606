"""Grids of the IQ types, and the neighbours of what is off them, against plain definitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from impl.blocks.iq_grids import codes, grid, sign_patterns, signs
from impl.blocks.iq_neighbours import neighbours

# Of ggml's iq2xs_init_impl and iq3xs_init_impl: how many different distances count as near.
SHELLS = {"IQ2_XXS": 2, "IQ2_XS": 2, "IQ2_S": 1, "IQ1_S": 3, "IQ3_XXS": 2, "IQ3_S": 3}
POINTS = {"IQ2_XXS": 256, "IQ2_XS": 512, "IQ2_S": 1024, "IQ1_S": 2048, "IQ3_XXS": 256, "IQ3_S": 512}


@pytest.mark.parametrize("name", POINTS)
def test_a_grid_is_of_different_points_of_its_levels(name: str) -> None:
    points = grid(name)
    assert len(points) == POINTS[name]
    assert len(np.unique(points, axis=0)) == POINTS[name]
    assert (points[0] == points.min()).all()
    assert (np.unique(points)[codes(name)] == points).all()


def test_an_even_number_of_signs_is_minus() -> None:
    assert [f"{pattern:08b}" for pattern in sign_patterns()[[0, 1, 3, 127]]] == ["00000000", "10000001", "00000011", "11111111"]
    assert all(int(pattern).bit_count() % 2 == 0 for pattern in sign_patterns())
    assert signs()[0b10000010].tolist() == [1, -1, 1, 1, 1, 1, 1, -1]


@pytest.mark.parametrize("name", SHELLS)
def test_neighbours_are_by_distance_then_by_index(name: str) -> None:
    kmap, lists = neighbours(name)
    points = codes(name).astype(int)
    size, bits = (8, 2) if points.shape[1] == 8 else (4, 3)
    some = np.random.default_rng(0).integers(0, 3 if size == 8 else 8, (600, size))
    for point in some:
        entry = int(kmap[(point << bits * np.arange(size)).sum()])
        if entry >= 0:
            assert (points[entry] == point).all()
        else:
            start = -entry
            assert lists[start : start + int(lists[start - 1])].tolist() == sorted_neighbours(points, point, SHELLS[name])


def sorted_neighbours(points: npt.NDArray[np.int_], point: npt.NDArray[np.int_], shells: int) -> list[int]:
    distance = ((points - point) ** 2).sum(axis=1)
    assert distance.min() > 0
    farthest = sorted(set(distance.tolist()))[:shells][-1]
    return sorted(np.flatnonzero(distance <= farthest).tolist(), key=lambda index: (distance[index], index))


@pytest.mark.parametrize("name", SHELLS)
def test_every_point_that_can_come_up_has_its_entry(name: str) -> None:
    kmap, lists = neighbours(name)
    size, levels, bits = (8, 3, 2) if codes(name).shape[1] == 8 else (4, 8, 3)
    every = np.arange(levels**size)[:, np.newaxis] // levels ** np.arange(size) % levels
    entries = kmap[(every << bits * np.arange(size)).sum(axis=1)]
    assert sorted(entries[entries >= 0].tolist()) == list(range(POINTS[name]))
    starts = np.sort(-1 - entries[entries < 0].astype(int))
    assert (starts + 1 + lists[starts] == np.append(starts[1:], len(lists))).all()
