"""A process that has ended is read to its last byte."""

import os
import sys

import pytest

from conformance.subjects.child import Child

PIPE = 1 << 16


@pytest.fixture
def ended():
    """A child that filled both its pipes, killed itself, and has not been looked at."""
    script = f"import os; os.write(2, b'e' * {PIPE}); os.write(1, b'o' * {PIPE - 1} + b'\\n'); os.kill(os.getpid(), 10)"
    child = Child([sys.executable, "-c", script], os.environ, 1 << 20)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    yield child
    child.kill()


def test_what_an_ended_process_left_is_read(ended):
    assert not ended.has_line()
    assert ended.stopped()
    assert ended.how == "SIGUSR1"
    assert ended.take_line() == b"o" * (PIPE - 1)
    assert ended.stderr_tail == "e" * 4096


def test_kill_can_be_repeated(ended):
    ended.kill()
    ended.kill()
    assert ended.how == "SIGUSR1"
