"""One started process: its pipes, which never block the harness, and its end."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO

import psutil

from conformance.subjects.guard import GUARD
from conformance.subjects.memory import process_tree
from conformance.subjects.strays import VARIABLE, kill_marked, next_mark

STDERR_TAIL = 4096
CLOSED_GRACE = 1.0  # seconds between the end of stdout and the end of the process
END_GRACE = 1.0  # seconds to end by itself once stdin is closed
_CHUNK = 1 << 16  # what a Linux pipe holds
_DRAIN_ROUNDS = 256


class Child:
    """A process in a session of its own, with pipes that never block the harness.

    Little more than ``cap`` bytes of stdout and ``STDERR_TAIL`` bytes of stderr are ever kept. The constructor raises OSError
    where the command cannot be started.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cap: int) -> None:
        self._mark = next_mark()
        self._popen = _start(command, {**env, VARIABLE: self._mark})
        self.pid = self._popen.pid
        GUARD.add(self.pid)
        _no_core_dump(self.pid)
        self._stdin, self._stdout, self._stderr = map(_pipe, (self._popen.stdin, self._popen.stdout, self._popen.stderr))
        self.cap = cap
        self._outbox = memoryview(b"")
        self._inbox = bytearray()
        self._searched = 0
        self._tail = b""
        self._closed_at: float | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ, self._read_stdout)
        self._selector.register(self._stderr, selectors.EVENT_READ, self._read_stderr)

    def pump(self, timeout: float) -> int:
        """Move what the pipes hold or take, waiting at most ``timeout`` seconds for the first byte; give the bytes moved."""
        # Nothing reports that a process has ended whose stdout is closed already: look again soon.
        pause = timeout if self._closed_at is None else min(timeout, 0.005)
        return sum(key.data() for key, _ in self._selector.select(pause))

    # What goes in

    def send(self, line: bytes) -> None:
        """Write ``line`` as far as the pipe takes it now; ``pump`` writes the rest."""
        self._outbox = memoryview(line)
        self._write()
        if self._outbox:
            self._selector.register(self._stdin, selectors.EVENT_WRITE, self._write)

    @property
    def unsent(self) -> bool:
        """True while a part of what ``send`` was given is not written."""
        return bool(self._outbox)

    def close_stdin(self) -> None:
        """Tell the process that nothing more comes."""
        self._forget(self._stdin)
        self._stdin.close()

    def _write(self) -> int:
        try:
            written = os.write(self._stdin.fileno(), self._outbox)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            written = len(self._outbox)
            self._note_closed()
        self._outbox = self._outbox[written:]
        if not self._outbox:
            self._forget(self._stdin)
        return written

    # What comes out

    @property
    def output(self) -> bytes:
        """What stdout has given and ``take_line`` has not taken."""
        return bytes(self._inbox)

    @property
    def spoke(self) -> bool:
        """True if stdout has given something that is not taken."""
        return bool(self._inbox)

    @property
    def full(self) -> bool:
        """True once stdout gave more than the cap; it is then read no further."""
        return len(self._inbox) > self.cap

    @property
    def stderr_tail(self) -> str:
        """The end of what stderr gave since ``forget_stderr``."""
        return self._tail.decode("utf-8", "replace")

    def forget_stderr(self) -> None:
        """Begin a new tail."""
        self._tail = b""

    def has_line(self) -> bool:
        """Say whether a whole line of no more than the cap waits."""
        return 0 <= self._newline() <= self.cap

    def take_line(self) -> bytes:
        """Give the first line, without its newline; call only after ``has_line``."""
        end = self._newline()
        line = bytes(self._inbox[:end])
        del self._inbox[: end + 1]
        self._searched = 0
        return line

    def _newline(self) -> int:
        at = self._inbox.find(b"\n", self._searched)
        self._searched = len(self._inbox) if at < 0 else at
        return at

    def _read_stdout(self) -> int:
        data = self._read(self._stdout)
        self._inbox += data
        if self.full:
            self._forget(self._stdout)
        if not data:
            self._note_closed()
        return len(data)

    def _read_stderr(self) -> int:
        data = self._read(self._stderr)
        self._tail = (self._tail + data)[-STDERR_TAIL:]
        return len(data)

    def _read(self, pipe: IO[bytes]) -> bytes:
        """Read what is there; at the end of the stream stop listening to it."""
        data = os.read(pipe.fileno(), _CHUNK)
        if not data:
            self._forget(pipe)
        return data

    def _forget(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(KeyError, ValueError):  # not listened to, or closed
            self._selector.unregister(pipe)

    def _note_closed(self) -> None:
        if self._closed_at is None:
            self._closed_at = time.monotonic()

    # How it ends

    @property
    def how(self) -> str | None:
        """How the process ended: a signal's name or ``exit 3``; None while it lives."""
        code = self._popen.poll()
        if code is None:
            return None
        return f"exit {code}" if code >= 0 else _signal_name(-code)

    def stopped(self) -> bool:
        """Say whether waiting is over: too much came, the process ended, or it closed a pipe and lives on."""
        if self.how is not None:
            self._drain()
            return True
        return self.full or (self._closed_at is not None and time.monotonic() - self._closed_at > CLOSED_GRACE)

    def end(self) -> None:
        """Close stdin, give the process a moment to end by itself, then kill what is left."""
        self.close_stdin()
        until = time.monotonic() + END_GRACE
        while self._popen.poll() is None and time.monotonic() < until:
            self.pump(0.005)
        self.kill()

    def strike(self) -> None:
        """Kill the process group and no more, from any thread; the thread that uses this child sees it end and calls ``kill``."""
        if self._popen.returncode is None:
            self._kill_group()

    def kill(self) -> None:
        """Kill the process with all its descendants, reap it, close its pipes. Later calls do nothing."""
        if self._stdout.closed:
            return
        # Once the process is reaped its number may be another's, and its children are no longer its children.
        descendants = process_tree(self.pid)[1:] if self.how is None else []
        self._kill_group()
        for process in descendants:
            with contextlib.suppress(psutil.Error):
                process.kill()
        # A process inside a system call that cannot be interrupted outlives SIGKILL; the run goes on without waiting for it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(5)
        kill_marked(self._mark)
        GUARD.remove(self.pid)
        self._selector.close()
        for pipe in self._stdin, self._stdout, self._stderr:
            pipe.close()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it is empty; macOS: it holds only a zombie
            os.killpg(self.pid, signal.SIGKILL)

    def _drain(self) -> None:
        """Take what the process left in its pipes; no more, since a descendant may hold them open and go on writing."""
        for _ in range(_DRAIN_ROUNDS):
            if self.pump(0) == 0:
                return


def _start(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, bufsize=0, start_new_session=True)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("Popen was asked for three pipes")
    os.set_blocking(stream.fileno(), False)
    return stream


def _no_core_dump(pid: int) -> None:
    """Keep a crash from writing a core file; a limit of one byte also keeps Linux from starting a program that collects them."""
    if sys.platform == "linux":
        with contextlib.suppress(ValueError, OSError):  # a lower limit is set already, or the process has ended
            resource.prlimit(pid, resource.RLIMIT_CORE, (1, 1))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
