"""What a refusal owes: it is one of the project's errors, says something, and names the place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import GgufConformanceError
from conformance.search.harness.broken import BrokenRule, require


@contextmanager
def no_traceback(doing: str) -> Iterator[None]:
    """Let the project's own errors and findings through; raise BrokenRule for any other exception that comes up while ``doing``."""
    try:
        yield
    except (GgufConformanceError, BrokenRule):
        raise
    except Exception as problem:
        raise BrokenRule(f"{doing}: traceback: {type(problem).__name__}: {str(problem)[:300]}") from problem


def require_refusal(problem: GgufConformanceError, code: int, *places: Path) -> None:
    """Hold an error to its exit code, a message, and, with ``places``, to naming one of them as where it stands."""
    require(problem.exit_code == code, f"refused with exit code {problem.exit_code}, not {code}: {problem}")
    require(problem.message.strip(), "refused without a message")
    named = not places or any(str(place) in problem.where for place in places)
    require(named, f"refused without saying where it stands: where is {problem.where!r}: {problem.message[:200]}")
