"""The profiles by name."""

from __future__ import annotations

from collections.abc import Collection

from impl.container.rules import Rules
from impl.errors import InputError

PROFILES = ("llama.cpp", "gguf-py", "spec")
_BYTE_ORDERS = ("little", "big", "either")
_VERSIONS = (1, 2, 3)


def rules_of(profile: str, versions: Collection[int] | None = None, byteorder: str | None = None) -> Rules:
    """Give a profile's rules, for its own versions and byte order or for the given ones.

    Raises:
        InputError: no such profile, version or byte order.

    """
    if versions is not None and not isinstance(versions, Collection):
        raise InputError(f"versions are some of 1, 2 and 3, as a tuple, not {versions!r}")
    for version in versions or ():
        if version not in _VERSIONS:
            raise InputError(f"versions are some of 1, 2 and 3, not {version!r}")
    if byteorder is not None and byteorder not in _BYTE_ORDERS:
        raise InputError(f"byteorder must be 'little', 'big' or 'either', not {byteorder!r}")
    return _class_of(profile)(versions, byteorder)


def _class_of(profile: str) -> type[Rules]:
    if profile == "gguf-py":
        from impl.container.gguf_py_rules import GgufPyRules  # noqa: PLC0415 - most never read by these rules

        return GgufPyRules
    if profile == "spec":
        from impl.container.spec_rules import SpecRules  # noqa: PLC0415 - the same

        return SpecRules
    if profile == "llama.cpp":
        return Rules
    raise InputError(f"unknown profile {profile!r}: the known ones are {', '.join(PROFILES)}")
