import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.errors import ConfigurationError
from conformance.report.events import CaseResult, Counts
from conformance.report.write import CASES as CASES_FOLDER
from conformance.report.write import fresh_folder, open_events, prepare_folder, write_reports
from tests.report.pages import case_json, junit, parse
from tests.report.samples import CASES, FLOAT, GREEN, RICH, finished, result, save, started


def test_every_case_has_both_reports(rich):
    written = {path.relative_to(rich / "cases").as_posix() for path in (rich / "cases").rglob("*.*") if path.name != ".written"}
    cases = {event.case for event in RICH if isinstance(event, CaseResult)}
    assert written == {f"{case}.{ending}" for case in cases for ending in ("md", "json")}


def test_a_truncated_run_is_said_in_every_view(tmp_path):
    write_reports(RICH[:4], tmp_path)
    banner = f"TRUNCATED: 3 of {CASES} cases, the run did not finish"
    assert banner in parse(tmp_path / "summary.md").texts
    assert "exit 3" in parse(tmp_path / "summary.md").headings[0]
    assert banner in parse(tmp_path / "cases/container/alignment/24.md").texts
    assert case_json(tmp_path, "container/alignment/24")["warning"] == banner
    root = junit(tmp_path / "junit.xml")
    error = root.find("testsuite[@name='gguf-conformance']/testcase[@name='the run is whole']/error")
    assert error.get("message") == banner
    assert root.get("errors") == "1"


def test_reports_from_a_file_are_the_same_as_from_the_run(rich, tmp_path):
    events = save(RICH, tmp_path / "events.ndjson")
    written = write_reports(events, tmp_path / "again")
    assert written == (tmp_path / "again/summary.md", tmp_path / "again/junit.xml", CASES)
    for path in rich.rglob("*.*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(rich)).read_bytes() == path.read_bytes()


def test_old_case_reports_go_and_other_files_stay(tmp_path):
    write_reports(RICH, tmp_path)
    (tmp_path / "cases/container/alignment/mine.md").write_text("keep")
    outside = tmp_path / "outside.md"
    outside.write_text("keep")
    with (tmp_path / "cases/.written").open("a") as listed:
        listed.write("../outside.md\ncontainer/alignment/mine.txt\n")
    write_reports(GREEN, tmp_path)
    left = {path.relative_to(tmp_path / "cases").as_posix() for path in (tmp_path / "cases").rglob("*.md")}
    assert left == {"container/alignment/32.md", "container/alignment/64.md", "container/alignment/mine.md"}
    assert outside.exists()


def test_a_folder_is_prepared_before_the_run(tmp_path):
    events = prepare_folder(tmp_path / "new/reports")
    assert events == tmp_path / "new/reports/events.ndjson"
    assert (tmp_path / "new/reports" / CASES_FOLDER).is_dir()
    events.write_bytes(b"kept until the run begins\n")
    assert prepare_folder(tmp_path / "new/reports").read_bytes() == b"kept until the run begins\n"


@pytest.mark.parametrize("blocked", ["", "cases", "events.ndjson", "summary.md", "junit.xml"])
def test_a_folder_that_cannot_be_written_is_refused_by_name(tmp_path, blocked):
    folder = tmp_path / "reports"
    if blocked in ("", "cases"):
        folder.parent.mkdir(exist_ok=True)
        if blocked:
            folder.mkdir()
        (folder / blocked).write_text("a file where a folder is needed")
    else:
        (folder / blocked).mkdir(parents=True)
    with pytest.raises(ConfigurationError) as caught:
        prepare_folder(folder)
    assert str(caught.value).startswith(f"{folder}: cannot write ")
    assert str(folder / blocked) in caught.value.message
    assert re.search("File exists|Is a directory|Not a directory", caught.value.message)
    assert caught.value.exit_code == 3


def test_a_write_that_fails_later_is_refused_by_name(tmp_path):
    (tmp_path / "cases/container/alignment/24.md").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"24\.md: Is a directory") as caught:
        write_reports(RICH, tmp_path)
    assert caught.value.where == str(tmp_path)


def test_five_thousand_results_take_seconds(tmp_path):
    many = [
        result(
            f"suite{n % 40}/{n}",
            "diverge" if n % 5 == 0 else "pass",
            divergences=(FLOAT,) if n % 5 == 0 else (),
            counts=Counts(values=96),
        )
        for n in range(5000)
    ]
    path = save((started(5000), *many, finished()), tmp_path / "events.ndjson")
    began = time.monotonic()
    written = write_reports(path, tmp_path / "reports")
    assert time.monotonic() - began < 30
    assert written.cases == 5000
    page = parse(written.summary)
    assert len([heading for heading in page.headings if heading.startswith("suite")]) == 25
    assert ["975", "newreader", FLOAT.signature] in page.rows
    assert junit(written.junit).get("failures") == "1000"


def test_two_runs_that_begin_in_the_same_second_have_folders_of_their_own(tmp_path):
    wanted = tmp_path / "reports" / "20260101-120000"
    barrier = threading.Barrier(8)

    def begin(_):
        barrier.wait()
        return fresh_folder(wanted)

    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(begin, range(8)))
    assert folders == {wanted, *(wanted.with_name(f"20260101-120000-{number}") for number in range(2, 9))}
    assert all(folder.is_dir() for folder in folders)


def test_a_place_where_no_folder_can_be_made_is_told(tmp_path):
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(ConfigurationError, match=r"cannot write .*reports"):
        fresh_folder(tmp_path / "reports" / "20260101-120000")


@pytest.mark.parametrize("line", [b"\xff\xfe.md", b"a\0b.md", "\ud800.md".encode("utf-8", "surrogatepass"), b"../../out.md", b""])
def test_a_list_of_old_reports_that_was_damaged_does_no_harm(line, tmp_path):
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases/old.md").touch()
    (tmp_path / "cases/.written").write_bytes(line + b"\nold.md\n")
    write_reports(RICH, tmp_path)
    assert not (tmp_path / "cases/old.md").exists()


def test_two_runs_do_not_write_into_one_folder(tmp_path):
    with open_events(tmp_path) as stream:
        stream.write(b"the first\n")
        with pytest.raises(ConfigurationError, match="another run writes its reports there"), open_events(tmp_path):
            pass
        assert (tmp_path / "events.ndjson").read_bytes() == b"the first\n"
    with open_events(tmp_path) as stream:
        stream.write(b"next\n")
    assert (tmp_path / "events.ndjson").read_bytes() == b"next\n"
