"""A model in several files, opened as one.

Source: ``llama_model_loader`` and ``llama_split_path`` in llama.cpp's src/: the first part says how many there are, each says its
number, and the names follow from the first one's.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from impl.container.file import File, Tensor, open_file
from impl.container.metadata import Metadata
from impl.errors import GgufError, InputError

NO, COUNT, TENSORS = "split.no", "split.count", "split.tensors.count"


def split_path(prefix: str, number: int, count: int) -> str:
    """Give the name of part ``number``, from 0 on, of ``count``."""
    return f"{prefix}-{number + 1:05}-of-{count:05}.gguf"


class SplitFile:
    """The parts of a model as one. ``metadata`` is the first part's; ``tensors`` are all parts', in order."""

    def __init__(self, parts: list[File]) -> None:
        self.parts = parts
        self.tensors: list[Tensor] = [tensor for part in parts for tensor in part.tensors]

    @property
    def metadata(self) -> Metadata:
        """The first part's key-value pairs; the others only tell their own number."""
        return self.parts[0].metadata


def open_split(
    path: str | os.PathLike[str],
    *,
    full: bool = False,
    profile: str = "llama.cpp",
    versions: Collection[int] | None = None,
    byteorder: str | None = None,
) -> SplitFile:
    """Open a model by its first part's path, and all other parts beside it; a model in one file is one part.

    Takes what ``impl.open`` takes.

    Raises:
        GgufError: a part is refused.
        InputError: the path is not the first part's; a part is missing, or of another model; the tensors are fewer or more than
            the first part says, or two have one name.
        OSError: a part cannot be read.

    """
    first = Path(path)
    options = {"full": full, "profile": profile, "versions": versions, "byteorder": byteorder}
    parts = [open_file(first, **options)]  # type: ignore[arg-type] # the options of open_file, as they were given
    count = _number(parts[0], first, COUNT, "u16") if COUNT in parts[0].metadata else 1
    if count > 1:
        for number, other in enumerate(_names(first, parts[0], count)[1:], start=1):
            part = _open_part(_there(other, number, count), options)
            _check_part(part, other, number, count)
            parts.append(part)
        _check_tensors(parts, first)
    return SplitFile(parts)


def _names(first: Path, part: File, count: int) -> list[Path]:
    number = _number(part, first, NO, "u16")
    suffix = split_path("", number, count)
    if not first.name.endswith(suffix):
        raise InputError(
            f"{first} says that it is part {number + 1} of {count}, but its name does not end with {suffix}: rename it"
        )
    names = [first.with_name(split_path(first.name.removesuffix(suffix), each, count)) for each in range(count)]
    if number != 0:
        raise InputError(f"{first} is part {number + 1} of {count}: give the first one, {names[0].name}")
    return names


def _there(path: Path, number: int, count: int) -> Path:
    if not path.exists():
        raise InputError(f"part {number + 1} of {count} is missing: {path} is not there; fetch it, and all others")
    return path


def _open_part(path: Path, options: dict[str, object]) -> File:
    try:
        return open_file(path, **options)  # type: ignore[arg-type] # the options of open_file, as they were given
    except GgufError as error:
        problem = f"{error.problem}, in {path.name}"
        raise GgufError(error.reject_class, problem, field=error.field, at=error.at) from None


def _check_part(part: File, path: Path, number: int, count: int) -> None:
    for key, wanted in ((NO, number), (COUNT, count)):
        found = _number(part, path, key, "u16")
        if found != wanted:
            raise InputError(f"{path}: {key} is {found}, not {wanted}: it is a part of another model, or was renamed")


def _check_tensors(parts: list[File], first: Path) -> None:
    wanted = _number(parts[0], first, TENSORS, "i32")
    found = sum(len(part.tensors) for part in parts)
    if found != wanted:
        raise InputError(f"{first}: {TENSORS} is {wanted}, but the {len(parts)} parts have {found}: they are not of one model")
    seen: set[bytes] = set()
    for part in parts:
        for tensor in part.tensors:
            if tensor.info.name in seen:
                raise InputError(f"{first}: two parts have a tensor named {tensor.name!r}: they are not of one model")
            seen.add(tensor.info.name)


def _number(part: File, path: Path, key: str, kind: str) -> int:
    """Give one of the keys that tell how a model is split. Raises InputError where it is not there, or of another type."""
    if key not in part.metadata:
        raise InputError(f"{path}: the key {key} is missing, which each part of a split model has: fetch the part again")
    if part.metadata.type(key) != kind:
        raise InputError(f"{path}: {key} is of type {part.metadata.type(key)}, it must be {kind}: split the model again")
    value = part.metadata[key]
    assert isinstance(value, int)  # noqa: S101 - u16 and i32 are integers
    return value
