"""The page on dependencies names each package that the project installs, and no other."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[1]


def names(requirements: list[str]) -> set[str]:
    return {match[0] for requirement in requirements if (match := re.match(r"[A-Za-z0-9._-]+", requirement.strip()))}


def documented() -> dict[str, set[str]]:
    """Give the packages in the first column of each section's table."""
    sections: dict[str, set[str]] = {}
    for section in re.split(r"^## ", (ROOT / "docs/dependencies.md").read_text(), flags=re.MULTILINE)[1:]:
        cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
        sections[section.splitlines()[0]] = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    return sections


def test_every_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tox = ConfigParser()
    tox.read(ROOT / "tox.ini")
    extras = project["project"]["optional-dependencies"]
    assert documented() == {
        "To run it": names(project["project"]["dependencies"]),
        "To compare live (extra `live`)": names(extras["live"]),
        "To search (extra `search`)": names(extras["search"]),
        "To test (extra `test`)": names(extras["test"]),
        "To fuzz the reader (extra `fuzz`)": names(extras["fuzz"]),
        "To check style and types (`tox -e lint`)": names(tox["testenv:lint"]["deps"].splitlines()),
        "To build and to drive": names(project["build-system"]["requires"]) | {"tox"},
    }
    assert set(extras) == {"fuzz", "live", "search", "test"}
