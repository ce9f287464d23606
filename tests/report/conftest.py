from pathlib import Path

import pytest

from conformance.report.write import write_reports
from tests.report.samples import RICH, hostile_stream


@pytest.fixture(scope="module")
def rich(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rich")
    write_reports(RICH, folder)
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "below"
    write_reports(hostile_stream(), folder)
    return folder
