"""A subject's output file, which it may still change after it has answered."""

import os
from pathlib import Path

import numpy as np
import pytest

from conformance.outcomes import Protocol
from conformance.run.outputs import take_output


def _problem(path: Path, nbytes: int) -> str:
    taken = take_output(path, nbytes)
    assert isinstance(taken, Protocol)
    return taken.problem


def test_an_output_is_there_and_has_its_size(tmp_path: Path) -> None:
    path = tmp_path / "y.f32"
    assert _problem(path, 8) == f"ok, but the file to write does not exist: {path}"
    path.write_bytes(bytes(7))
    assert _problem(path, 8) == f"ok, but the file written has 7 bytes, expected 8: {path}"
    path.write_bytes(bytes(range(8)))
    taken = take_output(path, 8)
    assert isinstance(taken, np.ndarray)
    assert taken.tolist() == list(range(8))
    path.write_bytes(b"")
    assert len(take_output(path, 0)) == 0


def test_what_was_taken_no_longer_depends_on_the_file(tmp_path: Path) -> None:
    """A mapping would end this process by SIGBUS here."""
    path = tmp_path / "y.f32"
    path.write_bytes(b"\7" * 100_000)
    taken = take_output(path, 100_000)
    os.truncate(path, 0)
    assert isinstance(taken, np.ndarray)
    assert taken.sum() == 700_000


def test_a_file_that_is_cut_while_it_is_read_is_a_breach_of_the_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "y.f32"
    path.write_bytes(bytes(100_000))
    fstat = os.fstat

    def cut_after_the_look(file: int) -> os.stat_result:
        status = fstat(file)
        os.truncate(path, 5_000)
        return status

    monkeypatch.setattr(os, "fstat", cut_after_the_look)
    assert _problem(path, 100_000) == f"ok, but the file written was cut to 5000 bytes after the answer, expected 100000: {path}"


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, nbytes in ((pipe, 0), (tmp_path, tmp_path.stat().st_size)):
        assert "no regular file" in _problem(path, nbytes)
    socket = tmp_path / "loop"
    socket.symlink_to(socket)
    assert "cannot be read" in _problem(socket, 8)
