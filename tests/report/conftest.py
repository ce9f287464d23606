from pathlib import Path

import pytest
from report_samples import RICH, hostile_stream

from conformance.report.write import write_reports


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
