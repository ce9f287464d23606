"""What the wheel holds beside code."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_wheel_says_that_its_types_may_be_relied_on_and_brings_its_data(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling builds the wheel: pip install hatchling")
    script = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    built = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(tmp_path / built.stdout.split()[-1]) as wheel:
        names = set(wheel.namelist())
        assert b"Typing :: Typed" in next(wheel.read(name) for name in names if name.endswith("METADATA"))
    templates = [path.relative_to(ROOT).as_posix() for path in (ROOT / "conformance/templates").rglob("*") if path.is_file()]
    assert {"conformance/templates/rust/Cargo.lock", "conformance/templates/go/go.mod"} < set(templates)
    assert {name for name in templates if "__pycache__" not in name} <= names
    assert {"conformance/py.typed", "impl/py.typed", "conformance/_data/adapters/impl/adapter.yaml"} <= names
