"""Rejects with a class that the protocol does not have."""

import json

from fake import run, say


def misbehave(answer):
    seq = json.loads(answer)["seq"]
    say(json.dumps({"seq": seq, "reject": {"class": "bad_magic", "message": "no GGUF"}}).encode())


run(misbehave)
