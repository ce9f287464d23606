"""What every fake does apart from its misbehaviour: it passes each request on to the reference and gives its answer.

The fakes show what the harness does about subjects that break. ``FAKE_SEQ`` is the number of the request that a fake
misbehaves at (3: the second after the hello), ``FAKE_REFERENCE`` the command it passes requests to.
"""

import json
import os
import shlex
import subprocess
import sys

AT = int(os.environ.get("FAKE_SEQ", "3"))


def say(line):
    """Write one line to stdout, whatever it is."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def at_one_request(request):
    return request["seq"] == AT


def at_hello(request):
    return request["op"] == "hello"


def run(misbehave, when=at_one_request):
    """Serve; where ``when(request)`` holds, call ``misbehave`` with the sound answer line instead of giving it."""
    command = os.environ.get("FAKE_REFERENCE", shlex.join([sys.executable, "-m", "impl"]))
    reference = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for line in iter(sys.stdin.buffer.readline, b""):
        reference.stdin.write(line)
        reference.stdin.flush()
        answer = reference.stdout.readline().rstrip(b"\n")
        if when(json.loads(line)):
            misbehave(answer)
        else:
            say(answer)
