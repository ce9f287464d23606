"""A live run may leave out the authorities that judge none of its subjects."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from conformance.report.events import CaseResult
from conformance.run.setup import Options, make_plan
from conformance.subjects.manifest import find_manifest
from tests.run.conftest import Bench

OFFSET = """
suite: small/offset
cases:
  one:
    ask: [header, tensor]
    build: {tensors: [{name: a, type: F32, dims: [4], offset: 32}]}
    expect: {llama.cpp: {reject: bad-offset}, gguf-py: accept, spec: accept}
"""
KNOWN = "divergences: [{pattern: small/**, kind: policy, reason: offsets are free, signature: [SIGNATURES]}]".replace(
    "SIGNATURES", ", ".join(f"'{where}:ok-for-reject-bad-offset:-'" for where in ("header:-", "tensor:F32"))
)
AUTHORITIES = (("impl", "llama.cpp"), ("impl-gguf-py", "gguf-py"))
CASE = ("small/files/plain",)


@pytest.mark.parametrize(
    ("subjects", "profile", "asked"),
    [
        (("impl",), None, ["llama.cpp"]),
        (("impl-gguf-py",), None, ["gguf-py"]),
        (("impl", "impl-gguf-py"), None, ["llama.cpp", "gguf-py"]),
        (("impl-spec",), None, ["llama.cpp", "gguf-py"]),
        (("impl",), "gguf-py", ["gguf-py"]),
    ],
)
def test_who_judges_is_asked(bench: Bench, subjects: tuple[str, ...], profile: str | None, asked: list[str]) -> None:
    options = Options(subjects, CASE, "live", profile, bench.root)
    assert [manifest.name for manifest in make_plan(options).authorities] == ["llama.cpp", "gguf-py"]
    plan = make_plan(options._replace(judges_only=True))
    assert [manifest.name for manifest in plan.authorities] == asked
    assert plan.repeat.endswith("--judges-only")


def test_recorded_answers_ask_nobody(bench: Bench) -> None:
    assert make_plan(Options(("impl",), CASE, "golden", cases=bench.root, judges_only=True)).authorities == ()


def test_what_the_others_would_have_shown_is_not_called_stale(bench: Bench, tmp_path: Path) -> None:
    """Of a file that its judge refuses, an authority that takes it says which tensors there are."""
    bench.write("small/offset", OFFSET)
    (tmp_path / "known.yaml").write_text(KNOWN)
    free = msgspec.structs.replace(
        find_manifest("impl-gguf-py"), name="free", profile="llama.cpp", divergences=tmp_path / "known.yaml"
    )
    strict, lenient = (msgspec.structs.replace(find_manifest(name), name=name_) for name, name_ in AUTHORITIES)
    for authorities, undecided in (((strict, lenient), ()), ((strict,), ("tensor",))):
        ran = bench.run(free, select="small/offset", authorities=authorities)
        assert (ran.code, ran.problems) == (0, [])
        (result,) = [event for event in ran.events if isinstance(event, CaseResult) and event.who == "free"]
        assert (result.verdict, result.undecided) == ("known", undecided)
