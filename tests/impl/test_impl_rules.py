"""Each rule of the C reader: class, field and place of the first fault, and the live reader's own judgement of the same file."""

from __future__ import annotations

import pytest
from impl_build import ARR, U8, array, gguf, pair, tensor
from impl_files import ACCEPTED, ALIGN, BROKEN, FULL, HEAD, MAX_PAIRS, MAX_TENSORS, NOT_AS_C, PAIRS, TENSORS, Broken
from impl_live import Live
from impl_summary import summary

import impl
from impl import GgufError
from impl.container.reader import TENSOR_OVERHEAD


def _fault(data: bytes, *, full: bool) -> GgufError:
    with pytest.raises(GgufError) as caught:
        impl.open(data, full=full)
    return caught.value


def _told(error: GgufError) -> str:
    return f"{error.reject_class} {error.field} @{error.at}"


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_the_fault_is_told(broken: Broken) -> None:
    error = _fault(broken.data, full=False)
    assert _told(error) == broken.fault
    assert broken.shows in error.problem
    assert f"{error.field} at byte {error.at}: " in str(error)


@pytest.mark.parametrize("broken", [*HEAD, *PAIRS, *ALIGN, *TENSORS], ids=lambda broken: broken.name)
def test_the_live_reader_refuses_it_too(live: Live, broken: Broken) -> None:
    assert live.read(broken.data).errors is not None


@pytest.mark.parametrize("broken", NOT_AS_C, ids=lambda broken: broken.name)
def test_the_live_reader_still_takes_what_it_should_not(live: Live, broken: Broken) -> None:
    assert live.read(broken.data).errors is None


@pytest.mark.parametrize("broken", FULL, ids=lambda broken: broken.name)
def test_a_full_load_needs_what_the_header_alone_does_not(broken: Broken) -> None:
    impl.open(broken.data)
    error = _fault(broken.data, full=True)
    assert _told(error) == broken.fault
    assert broken.shows in error.problem


@pytest.mark.parametrize("broken", FULL, ids=lambda broken: broken.name)
def test_the_live_reader_takes_those_headers(live: Live, broken: Broken) -> None:
    assert live.read(broken.data).errors is None


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_llama_cpp_reads_is_read(live: Live, name: str) -> None:
    data = ACCEPTED[name]
    for full in (False, True):
        verdict = live.read(data, full=full)
        assert verdict.errors is None
        assert summary(impl.open(data, full=full)) == verdict.summary


@pytest.mark.parametrize("number", [number for number in range(43) if number not in (4, 5, 31, 32, 33, 36, 37, 38)])
def test_every_type_takes_the_bytes_that_it_takes_there(live: Live, number: int) -> None:
    """The second tensor's place shows the size of the first, which has two rows of 256."""
    traits = live.traits(number)
    size = 512 // traits.block * traits.nbytes
    data = gguf((), [tensor(b"t", [256, 2], number), tensor(b"u", [1], 0, -(-size // 32) * 32)], data=bytes(size + 64))
    assert live.read(data, full=True).errors is None
    assert summary(impl.open(data, full=True)) == live.read(data).summary


def test_the_two_bounds_are_the_ones_that_llama_cpp_counts_with(live: Live) -> None:
    for field, bound in (("n_tensors", MAX_TENSORS), ("n_kv", MAX_PAIRS)):
        for over in (0, 1):
            verdict = live.read(gguf(**{field: bound + over}))
            assert verdict.errors is not None
            assert any("must be in" in line for line in verdict.errors) == bool(over)


def test_the_overhead_a_tensor_is_the_librarys(live: Live) -> None:
    assert live.base.ggml_tensor_overhead() == TENSOR_OVERHEAD


def test_a_file_without_tensors_has_its_data_where_the_pairs_end() -> None:
    assert impl.open(gguf([pair(b"a", U8, b"\0")])).data_offset == 38


def test_a_million_nested_arrays_are_refused_at_the_first() -> None:
    nest = array(ARR, 1, b"") * 1_000_000 + array(U8, 0, b"")
    error = _fault(gguf([pair(b"a", ARR, nest)]), full=False)
    assert (error.reject_class, error.field, error.at) == ("bad-value-type", "kv[0].value.items", 37)
