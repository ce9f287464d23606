from __future__ import annotations

import pytest
from impl_live import Live, live_or_skip


@pytest.fixture(scope="session")
def live() -> Live:
    return live_or_skip()
