"""Says what a run would find: Python, numpy, the authorities and the builds they are, the caches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from conformance.errors import AuthorityMissingError
from conformance.places import cache_root
from conformance.subjects.authorities import GGUF_PY, LLAMA_CPP_PYTHON
from conformance.subjects.authorities.build import WHEELS_VARIABLE, wheels_root
from conformance.subjects.authorities.identify import identify, native_units
from conformance.subjects.authorities.llama_cpp.library import LIBRARY_VARIABLE
from conformance.subjects.protocol import Identity

BUILD = "Run: gguf-conformance build-authority"
INSTALL_GGUF = f"Run: python -m pip install --force-reinstall gguf=={GGUF_PY}"
LOWEST_PYTHON = (3, 11)


class Check(msgspec.Struct, frozen=True):
    """One thing looked at: what was found, what is wanted, and what to do if they differ.

    ``warn``: runs work, with something left out or results that depend on the machine. ``fail``: runs give wrong or no results.
    """

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    wanted: str
    hint: str = ""


def diagnose() -> list[Check]:
    """Look at everything. The authorities are asked in processes of their own; it takes a second or two."""
    return [
        _python(),
        _numpy(),
        *_authority("llama.cpp", _llama_cpp, "llama_cpp" if LIBRARY_VARIABLE not in os.environ else "", BUILD),
        *_authority("gguf-py", _gguf_py, "gguf", INSTALL_GGUF),
        _writable("cache", cache_root(), "GGUF_CONFORMANCE_CACHE"),
        _writable("cache of wheels", wheels_root(), WHEELS_VARIABLE),
    ]


def _python() -> Check:
    state: Literal["ok", "fail"] = "ok" if sys.version_info[:2] >= LOWEST_PYTHON else "fail"
    wanted = ".".join(map(str, LOWEST_PYTHON)) + " or later"
    return Check(
        "python", state, f"{sys.version.split()[0]} ({sys.executable})", wanted, "" if state == "ok" else "Install a newer Python."
    )


def _numpy() -> Check:
    try:
        return Check("numpy", "ok", metadata.version("numpy"), "installed")
    except metadata.PackageNotFoundError:
        return Check("numpy", "fail", "not installed", "installed", "Run: python -m pip install numpy")


def _authority(name: str, look: Callable[[Identity], list[Check]], package: str, hint: str) -> list[Check]:
    """Ask an authority who it is, and look at the answer.

    One whose ``package`` is not installed is a warning: recorded answers serve. Without a package it is somewhere else.
    """
    if package and find_spec(package) is None:
        return [Check(name, "warn", "not installed", "installed", hint)]
    try:
        return look(identify(name))
    except AuthorityMissingError as error:
        return [Check(name, "fail", error.message, "an answer to hello", hint)]


def _llama_cpp(found: Identity) -> list[Check]:
    units = native_units(found)
    return [
        _library(found),
        _contraction(found, "quantizers", "contraction_base"),
        _contraction(found, "dot products", "contraction_dot"),
        Check(
            "llama.cpp: vector units",
            "warn" if units else "ok",
            found.details["vector_units"] or "none",
            "no more than a portable build uses",
            f"Compiled for the machine that built it ({', '.join(units)}). {BUILD}" if units else "",
        ),
    ]


def _library(found: Identity) -> Check:
    what = f"{found.version} (ggml {found.details['ggml']}, commit {found.details['ggml_commit']})"
    if LIBRARY_VARIABLE in os.environ:
        hint = f"{LIBRARY_VARIABLE} puts another library in its place; unset it to ask the installed package."
        return Check("llama.cpp", "warn", f"{what} in {found.details['library']}", LLAMA_CPP_PYTHON, hint)
    right = found.version == LLAMA_CPP_PYTHON
    return Check("llama.cpp", "ok" if right else "fail", what, LLAMA_CPP_PYTHON, "" if right else BUILD)


def _contraction(found: Identity, what: str, detail: str) -> Check:
    value = found.details[detail]
    hint = "" if value == "off" else f"It rounds once where the source rounds twice. {BUILD}"
    return Check(f"llama.cpp: fused multiply-add in {what}", "ok" if value == "off" else "fail", value, "off", hint)


def _gguf_py(found: Identity) -> list[Check]:
    right, published = found.version == GGUF_PY, found.details["origin"] == "pypi"
    return [
        Check("gguf-py", "ok" if right else "fail", found.version, GGUF_PY, "" if right else INSTALL_GGUF),
        Check(
            "gguf-py: origin",
            "ok" if published else "fail",
            f"{found.details['origin']} ({found.details['package']})",
            "pypi",
            "" if published else f"The one in llama.cpp's sources has the same version and other rules. {INSTALL_GGUF}",
        ),
    ]


def _writable(name: str, folder: Path, variable: str) -> Check:
    """Look whether the folder, or the nearest one above it that exists, can be written."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    fine = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    hint = "" if fine else f"{nearest} cannot be written. Name another folder in {variable}."
    return Check(name, "ok" if fine else "fail", str(folder), "a folder that can be written", hint)
