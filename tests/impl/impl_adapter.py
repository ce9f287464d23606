"""Runs an adapter as a process and exchanges lines of JSON with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
IMPL = [sys.executable, "-m", "impl"]


def exchange(requests: list[dict[str, object] | str], command: list[str] = IMPL) -> list[dict[str, object]]:
    """Send all requests (a text goes as it is), give the answers."""
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    done = subprocess.run(
        command, input="".join(f"{line}\n" for line in lines).encode(), capture_output=True, env=ENVIRONMENT, timeout=30, check=True
    )
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


def once(*arguments: str, command: list[str] = IMPL) -> tuple[int, str, str]:
    """Run with arguments; give exit code, stdout and stderr."""
    done = subprocess.run([*command, *arguments], capture_output=True, env=ENVIRONMENT, timeout=30, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()
