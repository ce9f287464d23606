"""What is told of an answer that is none: the line that came instead of JSON, and the line that says why a process died."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli import main
from tests.run.conftest import Bench

HELLO = '{"seq":1,"ok":{"name":"made","version":"1","language":"sh","protocol":1,"ops":{"header":{}}}}'
GO = r"panic: oops\n\ngoroutine 1 [running]:\nmain.header()\n\t/src/main.go:114 +0x25"
RUST = r"reading\nthread 'main' panicked at src/main.rs:7:5:\noops\nnote: run with RUST_BACKTRACE=1"


@pytest.mark.parametrize(
    ("does", "outcome", "told"),
    [
        ("echo version 3", "protocol", "not JSON: JSON is malformed: invalid character (byte 0); it said: version 3"),
        ("echo", "protocol", "not JSON: an empty line"),
        (f'printf "{GO}" >&2; exit 2', "crash exit 2", "panic: oops"),
        (f'printf "{RUST}" >&2; exit 101', "crash exit 101", "oops"),
        (r'printf "Traceback\nIndexError: 7\n" >&2; exit 1', "crash exit 1", "IndexError: 7"),
        ("exit 3", "crash exit 3", ""),
    ],
)
def test_last_words(bench: Bench, tmp_path: Path, does: str, outcome: str, told: str) -> None:
    (tmp_path / "adapter.yaml").write_text('name: made\nlanguage: sh\ncommand: [sh, "{dir}/a.sh"]\n')
    (tmp_path / "a.sh").write_text(f"read -r hello\necho '{HELLO}'\nread -r request\n{does}\nread -r more\n")
    bench.record()
    words = ["run", "--subject", str(tmp_path), "--cases", str(bench.root), "--select", "small/files/plain", "--oracle", "golden"]
    done = CliRunner().invoke(main, [*words, "--report", str(tmp_path / "out")])
    assert done.exit_code == 1, done.output
    events = map(json.loads, (tmp_path / "out" / "events.ndjson").read_text().splitlines())
    (answer,) = [one for event in events for one in event.get("answers", ()) if one["who"] == "made"]
    assert (answer["outcome"], answer.get("message", "")) == (outcome, told)
