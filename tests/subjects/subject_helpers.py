"""Asking, and a search for processes that should be gone."""

import os
import time
from pathlib import Path

import psutil

from conformance.subjects.guard import GUARD
from conformance.subjects.process import Subject
from conformance.subjects.protocol import HeaderRequest

HERE = Path(__file__).resolve().parent
FAKES = HERE.parent / "fakes"
MARK = "GGUF_CONFORMANCE_TEST"

# The first lines of a subject whose `serve(answer)` calls `answer(request, sound_line)` for all but the hello.
PREAMBLE = f"""
import json, os, signal, subprocess, sys, time
sys.path.insert(0, {str(HERE)!r})
OK = {{"version": 3, "alignment": 32, "data_offset": 64, "kv": [], "tensors": []}}
HELLO = {{"name": "made", "version": "1", "language": "python", "protocol": 1, "ops": {{"header": {{}}}}}}
def say(value):
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\\n")
    sys.stdout.flush()
def serve(answer):
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if request["op"] == "hello":
            say({{"seq": request["seq"], "ok": HELLO}})
        else:
            answer(request, {{"seq": request["seq"], "ok": OK}})
"""


def header(path="x.gguf"):
    return HeaderRequest(seq=0, path=path)


def asked(manifest, times=1, **options):
    """Ask for a header ``times`` times; give the answers."""
    with Subject(manifest, **options) as subject:
        return [subject.ask(header()) for _ in range(times)]


def carriers(value):
    """Give the living processes that carry the mark, without the guard's shell."""
    guard = GUARD.pid
    return [process for process in psutil.process_iter() if process.pid not in (os.getpid(), guard) and _carries(process, value)]


def _carries(process, value):
    try:
        return process.environ().get(MARK) == value
    except psutil.Error:
        return False


def wait_until(condition, seconds=5.0):
    """Wait for what happens in another process; give whether it did."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()
