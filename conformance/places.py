"""Where things are: the cases, the adapters, and the cache of files fetched for model cases."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.errors import ConfigurationError

_PACKAGE = Path(__file__).resolve().parent


def cases_root() -> Path:
    """Give the folder of the YAML cases: the checkout's, else the wheel's copy.

    Raises ConfigurationError where neither is there.
    """
    return _shipped("cases")


def adapters_root() -> Path:
    """Give the folder of the adapters: the checkout's, else the wheel's copy.

    Raises ConfigurationError where neither is there.
    """
    return _shipped("adapters")


def cache_root() -> Path:
    """Give the cache folder (it need not exist): ``$GGUF_CONFORMANCE_CACHE``, else a folder of ours in the user's cache.

    It is absolute: programs that run in other folders are told it. Raises ConfigurationError where the user has no home.
    """
    own = os.environ.get("GGUF_CONFORMANCE_CACHE")
    if own:
        return Path(own).absolute()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users).absolute() if users else _home() / ".cache") / "gguf-conformance"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as problem:
        raise ConfigurationError(
            "there is no place for a cache: the user has no home folder", hint="set GGUF_CONFORMANCE_CACHE to a folder, or HOME"
        ) from problem


def _shipped(name: str) -> Path:
    """Find ``name`` beside the package (a checkout has ``pyproject.toml`` there too) or in the wheel's data."""
    checkout = _PACKAGE.parent
    if (checkout / name).is_dir() and (checkout / "pyproject.toml").is_file():
        return checkout / name
    shipped = _PACKAGE / "_data" / name
    if shipped.is_dir():
        return shipped
    raise ConfigurationError(
        f"no folder of {name}: neither {checkout / name} (of a checkout, with pyproject.toml beside it) nor {shipped}",
        hint="install the wheel again, or run from a complete checkout",
    )
