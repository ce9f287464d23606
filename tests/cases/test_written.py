"""What is written as YAML reads back to the same text in every scalar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.cases.located import read_yaml
from conformance.cases.written import to_yaml

SCALARS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8) | st.integers() | st.booleans()
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc01 :#-", max_size=4), inner, max_size=3)
)


def as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=4), TREES, min_size=1, max_size=4))
def test_every_scalar_reads_back_as_its_text(tmp_path_factory: Any, document: dict[str, Any]) -> None:
    path = Path(tmp_path_factory.mktemp("written")) / "case.yaml"
    path.write_text(to_yaml(document), encoding="utf-8")
    assert read_yaml(path) == as_text(document)


def test_it_is_written_as_a_person_would() -> None:
    assert to_yaml({"kv": [{"key": "a", "u8": 7, "deep": {3: True}}]}) == "kv:\n- key: a\n  u8: 7\n  deep: {3: true}\n"
