"""``python -m conformance.subjects.authorities.gguf_py``: the adapter of the authority ``gguf-py``."""

from __future__ import annotations

import importlib.util
import sys

from conformance.errors import AuthorityMissingError
from conformance.subjects.authorities import GGUF_PY


def require_gguf() -> None:
    """Raise AuthorityMissingError unless the package is installed."""
    if importlib.util.find_spec("gguf") is None:
        raise AuthorityMissingError(
            "gguf-py is not installed: this Python has no package gguf",
            where=sys.executable,
            hint=f"Install it with: python -m pip install gguf=={GGUF_PY}",
        )


def main(arguments: list[str]) -> int:
    """Run the adapter; give its exit code."""
    try:
        require_gguf()
    except AuthorityMissingError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the adapter's own stderr, where the harness looks for it
        return error.exit_code
    from conformance.subjects.authorities.gguf_py.face import adapter  # noqa: PLC0415 - imports gguf, which may be missing

    return adapter().main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
