"""Manifests: what they may say, and what an author is told who says something else."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

import conformance
from conformance.errors import ConfigurationError, UsageError
from conformance.subjects import manifest as module
from conformance.subjects.manifest import Manifest, SubjectLimits, find_manifest, load_manifest, parse_size, require_command

FULL = """
name: full
language: python
command: ["{python}", "-u", "{dir}/run.py", "${HOME}"]
build: [[cargo, build, "--a b"], "make -C {dir}"]
limits: {time: 1.5, case: 20, memory: 512MiB, line: 4096, hello: 3}
profile: gguf-py
env: {WHERE: "{dir}"}
divergences: known.yaml
one_shot: true
"""
# Sixteen to the eighth: whoever walks it comes to no end.
ALIASES = "build:\n" + "".join(f"- &a{level} [{', '.join([f'*a{level - 1}'] * 16) if level else 'x'}]\n" for level in range(9))
LEAST = "name: least\nlanguage: python\ncommand: ['{python}']\n"


@pytest.fixture
def write(tmp_path):
    def _write(text, name="adapter.yaml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return _write


def test_a_full_manifest(write, tmp_path):
    (tmp_path / "run.py").touch()
    (tmp_path / "known.yaml").touch()
    assert load_manifest(write(FULL)) == Manifest(
        name="full",
        language="python",
        command=(sys.executable, "-u", f"{tmp_path}/run.py", "${HOME}"),
        build=("cargo build '--a b'", f"make -C {tmp_path}"),
        limits=SubjectLimits(time=1.5, case=20, memory=512 * 1024 * 1024, line=4096, hello=3),
        profile="gguf-py",
        env={"WHERE": str(tmp_path)},
        divergences=tmp_path / "known.yaml",
        one_shot=True,
        folder=tmp_path,
        source=tmp_path / "adapter.yaml",
        built=load_manifest(write(LEAST, "other.yaml")).built.with_name(f"full-{_digits(tmp_path)}"),
    )


def _digits(folder):
    return hashlib.sha256(str(folder).encode()).hexdigest()[:8]


def test_where_an_adapter_is_built(write, tmp_path, monkeypatch):
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    text = "name: a/b é\nlanguage: c\ncommand: ['{python}', '{build}/x']\nbuild: ['make -C {build}']\nneeds: [make, cc]\n"
    manifest = load_manifest(write(text), check_command=False)
    assert manifest.built == tmp_path / "cache" / "adapters" / f"a_b__-{_digits(tmp_path)}"
    assert manifest.command[1] == f"{manifest.built}/x"
    assert manifest.build == (f"make -C {manifest.built}",)
    assert manifest.needs == ("make", "cc")
    assert manifest.build_hint == f"gguf-conformance build {tmp_path}"
    with pytest.raises(ConfigurationError, match="x does not exist") as raised:
        require_command(manifest)
    assert raised.value.hint == f"Build it first: {manifest.build_hint}"


def test_the_package_may_be_named(write):
    manifest = load_manifest(write(f"{LEAST}env: {{WHERE: '{{conformance}}'}}\n"))
    assert manifest.env["WHERE"] == str(Path(conformance.__file__).parent)


def test_the_least_manifest_and_its_defaults(write, tmp_path):
    manifest = load_manifest(write(LEAST).parent)
    assert (manifest.profile, manifest.build, manifest.divergences, manifest.one_shot) == ("llama.cpp", (), None, False)
    assert manifest.limits == SubjectLimits(time=60.0, memory=2 * 1024**3, line=64 * 1024**2, hello=30.0)
    (tmp_path / "divergences.yaml").touch()
    assert load_manifest(tmp_path).divergences == tmp_path / "divergences.yaml"


def test_a_relative_program_is_the_folders(write, tmp_path):
    (tmp_path / "run").touch(mode=0o755)
    assert load_manifest(write("name: a\nlanguage: c\ncommand: [./run]\n")).command == (f"{tmp_path}/run",)


def test_subjects_on_the_harness_interpreter_find_its_packages(write, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("SHARED", "harness")
    manifest = load_manifest(write(f"{LEAST}env: {{SHARED: manifest}}\n"))
    first, second = manifest.environment["PYTHONPATH"].split(":")
    assert (first, second) == (str(module.AUTHORITIES_FOLDER.parents[2]), "/elsewhere")
    assert manifest.environment["SHARED"] == "manifest"


@pytest.mark.parametrize(
    ("text", "size"),
    [(4096, 4096), ("4096", 4096), ("1KiB", 1024), ("512 MiB", 536870912), ("2GiB", 2147483648), ("7B", 7)],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["2GB", "-1", "1.5GiB", "", "GiB"])
def test_no_sizes(text):
    with pytest.raises(ValueError, match="such as 512MiB"):
        parse_size(text)


# Each: what is appended to the least manifest, the line, the message, a part of the hint.
WRONG = [
    ("comand: [x]", 4, "unknown key `comand`", "Did you mean `command`?"),
    ("limits: {tmie: 3}", 4, "unknown key `limits.tmie`", "Did you mean `time`?"),
    ("limits:\n  memory: 2GB", 5, "`limits.memory`: '2GB' is no size in bytes", ""),
    ("limits: {case: 0}", 4, "`limits.case` is 0", "A limit is a number above 0"),
    ("limits: {time: 0}", 4, "`limits.time` is 0", "A limit is a number above 0"),
    ("limits: {time: fast}", 4, "`limits.time`: expected `float | null`, got `str`", ""),
    ("limits: 3", 4, "`limits`: expected `object`, got `int`", ""),
    ("profile: llamacpp", 4, "`profile`: invalid enum value 'llamacpp'", ""),
    ("env: {A: 1}", 4, "`env[...]`: expected `str`, got `int`", ""),
    ("one_shot: maybe", 4, "`one_shot`: expected `bool`, got `str`", ""),
    ("build: [[cargo], '{crate}']", 4, "`build`: unknown placeholder `{crate}`", "Known: {python}, {dir}, {build}, {conformance}."),
    ("divergences: gone.yaml", 4, "`divergences`: no file ", "leave the key out"),
    ('env: {A: "x\\0y"}', 4, "`env.A`: 'x\\x00y' holds '\\x00'", "without NUL"),
    ('env: {"A\\0": x}', 4, "`env.A\\x00`: 'A\\x00' holds '\\x00'", "without NUL"),
    ('env: {"A=B": x}', 4, "`env`: 'A=B' is no variable's name", "has no `=`"),
    ('env: {"": x}', 4, "`env`: '' is no variable's name", "not empty"),
    ('env: {A: "\\ud800"}', 4, "`env.A`: '\\ud800' holds '\\ud800'", "UTF-8"),
    ('build: "\\ud800\\udc00"', 4, "`build`: '\\ud800\\udc00' holds '\\ud800'", "UTF-8"),
    ('build: [["a\\0"]]', 4, "`build[0][0]`: 'a\\x00' holds '\\x00'", "without NUL"),
    (f"divergences: {'a' * 5000}", 4, "`divergences`: no file ", "leave the key out"),
    ("limits: {time: .inf}", 4, "`limits.time` is inf", "A limit is a number above 0"),
    ("limits: {memory: 99999999999999999999GiB}", 4, "`limits.memory` is 99999999999999999999GiB", "below 1e+18"),
    (f"limits: {{time: 1{'0' * 400}}}", 4, "`limits.time`: number out of range, got 1000", ""),
    ("name: again", 4, "`name` stands twice, first in line 1", ""),
]


@pytest.mark.parametrize(("text", "line", "message", "hint"), WRONG)
def test_a_wrong_manifest_is_told_where_and_how(write, text, line, message, hint):
    source = write(f"{LEAST}{text}\n")
    with pytest.raises(ConfigurationError) as raised:
        load_manifest(source)
    assert raised.value.exit_code == 3
    assert raised.value.where == f"{source}:{line}"
    assert raised.value.message.startswith(message)
    assert hint in raised.value.hint


@pytest.mark.parametrize("name", ["adapter.yaml", ""])
def test_a_pipe_is_no_manifest(tmp_path, name):
    """It would be waited for without end."""
    os.mkfifo(tmp_path / "adapter.yaml")
    with pytest.raises(ConfigurationError, match="it is a named pipe, not a regular file") as raised:
        load_manifest(tmp_path / name)
    assert raised.value.where == str(tmp_path / "adapter.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", "not YAML: "),
        ("", "a manifest is a mapping of keys, not empty"),
        ("- a", "a manifest is a mapping of keys, not a list"),
        ("name: " + "[" * 3000, "not YAML: nested too deep"),
        ("one_shot: &a [*a]", "not YAML: an anchor contains itself"),
        ("limits: &a {time: *a}", "not YAML: an anchor contains itself"),
        (ALIASES, "not YAML: more than 10,000 values"),
        ("name: 2020-99-99", "not YAML: month must be in 1..12"),
        ("name: !!timestamp x", "not YAML: a value is not what its tag says"),
        ("one_shot: !!bool x", "not YAML: a value is not what its tag says"),
        ('name: !!int ""', "not YAML: a value is not what its tag says"),
        ("name: !!float abc", "not YAML: could not convert string to float"),
        ("name: \x01", "not YAML: unacceptable character #x0001"),
        (f"memory: 1{'0' * 5000}", "not YAML: Exceeds the limit"),
        ("name: a\nlanguage: c\n", "the key `command` is missing"),
        ('name: a\nlanguage: c\ncommand: ["sh", "a\\0b"]\n', "`command[1]`: 'a\\x00b' holds '\\x00'"),
        ("name: a\nlanguage: c\ncommand: [./" + "a" * 5000 + "]\n", "subject a: "),
        ('name: "a\\nb"\nlanguage: c\ncommand: [sh]\n', "`name`: 'a\\nb' is no name"),
        ('name: ""\nlanguage: c\ncommand: [sh]\n', "`name`: '' is no name"),
        (f"name: {'a' * 65}\nlanguage: c\ncommand: [sh]\n", "`name`: 'aaa"),
        ("name: a\nlanguage: c\ncommand: []\n", "`command` is empty"),
        ("name: a\nlanguage: c\ncommand: run me\n", "`command`: expected `array`, got `str`"),
    ],
)
def test_no_manifest_at_all(write, text, message):
    with pytest.raises(ConfigurationError) as raised:
        load_manifest(write(text))
    assert raised.value.message.startswith(message)
    assert raised.value.hint


def test_yaml_that_is_not_utf_8(tmp_path):
    (tmp_path / "adapter.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(ConfigurationError, match="byte 6 is not UTF-8"):
        load_manifest(tmp_path)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("[no-such-program-here]", "the command `no-such-program-here` is not on PATH"),
        ("['{dir}/target/adapter']", "/target/adapter does not exist"),
        ("['{dir}/adapter.yaml']", "/adapter.yaml is not an executable file"),
        ("['{python}', '{dir}/dist/main.py']", "/dist/main.py does not exist"),
    ],
)
def test_a_missing_command_names_the_build(write, command, message):
    source = write(f"name: a\nlanguage: rust\ncommand: {command}\nbuild: [cargo build --release]\n")
    with pytest.raises(ConfigurationError) as raised:
        load_manifest(source)
    assert raised.value.message.endswith(message)
    assert raised.value.hint == f"Build it first: gguf-conformance build {source.parent}"
    assert load_manifest(source, check_command=False).name == "a"


# By name or path


@pytest.fixture
def adapters(tmp_path, monkeypatch):
    for name in ("candle", "gguf-js"):
        (tmp_path / "adapters" / name).mkdir(parents=True)
        (tmp_path / "adapters" / name / "adapter.yaml").write_text(LEAST.replace("least", name))
    (tmp_path / "authorities").mkdir()
    (tmp_path / "authorities" / "llama.cpp.yaml").write_text(LEAST.replace("least", "llama.cpp"))
    monkeypatch.setattr(module, "adapters_root", lambda: tmp_path / "adapters")
    monkeypatch.setattr(module, "AUTHORITIES_FOLDER", tmp_path / "authorities")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "adapters"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("candle", "candle"),
        ("llama.cpp", "llama.cpp"),
        ("adapters/gguf-js", "gguf-js"),
        ("adapters/gguf-js/adapter.yaml", "gguf-js"),
        ("adapters/gguf-js/adapter", "gguf-js"),
    ],
)
def test_finding(adapters, given, name):
    assert find_manifest(given).name == name


def test_an_unknown_name_lists_the_known(adapters):
    with pytest.raises(UsageError) as raised:
        find_manifest("kandle")
    assert "no subject 'kandle'" in raised.value.message
    assert raised.value.hint.startswith("Did you mean candle? Known subjects: candle, gguf-js, llama.cpp.")


def test_a_folder_without_a_manifest(adapters, tmp_path):
    (tmp_path / "adapters" / "empty").mkdir()
    with pytest.raises(ConfigurationError, match="cannot read the manifest: No such file"):
        find_manifest("adapters/empty")
