"""What the search of the harness finds: a rule that did not hold, and the smallest input that shows it."""

from __future__ import annotations

import msgspec


class BrokenRule(Exception):  # noqa: N818 - it is the finding, not an error of the search
    """Raised by an oracle: ``args[0]`` says in one line what did not hold."""


class Broken(msgspec.Struct, frozen=True):
    """One finding: the ``area`` searched, ``what`` broke, the shrunk ``document`` that shows it, and how to ``repeat`` it.

    ``suffix`` is the ending that a file of the document has by its nature (``.yaml``). ``steady`` is False where the input broke
    the rule once and not again.
    """

    area: str
    what: str
    document: bytes
    repeat: str
    suffix: str = ".txt"
    steady: bool = True


def require(holds: object, what: str) -> None:
    """Raise BrokenRule with ``what`` unless it ``holds``."""
    if not holds:
        raise BrokenRule(what)
