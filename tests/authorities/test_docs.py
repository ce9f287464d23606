"""docs/authorities.md names what the code has: each class, each probe, each flag, each variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.subjects.authorities import GGUF_PY, LLAMA_CPP_PYTHON, build
from conformance.subjects.authorities.llama_cpp import library, probe, rejects

TEXT = (Path(__file__).parents[2] / "docs" / "authorities.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted({name for _, name in rejects._MESSAGES}))
def test_each_class_of_llama_cpp(name):
    assert f"| `{name}`" in TEXT or f"`, `{name}`" in TEXT


@pytest.mark.parametrize("found", [*probe.QUANT_PROBES, *probe.DOT_PROBES])
def test_each_probe(found):
    separate, fused = (
        (f"{found.separate}", f"{found.fused}")
        if isinstance(found, probe.QuantProbe)
        else (f"`{found.separate:#x}`", f"`{found.fused:#x}`")
    )
    row = next(
        line for line in TEXT.splitlines() if line.startswith(f"| {found.type},") and line.endswith(f"| {separate} | {fused} |")
    )
    if isinstance(found, probe.QuantProbe):
        assert f"`{found.largest:#x}`, `{found.value:#x}`" in row


@pytest.mark.parametrize(
    "text", [build.FLAGS, build.WHEELS_VARIABLE, library.LIBRARY_VARIABLE, f"| {GGUF_PY} |", f"| {LLAMA_CPP_PYTHON} "]
)
def test_what_a_user_types_or_looks_for(text):
    assert text in TEXT
