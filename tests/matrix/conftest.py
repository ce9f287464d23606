from pathlib import Path

import pytest

from conformance.matrix.load import load_matrix
from conformance.matrix.matrix import Matrix
from tests.matrix.streams import both


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    return load_matrix([both(tmp_path)])
