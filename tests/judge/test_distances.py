"""The spread of differences by distance in units in the last place."""

import msgspec
import numpy as np

from conformance.ggml_types import BY_NAME
from conformance.judge.divergence import Divergence
from conformance.judge.numbers import Shape, by_distance, compare_outputs

FLOATS = Shape("dequantize", BY_NAME["Q8_0"], 64, "llama.cpp", floats=True, width=64)


def _shifted(*ulps: int) -> tuple[np.ndarray, np.ndarray]:
    """Give ones, and as many floats that are so many ulps further."""
    expected = np.ones(64, np.float32)
    found = expected.view(np.uint32).copy()
    found[: len(ulps)] += np.array(ulps, np.uint32)
    return expected.view(np.uint8), found.view(np.uint8)


def test_distances_are_counted_by_power_of_two() -> None:
    (divergence,) = compare_outputs(FLOATS, *_shifted(1, 2, 3, 4, 7, 8, 1))
    assert divergence.by_distance == (0, 2, 2, 2, 1)
    assert sum(divergence.by_distance) == divergence.different


def test_each_kind_of_difference_counts_its_own() -> None:
    expected, found = np.array([0.0, 1.0, 1.0, 1.0] * 16, np.float32), np.array([0.0, 1.0, 1.0, 1.0] * 16, np.float32)
    found[0], found[1], found[2] = -0.0, np.nan, np.inf
    spread = {one.signature: one.by_distance for one in compare_outputs(FLOATS, expected.view(np.uint8), found.view(np.uint8))}
    infinite = 0x7F800000 - 0x3F800000
    assert spread == {
        "dequantize:Q8_0:bits:zero-sign": (1,),
        "dequantize:Q8_0:bits:nan": (),
        "dequantize:Q8_0:bits:infinite": (*[0] * infinite.bit_length(), 1),
    }


def test_the_edges_of_every_power_fall_where_they_belong() -> None:
    for bits in range(1, 34):
        first, last = 1 << (bits - 1), (1 << bits) - 1
        assert by_distance(np.array([first, last])) == (*[0] * bits, 2)


def test_what_has_no_distance_is_not_counted() -> None:
    assert by_distance(np.array([-1, -1])) == ()
    assert by_distance(np.array([-1, 0])) == (1,)


def test_a_divergence_without_a_spread_reads_as_before() -> None:
    text = b'{"signature": "a:b:bits:value", "op": "a", "authority": "l", "summary": "s", "largest_ulps": 3}'
    old = msgspec.json.decode(text, type=Divergence)
    assert old.by_distance == ()
    assert b"by_distance" not in msgspec.json.encode(old)
