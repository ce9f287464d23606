"""Signals that ask a command to end: Ctrl-C, a plain kill, a terminal that is closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# What a shell gives for a program that Ctrl-C ended: 128 + the number of SIGINT.
EXIT_INTERRUPTED = 130
_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asks to end; its text is the signal's name."""


@contextmanager
def signals_to(told: Callable[[Interrupted], object], *, for_good: bool = False) -> Iterator[None]:
    """Hand each signal that asks to end to ``told``, in the main thread, between any two of its steps.

    What ``told`` raises interrupts the main thread there. Outside the main thread nothing is changed; nor is a SIGHUP
    that is ignored (nohup). With ``for_good`` they are ignored after the end: Python, as it ends, gives up all handlers of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        told(Interrupted(signal.Signals(number).name))

    before = {
        number: signal.getsignal(number)
        for number in _ASKING
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if for_good else handler)


@contextmanager
def interruptible(*, for_good: bool = False) -> Iterator[None]:
    """Raise the first signal that asks to end; later ones are let pass, so that what is open can be closed.

    With ``for_good`` they are ignored after the end too: the process has nothing more to do.
    """
    seen = False

    def raise_first(interrupted: Interrupted) -> None:
        nonlocal seen
        if not seen:
            seen = True
            raise interrupted

    with signals_to(raise_first, for_good=for_good):
        try:
            yield
        finally:
            seen = True
