"""Names of case reports: an id's own path, made safe for a file system."""

from __future__ import annotations

import hashlib
import string

_SAFE = frozenset(string.ascii_letters + string.digits + "-_.+=@,")
# File systems allow 255 bytes; the ending, and the temporary names of tools, need some of them.
_LONGEST = 200


def case_path(case: str) -> str:
    """Give the relative path, with ``/`` and without ending, of the reports on the case with this id.

    What is no plain letter, digit or ``-_.+=@,`` is percent-encoded, so that no id leaves the folder and no two ids share a
    path; a part that is too long for a file system ends in a digest.
    """
    return "/".join(_part(part) for part in case.split("/"))


def _part(part: str) -> str:
    if not part.strip("."):
        return "%2E" * len(part) or "%"
    encoded = "".join(character if character in _SAFE else _percent(character) for character in part)
    if len(encoded) <= _LONGEST:
        return encoded
    return f"{encoded[: _LONGEST - 17]}~{hashlib.sha256(encoded.encode()).hexdigest()[:16]}"


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
