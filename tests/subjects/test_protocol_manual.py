"""The manual's messages fit the schema, its adapters run, its list of classes is complete."""

import json
import re
import struct
from pathlib import Path

import pytest
from subject_helpers import HERE, header

from conformance.outcomes import REJECT_CLASSES, Ok, Protocol, Reject
from conformance.subjects.answers import read_answer, read_hello
from conformance.subjects.manifest import SubjectLimits, load_manifest
from conformance.subjects.process import Subject
from conformance.subjects.protocol import OPS
from conformance.subjects.schema import LineCheck
from conformance.values import VALUE_TYPES, Header, Pair, TensorInfo

MANUAL = (HERE.parents[1] / "docs" / "protocol.md").read_text(encoding="utf-8")
EXCHANGES = re.findall(r"^-> (.*)\n<- (.*)$", MANUAL, re.MULTILINE)
CHECK = LineCheck()


def _block(language, containing):
    (block,) = (text for text in re.findall(rf"```{language}\n(.*?)```", MANUAL, re.DOTALL) if containing in text)
    return block


@pytest.mark.parametrize(("request_", "answer"), EXCHANGES)
def test_an_exchange_is_sound(request_, answer):
    asked = json.loads(request_)
    assert CHECK.request(request_.encode()) is None
    assert CHECK.response(answer.encode(), asked["op"]) is None
    read = read_hello if asked["op"] == "hello" else lambda line, seq: read_answer(line, asked["op"], seq)
    assert not isinstance(read(answer.encode(), asked["seq"]), Protocol)


def test_every_op_and_every_kind_of_answer_has_an_example():
    assert {json.loads(request)["op"] for request, _ in EXCHANGES} == {"hello", *OPS}
    assert {next(iter(json.loads(answer).keys() - {"seq"})) for _, answer in EXCHANGES} == {"ok", "reject", "unsupported", "error"}


def test_the_tables_are_complete():
    classes = MANUAL.partition("### reject")[2].partition("### tensor")[0]
    rows = "".join(line.split("|")[1] for line in classes.splitlines() if line.startswith("| `"))
    assert set(re.findall("`([a-z-]+)`", rows)) == set(REJECT_CLASSES)
    values = MANUAL.partition("## Values")[2].partition("## Files")[0]
    rows = "".join(line.split("|")[1] for line in values.splitlines() if line.startswith("| `"))
    assert set(re.findall("`([a-z0-9]+)`", rows)) == set(VALUE_TYPES)


def test_the_manifests_defaults_are_told():
    units = {"memory": 1 << 30, "line": 1 << 20}
    rows = dict(re.findall(r"^\| `limits\.(\w+)` .*\| (.+) \|$", MANUAL, re.MULTILINE))
    assert rows.pop("case") == "ten times `limits.time`"  # tests/run/test_case_time.py
    numbers = {name: int(re.fullmatch(r"(\d+)(?:[MG]iB)?", value)[1]) * units.get(name, 1) for name, value in rows.items()}
    assert {**numbers, "case": None} == {name: getattr(SubjectLimits(), name) for name in SubjectLimits.__struct_fields__}


# The Python example answers the same to every file that begins as it should: it shows the forms of a pair, an array, a tensor.
ANSWERS = {
    "sh": Header(3, 32, 24, [], []),  # what llama.cpp answers: the pairs' end, not padded
    "python": Header(
        3,
        32,
        128,
        [Pair("answer", "u32", "42"), Pair("names", "array", ["a", "b"], "str")],
        [TensorInfo("w", 8, ["32", "2"], "0", "68")],
    ),
}


@pytest.fixture(params=["sh", "python"])
def example(request, tmp_path):
    """The manual's two adapters, with the manifest for each."""
    if request.param == "sh":
        (tmp_path / "adapter.sh").write_text(_block("sh", "#!/bin/sh"))
        (tmp_path / "adapter.yaml").write_text(_block("yaml", "one_shot"))
    else:
        (tmp_path / "adapter.py").write_text(_block("python", "Adapter("))
        (tmp_path / "adapter.yaml").write_text('name: p\nlanguage: python\ncommand: ["{python}", "{dir}/adapter.py"]\n')
    return load_manifest(tmp_path)


def test_an_example_adapter_reads_and_refuses(example, tmp_path):
    (tmp_path / "empty.gguf").write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 0))
    (tmp_path / "bad.gguf").write_bytes(b"GGUX" + bytes(20))
    with Subject(example, validate=True) as subject:
        assert subject.ask(header(str(tmp_path / "empty.gguf"))).outcome == Ok(ANSWERS[example.language])
        assert subject.ask(header(str(tmp_path / "bad.gguf"))).outcome == Reject("bad-magic", "no GGUF at the start", 0)


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        (b"GGUF", Reject("truncated", "less than 24 bytes", 4)),
        (struct.pack("<4sIQQ", b"GGUF", 4, 0, 0), Reject("bad-version", "version 4", 4)),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 2**63), Reject("other", "pairs or tensors", 8)),
    ],
)
def test_the_shell_adapter_refuses(content, outcome, tmp_path):
    (tmp_path / "adapter.sh").write_text(_block("sh", "#!/bin/sh"))
    (tmp_path / "adapter.yaml").write_text(_block("yaml", "one_shot"))
    (tmp_path / "case.gguf").write_bytes(content)
    with Subject(load_manifest(tmp_path)) as subject:
        assert subject.ask(header(str(tmp_path / "case.gguf"))).outcome == outcome


def test_the_links_lead_somewhere():
    sections = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall("^## (.*)$", MANUAL, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]*)\)", MANUAL)) <= sections
    for page in re.findall(r"docs/[a-z-]+\.md", MANUAL):
        assert (Path(HERE.parents[1]) / page).exists()
