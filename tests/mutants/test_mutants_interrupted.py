"""A signal ends the whole command, not the run of one mutant."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.interrupts import EXIT_INTERRUPTED
from conformance.mutants import corpus


def test_a_run_that_is_interrupted_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_plan: Any, sink: Any) -> int:
        sink(None)
        return EXIT_INTERRUPTED

    monkeypatch.setattr(corpus, "run", run)
    with pytest.raises(KeyboardInterrupt):
        corpus.require_reference(None)  # type: ignore[arg-type]  # the run is none
