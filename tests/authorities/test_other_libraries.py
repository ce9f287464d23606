"""The adapter of llama.cpp with a library from another place: both parts in one file, one part missing, another layout."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.errors import AuthorityMissingError
from conformance.subjects.authorities import identify
from conformance.subjects.authorities.llama_cpp import kinds, library


@pytest.fixture
def folder(llama_cpp):
    """Give the folder of the installed library."""
    return Path(llama_cpp.identity.details["library"]).parent


def hello(monkeypatch, path):
    monkeypatch.setenv(library.LIBRARY_VARIABLE, str(path))
    return identify.identify("llama.cpp")


def both_in_one(place, folder):
    """Make a file that holds both parts as far as the adapter can tell: libggml-cpu finds what libggml-base has."""
    for file in folder.iterdir():
        (place / file.name).symlink_to(file)
    one = place / "extension.abi3.so"
    one.symlink_to(folder / "libggml-cpu.so")
    return one


def test_one_file_with_both_parts(monkeypatch, tmp_path, folder, llama_cpp):
    found = hello(monkeypatch, both_in_one(tmp_path, folder))
    assert found.ops == llama_cpp.identity.ops
    assert found.details["library"] == str(tmp_path / "extension.abi3.so")


def test_it_goes_by_ggml_and_its_version(monkeypatch, folder, llama_cpp):
    assert hello(monkeypatch, folder).name == f"ggml-{llama_cpp.identity.details['ggml']}"
    assert llama_cpp.identity.name == "llama.cpp"


def test_without_the_cpu_part_there_are_no_products(monkeypatch, tmp_path, folder, llama_cpp):
    base = tmp_path / "libggml-base.so"
    base.symlink_to(folder / "libggml-base.so")
    found = hello(monkeypatch, base)
    assert (found.ops.dot, found.ops.matvec) == ((), ())
    assert found.ops.quantize == llama_cpp.identity.ops.quantize
    assert found.details["contraction_dot"] == "none"
    assert found.details["vector_units"] == ""


def test_the_installed_package_has_both_parts(monkeypatch, tmp_path, folder):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libggml-base.so").symlink_to(folder / "libggml-base.so")
    monkeypatch.delenv(library.LIBRARY_VARIABLE, raising=False)
    monkeypatch.setattr(library, "package_folder", lambda: tmp_path)
    library.libraries.cache_clear()
    with pytest.raises(AuthorityMissingError, match=r"no libggml-cpu\.so"):
        library.libraries()
    library.libraries.cache_clear()


def test_types_in_another_layout_are_not_read(monkeypatch):
    """A layout without ``blck_size_interleave`` has the size where that stands here, and no name where the next one is read."""
    moved = library.TypeTraits(type_name=b"f32", blck_size=1, blck_size_interleave=4, type_size=0)
    base = SimpleNamespace(ggml_get_type_traits=lambda _number: SimpleNamespace(contents=moved))
    monkeypatch.setattr(kinds, "libraries", lambda: SimpleNamespace(base=base, path=Path("/old/libggml-base.so")))
    kinds.kinds.cache_clear()
    with pytest.raises(AuthorityMissingError, match="in another layout") as error:
        kinds.kinds()
    assert error.value.where == "/old/libggml-base.so"
