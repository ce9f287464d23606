import re

from conformance.printable import one_line
from conformance.report.write import write_reports
from tests.report.pages import junit
from tests.report.samples import HOSTILE, LIBRARY, finished, result, started

XML_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def test_junit_counts_and_names(rich):
    root = junit(rich / "junit.xml")
    assert root.tag == "testsuites"
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "12",
        "failures": "5",
        "errors": "1",
        "skipped": "4",
    }
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == [
        "blocks/dequantize",
        "blocks/dot",
        "blocks/quantize",
        "container/alignment",
        "container/version",
        "gguf-conformance",
    ]
    for suite in suites.values():
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert suite.get("timestamp") == "2031-02-03T04:05:06+00:00"
        assert suite.find("properties/property[@name='llama.cpp library']").get("value") == LIBRARY
    names = {(case.get("classname"), case.get("name")) for case in root.iter("testcase")}
    assert ("container/alignment", "24[newreader]") in names
    assert ("blocks/dot", "q8_0[llama.cpp]") in names


def test_junit_outcomes(rich):
    cases = {case.get("name"): case for case in junit(rich / "junit.xml").iter("testcase")}
    failure = cases["q4_k[newreader]"].find("failure")
    assert failure.get("type") == "quantize:Q4_K:bytes:qs"
    assert failure.get("message") == "diverges from llama.cpp: block 12 byte 37 (qs[21]) is 0x3f instead of 0x3d"
    assert "field qs[21]" in cases["q4_k[newreader]"].find("system-out").text
    assert cases["q4_1[newreader]"].find("skipped").get("message") == "known: bug: rounds twice"
    assert cases["one[newreader]"].find("skipped").get("message") == "skip: llama.cpp does not do this"
    assert cases["q4_0[llama.cpp]"].find("error") is not None
    assert list(cases["32[newreader]"]) == []
    stale = cases["stale container/kv/*[newreader] header:-:value:kv"].find("failure")
    assert "delete the entry" in stale.text


def test_junit_is_wellformed_whatever_the_data(hostile):
    text = (hostile / "junit.xml").read_text(encoding="utf-8")
    assert XML_ILLEGAL.search(text) is None
    root = junit(hostile / "junit.xml")
    shown = [value for element in root.iter() for value in (element.text or "", *element.attrib.values())]
    assert any(one_line(HOSTILE) in value for value in shown)
    assert not any(HOSTILE in value for value in shown)


def test_time_adds_up(tmp_path):
    write_reports((started(2), result("a/b", seconds=0.25), result("a/c", seconds=1.5), finished(0)), tmp_path)
    root = junit(tmp_path / "junit.xml")
    assert (root.get("time"), root[0].get("time"), root[0].find("testcase").get("time")) == ("1.750", "1.750", "0.250")
