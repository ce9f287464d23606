"""docs/library.md: its examples run, one after the other."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "library.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    assert len(examples) >= 5
    names: dict[str, Any] = {}
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)  # noqa: S102 - the page's own examples
    assert names["blocks"].shape == (4, 288)
    assert names["kept"].shape == names["vector"].shape == names["products"].shape == (4,)
