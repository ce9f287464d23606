"""The search turned on the harness itself: made-up case files, manifests, streams, answers, words (docs/search-harness.md)."""

from __future__ import annotations

from collections.abc import Callable

from conformance.search.harness.broken import Broken
from conformance.search.hypotheses import require_hypothesis

__all__ = ["Broken", "search_harness"]

# What a search of examples tries where neither a time nor a number is given.
DEFAULT_EXAMPLES = 4000


def search_harness(seconds: float | None, examples: int | None, seed: int, say: Callable[[str], None]) -> list[Broken]:
    """Search all areas of the harness; gives at most one finding an area, shrunk.

    ``seconds`` and ``examples`` are for all areas together; whichever ends first ends the search. With ``examples`` alone the same
    ``seed`` tries the same documents. ``say`` is given a line an area. Raises ConfigurationError where hypothesis is not installed.
    """
    require_hypothesis()
    from conformance.search.harness.engine import all_areas, search_areas  # noqa: PLC0415 - needs hypothesis

    if seconds is None and examples is None:
        examples = DEFAULT_EXAMPLES
    return search_areas(all_areas(), seconds, examples, seed, say)
