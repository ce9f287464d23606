"""docs/mutants.md is what the manual, the catalogue and the record say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.errors import ConfigurationError
from conformance.mutants.catalogue import load_catalogue
from conformance.mutants.matrix import Kill, Row, read_record, write_record
from conformance.mutants.page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(load_catalogue(), read_record()), "gguf-conformance mutants --no-search --record"


def test_the_page_has_a_line_for_every_mutant() -> None:
    lines = re.findall(r"^\| ([a-z0-9_-]+) \| .* \| (\d+ of \d+|\*\*none\*\*) \|", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    assert [name for name, _ in lines] == list(load_catalogue())


def test_a_row_of_a_mutant_that_lives_says_so() -> None:
    catalogue = load_catalogue()
    name = next(iter(catalogue))
    assert f"| {name} | " in page(catalogue, {name: Row(name, 5, 0, ())})
    assert "| **none** | - |" in page(catalogue, {name: Row(name, 5, 0, ())})


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    row = Row("a", 3, 1, (Kill("container/a/b", "header:-:value:kv[*].value"),))
    write_record([row], tmp_path / "m.json")
    assert read_record(tmp_path / "m.json") == {"a": row}


def test_a_missing_record_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no record") as caught:
        read_record(tmp_path / "m.json")
    assert "--record" in caught.value.hint
