"""Says ok to a header request and leaves out the pairs."""

import json

from fake import run, say


def misbehave(answer):
    seq = json.loads(answer)["seq"]
    say(json.dumps({"seq": seq, "ok": {"version": 3, "alignment": 32, "data_offset": 32, "tensors": []}}).encode())


run(misbehave)
