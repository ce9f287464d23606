"""Draws of hypothesis, without what a test of a program needs: no database, no deadline, no shrinking of its own.

hypothesis chooses what to try; how a find is made small is this package's matter, since it can put many candidates at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.errors import ConfigurationError


class _Failed(BaseException):
    """Carries an error past hypothesis, which would put the same draw again to see it a second time."""


def draw(strategy: Any, put: Callable[[Any], None], *, seed: int, examples: int) -> None:
    """Call ``put`` with ``examples`` draws of a strategy, the same ones for the same ``seed``; what it raises passes through."""
    from hypothesis import HealthCheck, Phase, given, settings  # noqa: PLC0415 - an extra
    from hypothesis import seed as seeded  # noqa: PLC0415 - the same

    @seeded(seed)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def test(drawn: Any) -> None:
        try:
            put(drawn)
        except Exception as problem:
            raise _Failed from problem

    try:
        test()
    except _Failed as failed:
        assert failed.__cause__ is not None  # noqa: S101 - it was raised from it
        raise failed.__cause__ from None


def require_hypothesis() -> None:
    """Make sure that hypothesis is installed. Raises ConfigurationError that says how to get it."""
    try:
        import hypothesis  # noqa: F401, PLC0415 - an extra
    except ImportError:
        hint = "pip install 'hypothesis>=6.100'"
        raise ConfigurationError("a search needs the package hypothesis, which is not installed", hint=hint) from None
