"""A subject that always answers well, and starts fast: what the fakes pass requests on to in these tests."""

import json
import sys

HEADER = {"version": 3, "alignment": 32, "data_offset": 64, "kv": [{"key": "a", "type": "u32", "value": "7"}], "tensors": []}
HELLO = {"name": "steady", "version": "1", "language": "python", "protocol": 1, "ops": {"header": {}, "load": {}}}

for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    answer = {"seq": request["seq"], "ok": HELLO if request["op"] == "hello" else HEADER}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
