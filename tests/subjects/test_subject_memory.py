"""Address space is not memory: V8 and Go reserve gigabytes that they never touch."""

import shutil

import pytest
from subject_helpers import header

from conformance.outcomes import Memory, Ok
from conformance.subjects.process import Subject

NODE = """
const held = [];
for (let i = 0; i < 4; i++) held.push(new WebAssembly.Memory({initial: 1, maximum: 65536}));
const ok = {version: 3, alignment: 32, data_offset: 64, kv: [], tensors: []};
const hello = {name: "node", version: process.version, language: "javascript", protocol: 1, ops: {header: {}}};
const size = require("fs").readFileSync("/proc/self/status", "utf8").match(/VmSize:\\s+(\\d+)/)[1];
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const {seq, op, path} = JSON.parse(line);
  console.error(size);
  if (path === "touch") held.push(Buffer.alloc(700 << 20, 1));
  setTimeout(() => console.log(JSON.stringify({seq, ok: op === "hello" ? hello : ok})), 200);
});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: no subject that reserves address space")
def test_reserved_address_space_is_no_memory_but_touched_pages_are(make):
    manifest = make(NODE, suffix="js", command='[node, "{dir}/subject.js"]', keys="limits: {memory: 512MiB}")
    with Subject(manifest) as subject:
        reserving = subject.ask(header())
        assert int(reserving.stderr_tail) << 10 > 16 << 30
        assert isinstance(reserving.outcome, Ok)
        assert 0 < reserving.resident_peak < 512 << 20
        assert isinstance(subject.ask(header("touch")).outcome, Memory)
