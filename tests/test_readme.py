"""README.md says what is true: its output is what the command prints, its adapter is one, its links and commands exist."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest

from conformance.cases.select import select
from conformance.cli import main
from tests.corpus import corpus
from tests.test_cli import ROOT, command

TEXT = (ROOT / "README.md").read_text("utf-8")


def _indented_blocks() -> list[str]:
    return [
        textwrap.dedent(block).strip("\n") for block in re.findall(r"(?:^(?: {4,}.*)?\n)+", TEXT, re.MULTILINE) if block.strip()
    ]


def _block_with(word: str) -> str:
    (found,) = [block for block in _indented_blocks() if word in block]
    return found


def test_the_output_shown_is_what_the_command_prints() -> None:
    shown = _block_with("$ gguf-conformance run")
    first, _, wanted = shown.partition("\n\n")
    words = first.removeprefix("$ gguf-conformance ").split()
    ended = command(*words, "--oracle", "golden", "--no-report")
    assert ended.code == 1
    assert wanted in ended.out


def test_the_adapter_shown_is_one(tmp_path: Path) -> None:
    (tmp_path / "adapter.py").write_text(_block_with("from conformance.adapter import"))
    (tmp_path / "adapter.yaml").write_text(_block_with("name: my-reader"))
    (tmp_path / "x.gguf").write_bytes(b"GGUX")
    once = subprocess.run(
        [sys.executable, str(tmp_path / "adapter.py"), "header", str(tmp_path / "x.gguf")],
        capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert (once.returncode, '"bad-magic"' in once.stdout) == (1, True)
    ended = command("run", "-S", str(tmp_path), "--oracle", "golden", "--no-report", "-s", "container/magic")
    assert ended.code in {0, 1}
    assert "my-reader: " in ended.out


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"gguf-conformance ([a-z-]+)", TEXT))))
def test_commands_named_exist(name: str) -> None:
    assert isinstance(main, click.Group)
    assert name in main.commands


@pytest.mark.parametrize("page", ["README.md", "docs/judging.md", "docs/protocol.md", "conformance/cli.py"])
def test_cases_named_exist(page: str) -> None:
    named = set(re.findall(r"(?<![\w/])(?:container|blocks|models)/[\w./*-]*[\w*]", (ROOT / page).read_text("utf-8")))
    assert all(select(corpus(), [name]) for name in named)
    assert named or page == "docs/protocol.md"
