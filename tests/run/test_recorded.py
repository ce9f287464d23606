"""A golden run judges only by answers that the case declares, and by all that are due."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import ConfigurationError
from conformance.search.harness.small import golden_path
from conformance.search.harness.stub import golden_file, run_small, sound
from tests.run.conftest import Bench

REJECTED = {"outcome": {"outcome": "reject", "reject_class": "bad-key"}}
Steps = dict[str, Any]


def _edit(bench: Bench, suite: str, key: str, change: Callable[[Steps], object]) -> None:
    """Change what is recorded of both authorities (one's answers may refer to the other's), as a person with an editor would."""
    path = bench.store.path(suite)
    document = json.loads(path.read_text())
    case = document["cases"][key]
    case["gguf-py"] = dict(case["llama.cpp"])
    change(case["llama.cpp"])
    case["gguf-py"] = {step: answer for step, answer in case["gguf-py"].items() if step in case["llama.cpp"]}
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("case", "change", "told"),
    [
        (
            "small/files/plain",
            lambda steps: steps.update(header=REJECTED),
            "llama.cpp/header: the outcome is reject bad-key, the case declares accept",
        ),
        (
            "small/files/alignment-0",
            lambda steps: steps["header"]["outcome"].update(reject_class="bad-key"),
            "llama.cpp/header: the outcome is reject bad-key, the case declares reject bad-alignment",
        ),
        (
            "small/blocks/q4_k",
            lambda steps: steps.update(dequantize=REJECTED),
            "llama.cpp/dequantize: the outcome is reject bad-key",
        ),
        ("small/files/tensor", lambda steps: steps.pop("tensor[0]"), "llama.cpp/tensor[0]: no answer"),
    ],
)
def test_what_cannot_judge_ends_the_run_before_it_starts(
    bench: Bench, case: str, change: Callable[[Steps], object], told: str
) -> None:
    bench.record()
    suite, _, key = case.rpartition("/")
    _edit(bench, suite, key, change)
    with pytest.raises(ConfigurationError) as caught:
        bench.run(bench.impl, live=False, select=suite)
    text = str(caught.value)
    assert f"case {key!r}: {told}" in text
    assert text.startswith(str(bench.store.path(suite)))
    assert f"gguf-conformance record -s '{case}'" in text


def test_it_matters_for_the_selected_cases_only(bench: Bench) -> None:
    bench.record()
    _edit(bench, "small/files", "plain", lambda steps: steps.update(header=REJECTED))
    assert bench.run(bench.impl, live=False, select="small/files/tensor").code == 0


def test_a_size_that_is_not_that_of_its_dimensions_is_named(tmp_path: Path) -> None:
    """Its values could not be asked for: there would be more, or fewer, than the file holds."""
    recorded = json.loads(golden_file())
    header = recorded["cases"]["plain"]["llama.cpp"]["header"]["outcome"]["header"]
    header["tensors"][0]["dims"] = ["64"]
    golden_path(tmp_path / "golden").write_text(json.dumps(recorded))
    with pytest.raises(ConfigurationError, match="nbytes is 34, expected 68 for dims 64") as caught:
        run_small(tmp_path / "golden", tmp_path, sound)
    assert caught.value.where == str(golden_path(tmp_path / "golden"))
