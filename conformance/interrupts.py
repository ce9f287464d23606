"""Signals that ask a command to end: Ctrl-C, a plain kill, a terminal that is closed."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# What a shell gives for a program that Ctrl-C ended: 128 + the number of SIGINT.
EXIT_INTERRUPTED = 130
_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Seconds until a signal is sent again whose exception Python dropped: long enough for a finalizer to end.
_AGAIN = 0.005


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

    A signal that comes while Python runs a finalizer or a weak reference's callback, where it drops what is raised, is raised
    a moment later. With ``for_good`` signals are ignored after the end too: the process has nothing more to do.
    """
    seen = False

    def raise_first(interrupted: Interrupted) -> None:
        nonlocal seen
        if not seen:
            seen = True
            raise interrupted

    def dropped(interrupted: Interrupted) -> None:
        nonlocal seen
        seen = False
        _send_again(signal.Signals[str(interrupted)])

    with signals_to(raise_first, for_good=for_good), _told_of_dropped(dropped):
        try:
            yield
        finally:
            seen = True


@contextmanager
def _told_of_dropped(told: Callable[[Interrupted], None]) -> Iterator[None]:
    """Hand ``told`` each Interrupted that Python would print as ignored; all else goes to the hook that was there."""
    before = sys.unraisablehook

    def hook(unraisable: UnraisableHookArgs, /) -> None:
        if isinstance(unraisable.exc_value, Interrupted):
            told(unraisable.exc_value)
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _send_again(number: signal.Signals) -> None:
    """Send a signal to the main thread once more, after what is running there now.

    By a bare thread: whoever is in a finalizer may hold the locks that ``threading`` takes to start one of its own.
    """

    def send() -> None:
        time.sleep(_AGAIN)
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, number)

    _thread.start_new_thread(send, ())
