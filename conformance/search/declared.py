"""Findings as declared cases: their mappings, with what the authorities are seen to answer, in files that load like any other."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.cases.load import load_suite
from conformance.cases.model import AUTHORITIES, Case
from conformance.cases.written import to_yaml

_OBSERVED = dict.fromkeys(AUTHORITIES, "observe")


def suite_text(suite: str, cases: Mapping[str, Mapping[str, Any]], about: Mapping[str, str] | None = None) -> str:
    """Give the text of a case file; ``about`` are keys beside ``suite`` and ``cases`` (``spec``, ``note``)."""
    return to_yaml({"suite": suite, **(about or {}), "cases": {key: dict(case) for key, case in cases.items()}})


def load_one(mapping: Mapping[str, Any], key: str = "one") -> Case:
    """Load a case from its mapping; nothing is expected where the mapping does not say it. Raises ConfigurationError."""
    with tempfile.TemporaryDirectory(prefix="gguf-conformance-") as folder:
        path = Path(folder) / "found" / "search.yaml"
        path.parent.mkdir()
        path.write_text(suite_text("found/search", {key: {"expect": _OBSERVED, **mapping}}), encoding="utf-8")
        return load_suite(path, Path(folder))[0]
