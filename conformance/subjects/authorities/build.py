"""Builds llama-cpp-python so that its results do not depend on the machine, and installs it.

``python -m conformance.subjects.authorities.build [--wheel-only]``

A wheel from elsewhere is not enough: compilers may contract ``a * b + c`` into one rounding, and ggml by default compiles for the
machine at hand. The wheel is kept in a cache of our own, in a folder that names version, flags, machine and Python. pip's own cache
of wheels knows nothing of flags, so it is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

from conformance.errors import AuthorityMissingError, ConfigurationError, GgufConformanceError
from conformance.logged import TAIL_LINES, Say, last_lines, run_logged
from conformance.places import cache_root
from conformance.subjects.authorities import LLAMA_CPP_PYTHON
from conformance.subjects.authorities.identify import identify, native_units
from conformance.subjects.authorities.llama_cpp.library import LIBRARY_VARIABLE

FLAGS = "-DGGML_NATIVE=OFF -DCMAKE_C_FLAGS=-ffp-contract=off -DCMAKE_CXX_FLAGS=-ffp-contract=off"
WHEELS_VARIABLE = "GGUF_CONFORMANCE_WHEELS"

# Variables by which a user's shell could change the build behind the folder's name.
_OTHER_FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "CMAKE_ARGS", "SKBUILD_CMAKE_ARGS", "SKBUILD_CMAKE_DEFINE")
_STEP = re.compile(rb"\[\d+/\d+\]")


def wheels_root() -> Path:
    """Give the folder of built wheels (it need not exist): ``$GGUF_CONFORMANCE_WHEELS``, else one in the cache."""
    own = os.environ.get(WHEELS_VARIABLE)
    return Path(own) if own else cache_root() / "wheels"


def wheel_folder() -> Path:
    """Give the folder of the wheel that this Python on this machine would build."""
    built_by = "\n".join([FLAGS, platform.system(), platform.machine(), sys.implementation.cache_tag or sys.version])
    return wheels_root() / f"{LLAMA_CPP_PYTHON}-{hashlib.sha256(built_by.encode()).hexdigest()[:12]}"


def cached_wheel() -> Path | None:
    """Give the wheel that was built before, None if there is none."""
    return next(iter(sorted(wheel_folder().glob("llama_cpp_python-*.whl"))), None)


def why_not_installed() -> str | None:
    """Say what keeps the installed library from being the build that is wanted, None if nothing does."""
    if find_spec("llama_cpp") is None:
        return "llama-cpp-python is not installed"
    try:
        found = identify("llama.cpp", without=(LIBRARY_VARIABLE,))
    except AuthorityMissingError as error:
        return error.message
    if found.version != LLAMA_CPP_PYTHON:
        return f"version {found.version} is installed"
    fused = [part for part in ("base", "dot") if found.details.get(f"contraction_{part}") != "off"]
    if fused:
        return f"the installed library contracts multiply and add ({', '.join(fused)})"
    units = native_units(found)
    return f"the installed library was compiled for one machine ({', '.join(units)})" if units else None


def build_wheel(say: Say) -> Path:
    """Compile the wheel and put it into the cache; ``say`` gets a line of progress each few seconds.

    Raises ConfigurationError, with the end of the log, if pip or a compiler is missing or the build fails.
    """
    _require_tools()
    folder = wheel_folder()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    say(f"building llama-cpp-python {LLAMA_CPP_PYTHON} from source: about six minutes on two cores; log: {log}")
    with tempfile.TemporaryDirectory(dir=folder) as workshop:
        status = _compile(Path(workshop), log, say)
        built = next(iter(Path(workshop).glob("*.whl")), None)
        if status != 0 or built is None:
            raise _failed(status, log)
        wheel = folder / built.name
        built.replace(wheel)  # in one step: a wheel in the cache is a whole one
    return wheel


def install(wheel: Path) -> None:
    """Put the wheel into the running interpreter's environment. Raises ConfigurationError if pip refuses."""
    _require_pip()
    command = [*_pip("install"), "--force-reinstall", "--no-deps", "--no-index", str(wheel)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        tail = "\n  ".join((run.stderr or run.stdout).strip().splitlines()[-TAIL_LINES:])
        raise ConfigurationError(f"pip could not install {wheel.name}:\n  {tail}", where=sys.prefix)
    invalidate_caches()  # of what this process believes to be installed


def main(arguments: list[str] | None = None) -> int:
    """Build what is missing and install it; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.subjects.authorities.build",
        description="Build and install the authority llama.cpp, with the flags that make its results the same on every machine.",
    )
    parser.add_argument("--wheel-only", action="store_true", help="build the wheel into the cache, install nothing")
    options = parser.parse_args(arguments)
    try:
        _provide(_say, wheel_only=options.wheel_only)
    except GgufConformanceError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's error
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)  # noqa: T201 - a command's error
        return 130
    return 0


def _provide(say: Say, *, wheel_only: bool) -> None:
    if not wheel_only:
        reason = why_not_installed()
        if reason is None:
            say(f"llama-cpp-python {LLAMA_CPP_PYTHON} with these flags is installed already; nothing to do")
            return
        say(reason)
    wheel = cached_wheel()
    say(f"wheel in the cache: {wheel}" if wheel else f"no wheel in {wheel_folder()}")
    wheel = wheel or build_wheel(say)
    if wheel_only:
        say(f"built: {wheel}")
        return
    install(wheel)
    reason = why_not_installed()
    if reason is not None:
        raise ConfigurationError(
            f"after installing it, {reason}", where=str(wheel), hint=f"Remove {wheel.parent} and run this again."
        )
    say(f"installed {wheel.name}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command's progress


def _compile(workshop: Path, log: Path, say: Say) -> int:
    """Run pip, and give its exit status; on any exception what it started ends with it."""
    log.unlink(missing_ok=True)
    return run_logged(_wheel_command(workshop), log, say, step=_step, env=_environment())


def _step(end: bytes) -> str:
    """Give the compiler's last step, ``[57/193]``, from the end of the log."""
    steps = _STEP.findall(end)
    return steps[-1].decode() if steps else "preparing"


def _pip(command: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", command]


def _wheel_command(workshop: Path) -> list[str]:
    options = ["--verbose", "--no-deps", "--no-cache-dir", "--no-binary", "llama-cpp-python", "--wheel-dir", str(workshop)]
    return [*_pip("wheel"), *options, f"llama-cpp-python=={LLAMA_CPP_PYTHON}"]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OTHER_FLAGS}
    return {**kept, "CMAKE_ARGS": FLAGS}


def _require_pip() -> None:
    if find_spec("pip") is None:
        raise ConfigurationError("this Python has no pip", where=sys.executable, hint="Install it with: python -m ensurepip")


def _require_tools() -> None:
    """Raise ConfigurationError unless there are pip, a C and a C++ compiler; pip itself gets cmake where it is missing."""
    _require_pip()
    for variable, language, names in (("CC", "C", ("cc", "gcc", "clang")), ("CXX", "C++", ("c++", "g++", "clang++"))):
        wanted = (os.environ[variable].split()[0],) if os.environ.get(variable, "").strip() else names
        if not any(shutil.which(name) for name in wanted):
            raise ConfigurationError(
                f"no {language} compiler: none of {', '.join(wanted)} is on PATH",
                hint=f"Install one (Debian: apt-get install gcc g++), or name it in {variable}.",
            )


def _failed(status: int, log: Path) -> ConfigurationError:
    what = f"building llama-cpp-python {LLAMA_CPP_PYTHON} failed (pip: exit {status})"
    return ConfigurationError(what, where=str(log), hint=last_lines(log))


if __name__ == "__main__":
    sys.exit(main())
