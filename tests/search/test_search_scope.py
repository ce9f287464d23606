"""What a search does not compare is no part of its counts, and a search of nothing is no pass."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.errors import ConfigurationError, UsageError
from conformance.search.areas import FileArea
from conformance.search.asking import Side
from conformance.search.clock import Clock
from conformance.search.engine import search
from conformance.search.files import FileBench, Pair
from conformance.search.plan import Plan, Searched
from conformance.subjects.manifest import find_manifest, load_manifest

# The reference, but that its hello declares what stands in the first blank, and that it declines the op in the second.
_SUBJECT = """
import sys
from impl.errors import UnsupportedError
from impl.serve import main
from impl.subject import Subject

class Some(Subject):
    def hello(self, request):
        return super().hello(request) | {{"ops": {ops}}}

    def {declined}(self, request):
        raise UnsupportedError("not done")

sys.exit(main(Some(), []))
"""


def searched(folder: Path, ops: str, declined: str = "nothing", examples: int = 3) -> Searched:
    (folder / "some.py").write_text(_SUBJECT.format(ops=ops, declined=declined))
    (folder / "adapter.yaml").write_text(f"name: some\nlanguage: python\ncommand: [{sys.executable}, {folder / 'some.py'}]\n")
    return search(Plan(subject=load_manifest(folder), against=find_manifest("impl"), examples=examples), lambda _: None)


@pytest.mark.parametrize(
    ("ops", "declined"),
    [({"header": {}}, "header"), ({"write": {}}, "write"), ({"dequantize": ["Q8_0"]}, "dequantize")],
)
def test_a_subject_that_declines_all_passes_nothing(tmp_path: Path, ops: dict[str, object], declined: str) -> None:
    with pytest.raises(UsageError, match="nothing was compared: some declined all of it"):
        searched(tmp_path, repr(ops), declined)


def test_what_is_declined_does_not_count(tmp_path: Path) -> None:
    found = searched(tmp_path, '{"header": {}, "load": {}}', "load")
    assert found.declined["load"] > 0
    assert found.files + found.declined["load"] == searched(tmp_path, '{"header": {}, "load": {}}').files


@pytest.mark.parametrize("ops", [{"tensor": {}}, {"quantize": ["F32", "Q8_0:ref"]}, {"dot": ["Q8_0:simd"]}])
def test_what_cannot_be_searched_is_nothing_in_common(tmp_path: Path, ops: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="nothing in common to search"):
        searched(tmp_path, repr(ops))


def test_written_files_count(tmp_path: Path) -> None:
    assert searched(tmp_path, '{"write": {}}').files > 0


def test_a_subject_that_cannot_be_started_is_told_by_what_it_does(tmp_path: Path) -> None:
    (tmp_path / "adapter.yaml").write_text(f"name: some\nlanguage: python\ncommand: [{sys.executable}, -c, exit(3)]\n")
    with Side(load_manifest(tmp_path)) as some, Side(find_manifest("impl")) as other:
        area = FileArea(FileBench(Pair(some, other), tmp_path), ("header",), Clock(None, 1), lambda _: None)
        with pytest.raises(ConfigurationError, match="no hello"):
            area.round(1, 1)
