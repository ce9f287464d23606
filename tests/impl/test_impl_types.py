from __future__ import annotations

import pytest
from impl_live import Live

from impl.errors import UnsupportedError
from impl.types import TYPES, by_id, by_name


def test_the_numbers_run_from_0_to_42_and_no_name_is_used_twice() -> None:
    assert [kind.id for kind in TYPES] == list(range(43))
    assert len({kind.name for kind in TYPES}) == 43


@pytest.mark.parametrize("number", range(43))
def test_every_size_is_the_live_librarys(live: Live, number: int) -> None:
    traits = live.traits(number)
    kind = by_id(number)
    assert (kind.block, kind.nbytes) == (traits.block, traits.nbytes)
    if traits.block:
        assert kind.name == traits.name.decode().upper()


def test_removed_types_are_known_by_number_only() -> None:
    assert [kind.id for kind in TYPES if kind.removed] == [4, 5, 31, 32, 33, 36, 37, 38]
    with pytest.raises(UnsupportedError, match="'Q4_2'"):
        by_name("Q4_2")


@pytest.mark.parametrize("number", [-1, 43, 2**31])
def test_an_unknown_number_is_shown(number: int) -> None:
    with pytest.raises(UnsupportedError, match=rf"number {number}: the known ones are 0 to 42"):
        by_id(number)


def test_an_unknown_name_is_shown_with_the_known_ones() -> None:
    with pytest.raises(UnsupportedError, match=r"'q4_K': the known ones are F32, .*Q4_K"):
        by_name("q4_K")


def test_a_rows_bytes() -> None:
    assert by_name("Q6_K").row_bytes(512) == 420  # two super-blocks of 210
