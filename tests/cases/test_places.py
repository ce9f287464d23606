from __future__ import annotations

from pathlib import Path

import pytest

from conformance import places
from conformance.errors import ConfigurationError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the installed package."""
    folder = tmp_path / "conformance"
    folder.mkdir()
    monkeypatch.setattr(places, "_PACKAGE", folder)
    return folder


@pytest.mark.parametrize(("root", "name"), [(places.cases_root, "cases"), (places.adapters_root, "adapters")])
def test_a_checkout_comes_first_then_the_wheel(package: Path, root: object, name: str) -> None:
    assert callable(root)
    with pytest.raises(ConfigurationError, match=f"no folder of {name}"):
        root()
    shipped, checkout = package / "_data" / name, package.parent / name
    shipped.mkdir(parents=True)
    checkout.mkdir()
    assert root() == shipped  # a folder of that name beside an installed package is not ours
    (package.parent / "pyproject.toml").touch()
    assert root() == checkout


def test_the_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GGUF_CONFORMANCE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.cache_root() == tmp_path / ".cache" / "gguf-conformance"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert places.cache_root() == Path("/x/gguf-conformance")
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", "/y")
    assert places.cache_root() == Path("/y")
