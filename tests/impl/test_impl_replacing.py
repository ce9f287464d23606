"""A write that fails leaves the old file whole, and nothing beside it."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import impl

OLD = b"what stood here before"
HERE = Path(__file__).parent


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.gguf"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def is_whole(old: Path) -> bool:
    return old.read_bytes() == OLD and names(old.parent) == [old.name]


def child(program: str, path: Path) -> str:
    ran = subprocess.run(
        [sys.executable, str(HERE / program), str(path)], capture_output=True, text=True, check=True, cwd=HERE.parents[1],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
    )  # fmt: skip
    return ran.stdout.strip()


def failing(error: BaseException) -> Iterator[bytes]:
    yield bytes(10)
    raise error


@pytest.mark.parametrize("error", [RuntimeError("the source broke"), KeyboardInterrupt(), OSError(errno.EIO, "disk")])
def test_an_exception_out_of_the_data(old: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        impl.write(old, {}, [impl.NewTensor("t", failing(error), type="I8", shape=(100,))])
    assert is_whole(old)


@pytest.mark.parametrize("size", [99, 101])
def test_too_little_or_too_much_data(old: Path, size: int) -> None:
    with pytest.raises(impl.InputError, match=f"tensor 't' takes 100 bytes, but {size} were given"):
        impl.write(old, {}, [impl.NewTensor("t", bytes(size), type="I8", shape=(100,))])
    assert is_whole(old)


def test_bytes_of_one_tensor_do_not_go_to_the_next(old: Path) -> None:
    tensors = [impl.NewTensor("a", [b"1234", b"5678"], type="I8", shape=(4,)), impl.NewTensor("b", b"", type="I8", shape=(4,))]
    with pytest.raises(impl.InputError, match="tensor 'a' takes 4 bytes, but 8 were given"):
        impl.write(old, {}, tensors)
    assert is_whole(old)


def test_a_writer_that_ends_early(old: Path) -> None:
    tensors = [impl.NewTensor("a", None, type="I8", shape=(4,)), impl.NewTensor("b", None, type="I8", shape=(4,))]
    with (
        pytest.raises(impl.InputError, match="tensor 'b' takes 4 bytes, but 0 were given"),
        impl.Writer(old, {}, tensors) as writer,
    ):
        writer.write(b"1234")
    assert is_whole(old)


def test_a_writer_that_is_given_too_much(old: Path) -> None:
    with pytest.raises(impl.InputError, match="data beyond the last of 0 tensors"), impl.Writer(old, {}, []) as writer:
        writer.write(b"1")
    assert is_whole(old)


def test_a_writer_that_was_not_entered(old: Path) -> None:
    writer = impl.Writer(old, {}, [impl.NewTensor("a", None, type="I8", shape=(4,))])
    with pytest.raises(impl.InputError, match="use the writer as a context manager"):
        writer.write(b"1")
    assert is_whole(old)


def test_a_full_disk(old: Path) -> None:
    """A limit on the size of files stands for it: the system refuses to write on, in the middle of the data."""
    assert child("impl_limited_write.py", old) == f"errno {errno.EFBIG}"
    assert is_whole(old)


@pytest.mark.parametrize("call", ["fsync", "fchmod"])
def test_a_fault_after_the_data(old: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="no space"):
        impl.write(old, {})
    assert is_whole(old)


def test_a_file_system_that_does_not_sync_folders(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def only_files(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not for folders")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", only_files)
    impl.write(old, {})
    assert old.read_bytes()[:4] == b"GGUF"


def test_the_permissions_stay(old: Path) -> None:
    impl.write(old, {})
    assert old.read_bytes()[:4] == b"GGUF"
    assert old.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_those_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        impl.write(tmp_path / "new.gguf", {})
    finally:
        os.umask(before)
    assert (tmp_path / "new.gguf").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_one(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(old.name)
    impl.write(link, {})
    assert link.is_symlink()
    assert old.read_bytes()[:4] == b"GGUF"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path(os.devnull)):
        with pytest.raises(impl.InputError, match="is no regular file, and cannot be replaced by one"):
            impl.write(path, {})
    assert names(tmp_path) == ["pipe"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        impl.write(tmp_path / "none" / "a.gguf", {})


def test_a_name_as_long_as_it_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 120 + ".gguf")
    impl.write(path, {})
    assert names(tmp_path) == [path.name]


def test_large_data_is_not_held(tmp_path: Path) -> None:
    assert int(child("impl_large_write.py", tmp_path / "large.gguf")) < 16
