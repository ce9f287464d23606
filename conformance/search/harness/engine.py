"""Runs the areas one after the other: hypothesis draws, the oracle looks, and what breaks is made as small as it can be."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky

from conformance.search.harness.areas import AREAS, Area
from conformance.search.harness.broken import Broken, BrokenRule

# Examples that are drawn from one seed; with a time to fill, the next ones from the next.
ROUND = 300
# Seconds that one document may take, and that a finding may be shrunk for.
_HANG = 30
_SHRINK = 60


class _Enough(BaseException):
    """Ends a hunt from within: time is up. Hypothesis lets pass what is no Exception."""


class Hunted(NamedTuple):
    """What came of an area: the documents tried, the seconds they took, and the finding."""

    tried: int
    seconds: float
    broken: Broken | None


class _Hunt:
    """One area's search: keeps the last document that broke a rule, and when the first one did."""

    def __init__(self, area: Area, until: float | None) -> None:
        self.area = area
        self.tried = 0
        self._until = until
        self._found_at: float | None = None
        self._last: tuple[Any, BrokenRule] | None = None

    def run(self, examples: int, seed: int) -> bool:
        """Try ``examples`` documents drawn from ``seed``; True where one broke a rule, or time is up."""
        profile = settings(
            max_examples=examples,
            database=None,
            deadline=None,
            derandomize=False,
            report_multiple_bugs=False,
            print_blob=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        hunt = seeded(seed)(profile(given(self.area.documents())(self._try)))
        try:
            hunt()
        except (BrokenRule, Flaky, _Enough):
            return True
        return False

    def _try(self, document: Any) -> None:
        self._stop_in_time()
        self.tried += 1
        try:
            with TemporaryDirectory(prefix="gguf-conformance-") as folder, _ending(self.area.name):
                _looked_at(self.area, document, Path(folder))
        except BrokenRule as broken:
            self._found_at = self._found_at or time.monotonic()
            self._last = document, broken
            raise

    def _stop_in_time(self) -> None:
        now = time.monotonic()
        if self._found_at is not None and now > self._found_at + _SHRINK:
            raise _Enough
        if self._found_at is None and self._until is not None and now > self._until:
            raise _Enough

    def finding(self) -> Broken | None:
        """Give what was found, None if nothing was."""
        if self._last is None:
            return None
        document, broken = self._last
        try:
            self._found_at = None
            self._until = None
            self._try(document)
            steady = False
        except BrokenRule as again:
            broken, steady = again, True
        area = self.area
        return Broken(area.name, str(broken), area.show(document), area.repeat, area.suffix, steady)


def _looked_at(area: Area, document: Any, folder: Path) -> None:
    """Let the oracle look; what gets out of it that is no finding is one too."""
    try:
        area.check(document, folder)
    except BrokenRule:
        raise
    except Exception as problem:
        raise BrokenRule(f"nobody expected {type(problem).__name__}: {str(problem)[:300]}") from problem


# A file system in memory, where there is one: a run makes and removes folders, which on a disk took half of the time.
_MEMORY = Path("/dev/shm")  # noqa: S108 - folders in it are made by tempfile


@contextmanager
def _quick_folders() -> Iterator[None]:
    """Let temporary folders, the engine's too, be in memory if they can."""
    before = tempfile.tempdir
    tempfile.tempdir = str(_MEMORY) if os.access(_MEMORY, os.W_OK) else before
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _ending(name: str) -> Iterator[None]:
    """Raise BrokenRule where a document keeps the harness busy without end; outside the main thread nothing is watched."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: object) -> None:
        raise BrokenRule(f"{name}: no end within {_HANG} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def hunt(area: Area, seconds: float | None, examples: int | None, seed: int) -> Hunted:
    """Search one area for a time, or for a number of examples, whichever ends first."""
    began = time.monotonic()
    chase = _Hunt(area, None if seconds is None else began + seconds)
    done, rounds = False, 0
    with _quick_folders():
        while not done and (left := ROUND if examples is None else examples - rounds * ROUND) > 0:
            done = chase.run(min(left, ROUND), seed + rounds)
            rounds += 1
        return Hunted(chase.tried, time.monotonic() - began, chase.finding())


def search_areas(
    areas: Sequence[Area], seconds: float | None, examples: int | None, seed: int, say: Callable[[str], None]
) -> list[Broken]:
    """Search the areas; ``seconds`` and ``examples`` are for all together and are shared out."""
    whole = sum(area.share for area in areas)
    found = []
    for area in areas:
        part = area.share / whole
        hunted = hunt(
            area,
            None if seconds is None else seconds * part,
            None if examples is None else max(1, round(examples * part)),
            seed,
        )
        told = f"BROKEN: {hunted.broken.what}" if hunted.broken else "nothing broke"
        say(f"{area.name}: {hunted.tried:,} examples in {hunted.seconds:.1f} s: {told}")
        if hunted.broken:
            found.append(hunted.broken)
    return found


def all_areas() -> tuple[Area, ...]:
    """Give all areas in their order."""
    return AREAS
