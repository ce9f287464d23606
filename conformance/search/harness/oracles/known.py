"""Whatever stands in a divergences file: a whole run with a verdict on each entry, or a refusal that names the file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.errors import GgufConformanceError
from conformance.search.harness import small
from conformance.search.harness.oracles.refusals import no_traceback, require_refusal
from conformance.search.harness.oracles.streams import require_reports, require_sound_run
from conformance.search.harness.stub import IDS, Edit, Setup, run_small, write_golden

FILE = "divergences.yaml"


def wrong(number: int, answered: small.Answered) -> small.Answered:
    """Answer wrongly to some requests: another version, a crash's like, another number, so that there is what may be known."""
    line = answered.line.replace(b'"version":3', b'"version":2').replace(b"bad-alignment", b"bad-value")
    output = bytes([number]) + answered.output[1:] if answered.output else None
    return small.Answered(line, output)


def check(document: bytes, folder: Path, edit: Edit = wrong) -> None:
    """Run the small cases on a subject with faults and this file beside its manifest."""
    path = folder / FILE
    path.write_bytes(document)
    try:
        with no_traceback("running with known divergences"):
            ran = run_small(write_golden(folder), folder, edit, Setup(divergences=path))
    except GgufConformanceError as problem:
        require_refusal(problem, 3, path)
        return
    require_sound_run(ran.stream, ran.code, IDS, ["small"])
    require_reports(folder / "events.ndjson", ran.code)


@cache
def signatures() -> tuple[tuple[str, str], ...]:
    """Give case and signature of each divergence that the faulty subject shows."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        ran = run_small(write_golden(folder), folder, wrong)
    return tuple((result.case, one.signature) for result in ran.summary.failed for one in result.divergences)
