"""Whatever stands in a file of recorded answers: a whole run that is judged by them, or a refusal that names file or case."""

from __future__ import annotations

from pathlib import Path

from conformance.errors import GgufConformanceError
from conformance.search.harness import small
from conformance.search.harness.broken import require
from conformance.search.harness.oracles.refusals import no_traceback, require_refusal
from conformance.search.harness.oracles.streams import require_reports, require_sound_run
from conformance.search.harness.stub import IDS, golden_file, run_small, sound


def check(document: bytes, folder: Path) -> None:
    """Run the small cases, well answered, by these recorded answers."""
    path = small.golden_path(folder / "golden")
    path.write_bytes(document)
    try:
        with no_traceback("running by recorded answers"):
            ran = run_small(folder / "golden", folder, sound)
    except GgufConformanceError as problem:
        require_refusal(problem, 3, path, Path(f"{small.SUITE}.yaml"))
        return
    require_sound_run(ran.stream, ran.code, IDS, ["small"])
    require_reports(folder / "events.ndjson", ran.code)
    if document == golden_file():
        require(ran.code == 0, f"right answers, as recorded: exit code {ran.code}")
