"""Ends subjects whose harness was killed before it could end them itself.

A subject that reads its stdin sees it close and ends; one that hangs would stay. The guard is a shell in a session of its own that
holds the read end of a pipe: when the harness is gone, however it went, the pipe closes and the guard kills the
process groups that are still noted, and what has left them but still carries the mark of this harness's subjects.
"""

from __future__ import annotations

import atexit
import contextlib
import subprocess
import threading

from conformance.subjects.strays import TOKEN, VARIABLE, adopt_orphans, children, kill_children

_SCRIPT = """
trap '' HUP INT TERM
live=
while read -r sign group; do
  case $sign in
    +) live="$live $group" ;;
    -) rest=
       for one in $live; do [ "$one" = "$group" ] || rest="$rest $one"; done
       live=$rest ;;
  esac
done
for one in $live; do kill -9 "-$one" 2>/dev/null; done
for file in $(grep -lF "$1" /proc/[0-9]*/environ 2>/dev/null); do
  stray=${file#/proc/}
  kill -9 "${stray%/environ}" 2>/dev/null
done
"""


class Guard:
    """One shell that knows the process groups that are to die with the harness."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        self._spared: set[int] | None = None

    @property
    def pid(self) -> int | None:
        """The guard's process, if it runs."""
        return self._shell.pid if self._shell is not None else None

    def add(self, group: int) -> None:
        """Note a process group; safe from any thread."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+ {group}\n")

    def remove(self, group: int) -> None:
        """Forget a process group that has ended."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"- {group}\n")

    def own_process(self) -> None:
        """Take this process as one that has no children but those it has now and those that subjects leave behind."""
        self._spared = children()
        adopt_orphans()

    def stop(self) -> None:
        """End the guard; groups that are still noted are killed, and in a process of our own all that is left."""
        with self._lock:
            if self._shell is not None:
                self._shell.communicate()
                self._shell = None
            if self._spared is not None:
                kill_children(self._spared)

    def _tell(self, line: str) -> None:
        if self._shell is None or self._shell.poll() is not None:
            self._start()
        elif self._shell.stdin is not None:
            # A guard that has just died is replaced at the next line, with all groups.
            with contextlib.suppress(BrokenPipeError):
                self._shell.stdin.write(line.encode())

    def _start(self) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "guard", f"{VARIABLE}={TOKEN}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        if self._shell.stdin is not None:
            self._shell.stdin.write("".join(f"+ {group}\n" for group in self._groups).encode())


GUARD = Guard()
atexit.register(GUARD.stop)
