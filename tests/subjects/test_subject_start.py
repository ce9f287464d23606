"""A subject that cannot be started or gives no proper hello: one error that says what to do."""

import pytest
from subject_helpers import asked

from conformance.errors import ConfigurationError


def test_hello_error_names_subject_command_answer_and_stderr(make):
    script = "import sys\nsys.exit('libggml.so.0: cannot open shared object file')"
    with pytest.raises(ConfigurationError) as raised:
        asked(make(script, keys="build: [[cargo, build, --release]]"))
    told = str(raised.value)
    assert "adapter.yaml" in told
    assert "subject made: no hello: the process ended (exit 1) before it answered" in told
    assert "subject.py" in told
    assert "libggml.so.0: cannot open shared object file" in told
    assert "gguf-conformance build " in told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"seq":1,"ok":{"name":"x"}}', "ok: Object missing required field `version`"),
        ('{"seq":1,"error":"no licence"}', "hello was not answered with ok; it said: {"),
        ('{"seq":2,"ok":{}}', "wrong seq: expected 1, got 2"),
        ("", "not JSON: an empty line"),
        ("[]", "Expected `object`, got `array`"),
    ],
)
def test_malformed_hellos(make, answer, told):
    script = f"import sys\nsys.stdin.readline()\nprint({answer!r}, flush=True)\nsys.stdin.read()"
    with pytest.raises(ConfigurationError) as raised:
        asked(make(script))
    assert told in raised.value.message


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ('{"seq":1,"ok":{"name":"x"}}', "What a hello holds is in docs/protocol.md, hello."),
        ("mylib 2.0, loading", "Stdout is for answers only"),
    ],
)
def test_a_hello_of_the_wrong_shape_is_not_called_a_line_too_many(make, said, hint):
    script = f"import sys\nsys.stdin.readline()\nprint({said!r}, flush=True)\nsys.stdin.read()"
    with pytest.raises(ConfigurationError) as raised:
        asked(make(script))
    assert hint in raised.value.hint


def test_a_program_that_is_not_built_is_told_before_it_is_started(make):
    manifest = make("", command='["{python}", "{dir}/dist/main.py"]', keys="build: [make dist]", check_command=False)
    with pytest.raises(ConfigurationError, match=r"dist/main.py does not exist\n  Build it first: gguf-conformance build .*"):
        asked(manifest)


def test_a_file_that_cannot_be_executed_is_said_to_be_one(make, tmp_path):
    (tmp_path / "program").write_bytes(b"\x7fELF no program at all")
    (tmp_path / "program").chmod(0o755)
    manifest = make("", command='["{dir}/program"]')
    with pytest.raises(ConfigurationError, match=r"cannot start `.*program`: Exec format error"):
        asked(manifest)


def test_a_command_that_is_too_long_is_told_by_its_beginning(make):
    long = "a" * 3_000_000
    with pytest.raises(
        ConfigurationError, match=r"cannot start `\S+ a+\.\.\. \(30000\d\d characters\)`: Argument list too long"
    ) as raised:
        asked(make("", command=f'["{{python}}", "{long}"]'))
    assert len(raised.value.message) < 1200
