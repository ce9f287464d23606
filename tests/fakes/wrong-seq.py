"""Answers with the number of the request before."""

import json

from fake import run, say


def misbehave(answer):
    wrong = json.loads(answer)
    wrong["seq"] -= 1
    say(json.dumps(wrong).encode())


run(misbehave)
