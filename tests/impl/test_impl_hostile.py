"""Files cut and damaged in every way: a clean refusal or success, never another exception, and the C reader's own verdict."""

from __future__ import annotations

import re
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from impl_build import ARR, STR, U8, array, gguf, pair, sound_file, string
from impl_live import Live
from impl_summary import summary

import impl
from impl import GgufError

SOUND = sound_file()
DATA_OFFSET = impl.open(SOUND).data_offset

# What the C reader logs first for each class. A fault without a line of its own ends in "failed to read ...".
LOGGED = {
    "invalid magic characters": "bad-magic",
    "bad GGUF version": "bad-version",
    "GGUFv1 is no longer": "bad-version",
    "only supports up to version": "bad-version",
    "extremely large": "byte-order",
    "number of tensors is": "bad-count",
    "number of key value pairs is": "bad-count",
    "string length": "bad-length",
    r"key \d+ is empty": "bad-key",
    "duplicate key": "duplicate-key",
    "has invalid GGUF type": "bad-value-type",
    "must be of type": "bad-alignment",
    "is not a power of 2": "bad-alignment",
    "is too long": "bad-name",
    "duplicate tensor name": "duplicate-tensor",
    "invalid number of dimensions": "bad-dims",
    "invalid number of elements": "bad-dims",
    "incorrect shape": "bad-dims",
    "invalid ggml type": "bad-tensor-type",
    r"not a multiple of block size \(0\)": "bad-tensor-type",
    "not a multiple of block size": "bad-block",
    "has a size in bytes": "bad-size",
    "failed to seek to beginning": "truncated",
    r"has offset \d+": "bad-offset",
    "overflows after padding": "bad-size",
    "cannot accumulate size": "bad-size",
}
UNTOLD = {"truncated", "bad-length"}


def classes_logged(errors: list[str]) -> set[str]:
    """Give the classes that the first line speaks for."""
    first = errors[0] if errors else ""
    named = {name for pattern, name in LOGGED.items() if re.search(pattern, first)}
    return named or UNTOLD


def verdict(data: bytes, *, full: bool = False) -> GgufError | impl.File:
    try:
        return impl.open(data, full=full)
    except GgufError as error:
        return error


def classes_of(ours: GgufError) -> set[str]:
    """Give the classes that the C reader may log for our fault.

    Where a tensor's type is cut off, gguf.cpp goes on to judge the variable that it did not fill, whatever is in it.
    """
    unfilled = ours.reject_class == "truncated" and re.fullmatch(r"tensors\[\d+\]\.type", ours.field)
    return {"truncated", "bad-tensor-type", "bad-block"} if unfilled else {ours.reject_class}


def wraps_there(ours: impl.File | GgufError) -> bool:
    """Tell the one kind of file that the C reader takes, with a wrong size, and that must not be taken."""
    found = isinstance(ours, GgufError) and re.match(r"a row of (\d+) elements times (\d+) bytes", ours.problem)
    return bool(found) and int(found[1]) * int(found[2]) >= 2**64


def agree(live: Live, data: bytes) -> None:
    ours, theirs = verdict(data), live.read(data)
    if wraps_there(ours):
        return
    if isinstance(ours, GgufError):
        assert theirs.errors is not None, str(ours)
        assert classes_of(ours) & classes_logged(theirs.errors), (str(ours), theirs.errors)
        assert 0 <= ours.at <= len(data) + 32
        assert ours.field
    else:
        assert theirs.errors is None, theirs.errors
        assert summary(ours) == theirs.summary


@pytest.mark.parametrize("full", [False, True])
def test_a_file_cut_at_each_byte(full: bool) -> None:
    needed = len(SOUND) if full else DATA_OFFSET
    for size in range(len(SOUND)):
        ours = verdict(SOUND[:size], full=full)
        assert isinstance(ours, GgufError) == (size < needed)
        if isinstance(ours, GgufError):
            assert ours.reject_class in ({"missing-data"} if size >= DATA_OFFSET else UNTOLD)
            assert str(size) in ours.problem or ours.reject_class == "bad-length"


def test_a_file_cut_at_each_byte_as_the_live_reader_judges_it(live: Live) -> None:
    for size in range(1, len(SOUND) + 1):
        agree(live, SOUND[:size])
        full = live.read(SOUND[:size], full=True)
        assert (full.errors is None) == isinstance(verdict(SOUND[:size], full=True), impl.File)


SMALL = [0, 1, 2, 3, 8, 9, 12, 13, 31, 42, 43, 63, 64]
LARGE = [2**30, 2**30 + 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
edits = st.lists(
    st.tuples(
        st.integers(0, DATA_OFFSET - 1),
        st.one_of(st.binary(min_size=1, max_size=4), st.sampled_from(SMALL + LARGE).map(lambda n: struct.pack("<Q", n))),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(edits=edits, cut=st.one_of(st.none(), st.integers(0, len(SOUND))))
def test_a_damaged_file_is_judged_as_the_live_reader_judges_it(live: Live, edits: list[tuple[int, bytes]], cut: int | None) -> None:
    data = bytearray(SOUND)
    for at, patch in edits:
        data[at : at + len(patch)] = patch
    agree(live, bytes(data[:cut]))


@settings(max_examples=500, deadline=None, derandomize=True)
@given(head=st.sampled_from([b"", b"GGUF", gguf(n_kv=2), gguf(n_tensors=2), SOUND[:200]]), tail=st.binary(max_size=300))
def test_bytes_of_any_kind_raise_nothing_else(head: bytes, tail: bytes) -> None:
    for full in (False, True):
        ours = verdict(head + tail, full=full)
        if isinstance(ours, impl.File):
            assert len(dict(ours.metadata)) == len(ours.metadata)


def test_a_length_that_only_claims_costs_no_memory() -> None:
    claims = [
        gguf(n_tensors=2**40),
        gguf(n_kv=2**40),
        gguf([pair(b"a", ARR, array(STR, 2**30, b""))]),
        gguf(n_kv=1) + string(b"", 2**30),
    ]
    tracemalloc.start()
    for data in claims:
        assert isinstance(verdict(data), GgufError)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize(
    ("head", "field"),
    [
        (gguf(n_kv=1) + string(b"", 2**30 + 1), "kv[0].key.length"),
        (gguf([pair(b"a", STR, string(b"", 2**30 + 1))]), "kv[0].value.length"),
        (gguf([pair(b"a", ARR, array(STR, 1, string(b"", 2**30 + 1)))]), "kv[0].value[0].length"),
        (gguf([pair(b"a", ARR, array(U8, 2**30 + 1, b""))]), "kv[0].value.length"),
    ],
    ids=["key", "text", "text in an array", "array"],
)
def test_a_length_over_2_to_the_30_is_refused_though_the_file_holds_it(tmp_path: Path, head: bytes, field: str) -> None:
    with pytest.raises(GgufError, match=r"1073741825 is over the limit of 1073741824") as caught:
        impl.open(_with_a_gibibyte_behind(head, tmp_path))
    assert (caught.value.reject_class, caught.value.field) == ("bad-length", field)


def test_an_array_of_2_to_the_30_is_read_and_costs_nothing(tmp_path: Path) -> None:
    opened = impl.open(_with_a_gibibyte_behind(gguf([pair(b"a", ARR, array(U8, 2**30, b""))]), tmp_path))
    assert opened.data_offset == 2**30 + 49


def _with_a_gibibyte_behind(head: bytes, folder: Path) -> Path:
    """Make a file of ``head`` and 2^30 + 64 zero bytes that take no room on the disk."""
    path = folder / "sparse.gguf"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + 2**30 + 64)
    return path
