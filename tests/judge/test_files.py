"""Written files compared: where they differ first, and what is said of digests."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.cases.build import build
from conformance.errors import ConfigurationError
from conformance.judge.files import compare_files
from conformance.judge.measure import Given, Measure, differences
from conformance.judge.output import condense
from conformance.outcomes import Ok
from conformance.subjects.protocol import View

RECIPE = {
    "kv": [{"key": "a", "u32": "7"}, {"key": "b", "array": {"u16": ["1", "2", "3"]}}],
    "tensors": [{"name": "t", "type": "F32", "dims": ["3"]}, {"name": "u", "type": "Q8_0", "dims": ["32"]}],
}
BUILT = build(RECIPE)
FILE = np.frombuffer(BUILT.data, np.uint8)


def compared(found):
    return compare_files("write", "llama.cpp", FILE, found)


def test_equal_files_have_no_difference():
    assert compared(FILE.copy()) == []


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("version", "version"),
        ("kv[1].key", "kv[*].key"),
        ("kv[0].value", "kv[*].value"),
        ("kv[1].value[2]", "kv[*].value[*]"),
        ("tensors[1].dims[0]", "tensors[*].dims[*]"),
        ("tensors[1].offset", "tensors[*].offset"),
        ("data[1]", "data[*]"),
        ("data[0].padding", "data[*].padding"),
    ],
)
def test_the_first_byte_that_differs_is_named_by_its_field(path, place):
    field = BUILT.fields.find(path)
    at = field.end - 1
    found = FILE.copy()
    found[at] ^= 0xFF
    found[at + 1 :] ^= 1
    (divergence,) = compared(found)
    assert (divergence.signature, divergence.field, divergence.at) == (f"write:-:bytes:{place}", path, at)
    assert (divergence.expected, divergence.found) == (f"0x{FILE[at]:02x}", f"0x{found[at]:02x}")
    marked = {line.field for line in divergence.hexdump if line.mark}
    assert f"{path} expected" in marked


@pytest.mark.parametrize(("cut", "path"), [(1, "data[1].padding"), (40, "data[1]"), (len(FILE) - 3, "magic")])
def test_a_file_cut_short_differs_where_it_ends(cut, path):
    (divergence,) = compared(FILE[:-cut])
    assert (divergence.field, divergence.at, divergence.found) == (path, len(FILE) - cut, "not there")
    assert f"it has {len(FILE) - cut} bytes instead of {len(FILE)}" in divergence.summary


def test_bytes_beyond_the_end_are_a_difference():
    (divergence,) = compared(np.append(FILE, np.uint8(0)))
    assert (divergence.at, divergence.expected, divergence.found) == (len(FILE), "not there", "0x00")


def test_what_the_found_file_has_more_is_named_by_its_own_fields():
    (divergence,) = compare_files("write", "llama.cpp", FILE[:-40], FILE)
    assert (divergence.field, divergence.at, divergence.expected) == ("data[1]", len(FILE) - 40, "not there")


def test_an_empty_file_differs_at_once():
    (divergence,) = compared(FILE[:0])
    assert (divergence.at, divergence.field) == (0, "magic")


def test_of_digests_the_range_and_the_size_are_told():
    long = np.arange(5000, dtype=np.uint8)
    digests = condense(long, 1)
    changed = long.copy()
    changed[4999] ^= 1
    assert compare_files("write", "llama.cpp", digests, long) == []
    (divergence,) = compare_files("write", "llama.cpp", digests, changed)
    assert divergence.signature == "write:-:digest:blocks"
    assert "bytes 4977 to 4999" in divergence.summary
    (divergence,) = compare_files("write", "llama.cpp", digests, long[:-1])
    assert divergence.signature == "write:-:size:output"


def test_an_answer_without_a_file_is_not_passed():
    with pytest.raises(ConfigurationError, match="has no value to compare with"):
        differences("write", "-", Measure("llama.cpp", Ok(), View(), None), Given(Ok(), View(), FILE), None)
