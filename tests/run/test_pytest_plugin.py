"""The pytest plugin: the same cases, the same verdicts, the same numbers as the command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.run.conftest import Bench
from tests.test_cli import ROOT

SIGNATURE = "quantize:Q8_0:digest:blocks"


def _pytest(bench: Bench, *words: str) -> tuple[int, str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        str(bench.root),
        "--rootdir",
        str(bench.root),
        "-rA",
        *words,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_PLUGINS": "conformance.pytest_plugin"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # else an installed copy would be loaded a second time
    done = subprocess.run(command, capture_output=True, text=True, cwd=bench.root, env=environment, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def _golden(bench: Bench, subject: str, *more: str) -> tuple[int, str]:
    bench.record()
    return _pytest(bench, "--subject", subject, "--oracle", "golden", *more)


def test_nothing_is_collected_without_a_subject(bench: Bench) -> None:
    code, out = _pytest(bench)
    assert code == 5, out


def test_items_are_cases_and_verdicts_are_the_commands(bench: Bench) -> None:
    code, out = _golden(bench, "q8_0-stored-scale")
    ran = bench.run(bench.stored_scale, live=False)
    outcomes = {name: word for word, name in re.findall(r"^(PASSED|FAILED) \S*\.yaml::(\S+)", out, re.MULTILINE)}
    expected = {
        f"{case.rpartition('/')[2]}[{who}]": {"pass": "PASSED", "diverge": "FAILED"}[v] for (case, who), v in ran.verdicts.items()
    }
    assert outcomes == expected
    assert code == ran.code == 1
    counts = ran.finished.counts["q8_0-stored-scale"]
    assert f"{counts.blocks:,} blocks, {counts.bytes:,} bytes" in out
    assert f"signature  {SIGNATURE}" in out
    assert "Traceback" not in out


def test_with_xdist_the_numbers_are_the_same(bench: Bench) -> None:
    bench.record()
    totals = []
    for more in ((), ("-p", "xdist", "-n", "2")):
        code, out = _pytest(bench, "--subject", "impl", "--oracle", "golden", *more)
        assert code == 0, out
        totals += re.findall(r"^impl: .*$", out, re.MULTILINE)
    assert len(totals) == 2
    assert totals[0] == totals[1]


def _subject_with_known(bench: Bench, folder: Path, signature: str, manifest: str) -> str:
    source = (ROOT / "adapters" / manifest / "adapter.yaml").read_text()
    folder.mkdir()
    (folder / "adapter.yaml").write_text(source.replace("{dir}", str(ROOT / "adapters" / manifest)))
    entry = {"pattern": "small/blocks/q8_0", "signature": signature, "kind": "bug", "reason": "shown here"}
    (folder / "divergences.yaml").write_text(json.dumps({"divergences": [entry]}))
    return str(folder)


def test_a_known_divergence_is_an_expected_failure(bench: Bench, tmp_path: Path) -> None:
    code, out = _golden(bench, _subject_with_known(bench, tmp_path / "known", SIGNATURE, "q8_0-stored-scale"))
    assert code == 0, out
    assert "1 xfailed" in out


def test_a_stale_entry_fails_the_session(bench: Bench, tmp_path: Path) -> None:
    code, out = _golden(bench, _subject_with_known(bench, tmp_path / "stale", SIGNATURE, "impl"))
    assert code == 1, out
    assert "stale known divergence of impl" in out


def test_an_authority_that_drifts_fails_the_item(bench: Bench) -> None:
    bench.write("small/files", WRONG_CLAIM)
    code, out = _pytest(bench, "--subject", "impl", "--oracle", "live", "small/files.yaml")
    assert code == 1, out
    assert "wrong[llama.cpp]: authority-drift" in out


WRONG_CLAIM = """
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  wrong: {build: {kv: [{key: a, u32: 7}]}, expect: {llama.cpp: {reject: bad-key}}}
"""
