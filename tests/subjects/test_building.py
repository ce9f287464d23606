from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance import logged
from conformance.cli import main
from conformance.errors import ConfigurationError, UsageError
from conformance.subjects import building
from conformance.subjects.building import build, missing_tools
from conformance.subjects.manifest import Manifest, load_manifest
from tests.corpus import part_of_corpus


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "source.sh").write_text("#!/bin/sh\n")
    return folder


def manifest(folder: Path, *commands: str, needs: str = "[]") -> Manifest:
    lines = "".join(f"  - '{command}'\n" for command in commands)
    text = f'name: made\nlanguage: sh\ncommand: ["{{build}}/made"]\nneeds: {needs}\nbuild:\n{lines}'
    (folder / "adapter.yaml").write_text(text)
    return load_manifest(folder, check_command=False)


MAKE = ("cp source.sh {build}/made", "chmod +x {build}/made && date >> {build}/times")


def times(made: Manifest) -> int:
    return len((made.built / "times").read_text().splitlines())


def test_it_is_built_once_and_again_when_something_changed(folder: Path) -> None:
    made = manifest(folder, *MAKE)
    assert build(made, print) is not None
    assert (made.built / "made").read_text() == "#!/bin/sh\n"
    assert (build(made, print), times(made)) == (None, 1)
    (folder / "divergences.yaml").write_text("divergences: []\n")  # no part of what is built
    assert (build(made, print), times(made)) == (None, 1)
    (folder / "source.sh").write_text("#!/bin/bash\n")
    assert build(made, print) is not None
    assert (made.built / "made").read_text() == "#!/bin/bash\n"
    more = manifest(folder, *MAKE, ":")
    assert build(more, print) is not None
    assert build(more, print, again=True) is not None
    assert times(made) == 4


def test_a_command_that_fails_ends_it_and_nothing_is_taken_for_built(folder: Path) -> None:
    made = manifest(folder, *MAKE, "echo no such library >&2; exit 7", "touch {build}/after")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"building made failed \(exit 7\): echo no such") as raised:
            build(made, print)
    assert raised.value.where == str(made.built / "build.log")
    assert raised.value.hint.endswith("no such library")
    assert not (made.built / "after").exists()


def test_a_build_that_fails_is_not_taken_for_the_one_before(folder: Path) -> None:
    made = manifest(folder, *MAKE)
    build(made, print)
    (folder / "source.sh").unlink()
    with pytest.raises(ConfigurationError):
        build(made, print)
    (folder / "source.sh").write_text("#!/bin/sh\n")
    assert build(made, print) is not None


def test_what_is_started_has_to_be_there(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="made does not exist"):
        build(manifest(folder, ":"), print)


def test_tools_that_are_missing(folder: Path) -> None:
    made = manifest(folder, *MAKE, needs="[sh, no-such-tool, neither]")
    assert missing_tools(made) == ["no-such-tool", "neither"]
    with pytest.raises(ConfigurationError, match="made cannot be built: no-such-tool, neither not on PATH"):
        build(made, print)


def test_nothing_to_build(folder: Path) -> None:
    (folder / "adapter.yaml").write_text("name: made\nlanguage: sh\ncommand: [sh]\n")
    with pytest.raises(UsageError, match="made has no build commands"):
        build(load_manifest(folder), print)


def test_how_far_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "PROGRESS_SECONDS", 0.1)
    monkeypatch.setattr(logged, "POLL_SECONDS", 0.01)
    said: list[str] = []
    build(manifest(folder, *MAKE, "echo step 1 of 2; sleep 0.5"), said.append)
    assert any(line.endswith("s  step 1 of 2") for line in said)


def test_the_command(folder: Path) -> None:
    made = manifest(folder, *MAKE)
    result = CliRunner().invoke(main, ["build", str(folder)])
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == f"building made into {made.built}"
    assert result.stderr.splitlines()[-1].startswith("made: built in ")
    assert "built in" in CliRunner().invoke(main, ["build", "--again", str(folder)]).stderr


def test_only_the_projects_own_are_left_as_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = manifest(folder, "cp ../library.sh {build}/made && chmod +x {build}/made")
    (folder.parent / "library.sh").write_text("#!/bin/sh\n")
    assert "built in" in CliRunner().invoke(main, ["build", str(folder)]).stderr
    (folder.parent / "library.sh").write_text("#!/bin/bash\n")  # beside the adapter's folder
    assert "built in" in CliRunner().invoke(main, ["build", str(folder)]).stderr
    assert (made.built / "made").read_text() == "#!/bin/bash\n"
    monkeypatch.setattr(building, "adapters_root", lambda: folder.parent)
    assert "nothing has changed" in CliRunner().invoke(main, ["build", str(folder)]).stderr


def test_a_run_of_what_was_built_of_other_sources_says_so(folder: Path) -> None:
    manifest(folder, *MAKE)
    warning = f"made was built of other sources than are there now; build it again: gguf-conformance build {folder}"
    run = ["run", "--subject", str(folder), "--oracle", "golden", "--select", "container/version/0", "--no-report"]
    run += ["--cases", str(part_of_corpus(folder.parent / "cases", ["container/version"]))]
    CliRunner().invoke(main, ["build", str(folder)])
    assert warning not in CliRunner().invoke(main, run).stderr
    (folder / "divergences.yaml").write_text("divergences: []\n")  # no part of what is built
    assert warning not in CliRunner().invoke(main, run).stderr
    (folder / "source.sh").write_text("#!/bin/bash\n")
    assert warning in CliRunner().invoke(main, run).stderr
    CliRunner().invoke(main, ["build", str(folder)])
    assert warning not in CliRunner().invoke(main, run).stderr


def test_the_command_tells_what_is_wrong(folder: Path) -> None:
    manifest(folder, "exit 3")
    result = CliRunner().invoke(main, ["build", str(folder)])
    assert (result.exit_code, "failed (exit 3): exit 3" in result.stderr) == (3, True)
    assert "Traceback" not in result.stderr


def test_the_command_has_nothing_to_do_without_build_commands(folder: Path) -> None:
    (folder / "adapter.yaml").write_text("name: made\nlanguage: sh\ncommand: [sh, '{dir}/source.sh']\n")
    done = CliRunner().invoke(main, ["build", str(folder)])
    assert (done.exit_code, done.stderr) == (0, "made: its manifest has no build commands, nothing to do\n")
    (folder / "source.sh").unlink()
    missing = CliRunner().invoke(main, ["build", str(folder)])
    assert (missing.exit_code, "source.sh does not exist" in missing.stderr) == (3, True)
