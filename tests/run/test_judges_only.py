"""A live run may leave out the authorities that judge none of its subjects."""

from __future__ import annotations

import pytest

from conformance.run.setup import Options, make_plan

CASE = ("container/magic",)


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
def test_who_judges_is_asked(subjects: tuple[str, ...], profile: str | None, asked: list[str]) -> None:
    options = Options(subjects, CASE, "live", profile)
    assert [manifest.name for manifest in make_plan(options).authorities] == ["llama.cpp", "gguf-py"]
    plan = make_plan(options._replace(judges_only=True))
    assert [manifest.name for manifest in plan.authorities] == asked
    assert plan.repeat.endswith("--judges-only")


def test_recorded_answers_ask_nobody() -> None:
    assert make_plan(Options(("impl",), CASE, "golden", judges_only=True)).authorities == ()
