"""Files that are made to kill a reader: the reference answers each, with the class that docs/reader-rules.md names."""

from __future__ import annotations

import re
import struct
import tracemalloc
from pathlib import Path

import pytest

from conformance.cases.build import build
from conformance.cases.load import load_suite
from conformance.cases.model import FileInput
from conformance.fuzz.oracle import ACCEPTED, check
from impl import GgufError
from impl import open as open_gguf

ROOT = Path(__file__).parents[1]


def attacks() -> list[tuple[str, str]]:
    """Give case and class of each row of the page's table."""
    page = (ROOT / "docs" / "reader-rules.md").read_text("utf-8")
    section = page.partition("## What attacks end in")[2].partition("\n## ")[0]
    found = []
    for row in (line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ") and "container/" in line):
        named = re.match(r"`([a-z0-9-]+)`", row[1])
        found += [(case, named[1] if named else ACCEPTED) for case in row[2].split(", ")]
    return found


def test_the_page_lists_attacks() -> None:
    assert len(attacks()) >= 12


@pytest.mark.parametrize(("case_id", "expected"), attacks())
def test_an_attack_ends_in_the_class_that_the_page_names(case_id: str, expected: str) -> None:
    suite, _, _ = case_id.rpartition("/")
    (case,) = (case for case in load_suite(ROOT / "cases" / f"{suite}.yaml", ROOT / "cases") if case.id == case_id)
    assert isinstance(case.input, FileInput)
    opened = None
    try:
        opened = open_gguf(build(case.input.recipe).data, full=True)
    except GgufError as error:
        said = error.reject_class
    assert (ACCEPTED if opened else said) == expected


PAIRS = 1_000_000


def million_pairs() -> bytes:
    pair = struct.Struct("<Q7sIB")
    return b"GGUF" + struct.pack("<IQQ", 3, 0, PAIRS) + b"".join(pair.pack(7, b"%07d" % n, 0, n % 256) for n in range(PAIRS))


def test_a_million_real_pairs_are_read() -> None:
    data = million_pairs()
    opened = open_gguf(data)
    assert len(opened.metadata) == PAIRS
    assert opened.metadata["0999999"] == 999_999 % 256


def test_a_million_claimed_pairs_cost_no_memory() -> None:
    tracemalloc.start()
    with pytest.raises(GgufError, match="but the file ends"):
        open_gguf(b"GGUF" + struct.pack("<IQQ", 3, 0, PAIRS))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("repeats", [1, 2, 4])
def test_names_that_differ_behind_a_nul_are_told_apart(repeats: int) -> None:
    names = [b"t" + b"\0" * n for n in range(repeats)]
    infos = b"".join(struct.pack(f"<Q{len(name)}sIIQ", len(name), name, 0, 24, 32 * n) for n, name in enumerate(names))
    head = b"GGUF" + struct.pack("<IQQ", 3, repeats, 0) + infos
    assert check(head + bytes(-len(head) % 32 + 32 * repeats)) == ACCEPTED


def test_data_of_no_bytes_are_there_wherever_they_should_lie() -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"t", 1, 0, 0, 0)  # and no padding behind it
    (tensor,) = open_gguf(head, full=True, profile="gguf-py").tensors
    assert (tensor.raw.nbytes, tensor.data.shape) == (0, (0,))


@pytest.mark.parametrize("count", [2**62, 2**63, 2**64 - 1])
def test_more_arrays_in_an_array_than_any_file_holds_are_refused(count: int) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q1sI", 1, b"a", 9)
    data = head + struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 9, count) + struct.pack("<IQB", 0, 1, 7)
    for profile in ("llama.cpp", "gguf-py", "spec"):
        with pytest.raises(GgufError):
            open_gguf(data, profile=profile)
