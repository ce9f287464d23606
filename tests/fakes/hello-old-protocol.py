"""Greets with a protocol version that does not exist."""

import json

from fake import at_hello, run, say


def misbehave(answer):
    greeting = json.loads(answer)
    greeting["ok"]["protocol"] = 99
    say(json.dumps(greeting).encode())


run(misbehave, at_hello)
