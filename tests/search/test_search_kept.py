"""What a search keeps: tried again with all that belongs to it, and told where it cannot be kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

from conformance.search.kept import Kept
from conformance.search.probe import NumberProbe
from tests.test_cli import command

_CASE = {"type": "Q8_0", "blocks": {"hex": ["00" * 34]}, "ask": ["dequantize"]}
_BEFORE = {"type": "Q4_0", "rows": {"special": {"one": {"fill": 0}}}, "ask": ["quantize"]}
SEARCH = ("search", "--subject", "impl", "--against", "impl", "--op", "header", "--examples", "1")


def kept(folder: Path, *cases: Any) -> Kept:
    database = DirectoryBasedExampleDatabase(folder)
    for case in cases:
        database.save(hashlib.sha256(b"a/b").digest(), json.dumps(case).encode())
    return Kept(folder, "a/b")


def test_what_is_put_before_a_kept_case_comes_before_it(tmp_path: Path) -> None:
    probes = list(kept(tmp_path, {"before": [_BEFORE], **_CASE}).probes())
    assert all(isinstance(probe, NumberProbe) for probe in probes)
    assert [(probe.op, probe.type) for probe in probes if isinstance(probe, NumberProbe)] == [
        ("quantize", "Q4_0"), ("dequantize", "Q8_0"),
    ]  # fmt: skip


def test_what_cannot_be_read_is_forgotten(tmp_path: Path) -> None:
    found = kept(tmp_path, [], 7, {"type": "Q8_0"}, {"sing": 1}, _CASE)
    assert len(list(found.probes())) == 1
    assert len([path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes().startswith(b"[")]) == 0


def test_a_database_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = command(*SEARCH, "--database", str(tmp_path / "file" / "below"))
    assert (ended.code, "finds cannot be kept" in ended.err) == (3, True)


def test_a_database_and_none_is_a_contradiction(tmp_path: Path) -> None:
    ended = command(*SEARCH, "--database", str(tmp_path), "--no-database")
    assert (ended.code, "a database is named" in ended.err) == (2, True)


@pytest.mark.parametrize("op", ["header", "load"])
def test_kept_files_are_tried_too(tmp_path: Path, op: str) -> None:
    (probe,) = kept(tmp_path, {"build": {}, "ask": [op]}).probes()
    assert probe.op == op
