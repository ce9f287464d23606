"""Subjects made on the spot."""

import shlex
import sys
import uuid

import pytest
from subject_helpers import HERE, MARK

from conformance.subjects.manifest import load_manifest


@pytest.fixture(autouse=True)
def _steady_reference(monkeypatch):
    """Fakes pass their requests to something that starts in milliseconds."""
    monkeypatch.setenv("FAKE_REFERENCE", shlex.join([sys.executable, str(HERE / "steady.py")]))


@pytest.fixture
def mark(monkeypatch):
    """A variable that every process started in this test inherits."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    return value


@pytest.fixture
def make(tmp_path):
    """Give a function that makes a manifest for a Python (or other) script."""

    def _make(script, *, suffix="py", command='["{python}", "{dir}/subject.py"]', keys="", **options):
        (tmp_path / f"subject.{suffix}").write_text(script)
        (tmp_path / "adapter.yaml").write_text(f"name: made\nlanguage: any\ncommand: {command}\n{keys}\n")
        return load_manifest(tmp_path, **options)

    return _make
