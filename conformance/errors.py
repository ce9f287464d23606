"""Errors that end a command, each with its exit code, what is wrong, and what to do next."""

from __future__ import annotations

EXIT_OK = 0
EXIT_DIVERGENCE = 1
EXIT_USAGE = 2
EXIT_HARNESS = 3
EXIT_AUTHORITY_MISSING = 4


class GgufConformanceError(Exception):
    """Base of every error that a user is meant to read.

    ``message`` says what is wrong and shows the offending value, ``where`` says where it stands
    (``file:line`` or a path), ``hint`` says what to do next.
    """

    exit_code = EXIT_HARNESS

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}\n  {self.hint}" if self.hint else head


class UsageError(GgufConformanceError):
    """The command line asks for something that does not exist or selects nothing."""

    exit_code = EXIT_USAGE


class ConfigurationError(GgufConformanceError):
    """A case file, a manifest, a divergences file or the environment is wrong."""

    exit_code = EXIT_HARNESS


class AuthorityMissingError(GgufConformanceError):
    """A live run needs an authority that is not installed."""

    exit_code = EXIT_AUTHORITY_MISSING
