from __future__ import annotations

import signal
import time

import pytest

from conformance.interrupts import Interrupted, interruptible


class Finalized:
    """Its finalizer is interrupted: Python drops what is raised there, prints it, and goes on."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)
        time.sleep(0)  # here the handler runs


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_a_finalizer_is_not_lost(number: signal.Signals, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Interrupted, match=number.name), interruptible():
        Finalized(number)
        time.sleep(10)
    assert capfd.readouterr().err == ""


def test_what_else_python_ignores_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: told.append(unraisable.exc_type))

    class Faulty:
        def __del__(self) -> None:
            raise ZeroDivisionError

    with interruptible():
        Faulty()
    assert told == [ZeroDivisionError]
