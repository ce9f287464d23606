"use strict";
// Puts @NAME@ behind protocol 1 of gguf-conformance: a line of JSON comes in, a line of JSON goes out. Node alone, no packages.

const fs = require("node:fs");

/** The input is refused: a verdict on the file. The classes are listed in docs/protocol.md; `other` fits all. */
class Reject extends Error {
  constructor(kind, message, at) {
    super(message);
    this.answer = { class: kind, message, at };
  }
}

// ---- The library. Replace all of this part: call yours in `header`, and give what it found in this form. ----------------------

// By the number of a value's type: its name, its bytes, and how they are shown. Floats are shown by their bits.
const bits = (width) => (data, at) => "0x" + Buffer.from(data.subarray(at, at + width)).reverse().toString("hex");
const NUMBERS = {
  0: ["u8", 1, (data, at) => `${data.readUInt8(at)}`],
  1: ["i8", 1, (data, at) => `${data.readInt8(at)}`],
  2: ["u16", 2, (data, at) => `${data.readUInt16LE(at)}`],
  3: ["i16", 2, (data, at) => `${data.readInt16LE(at)}`],
  4: ["u32", 4, (data, at) => `${data.readUInt32LE(at)}`],
  5: ["i32", 4, (data, at) => `${data.readInt32LE(at)}`],
  6: ["f32", 4, bits(4)],
  7: ["bool", 1, (data, at) => (data[at] ? "true" : "false")],
  10: ["u64", 8, (data, at) => `${data.readBigUInt64LE(at)}`],
  11: ["i64", 8, (data, at) => `${data.readBigInt64LE(at)}`],
  12: ["f64", 8, bits(8)],
};
const STRING = 8;
const ARRAY = 9;

/** A little reader of the header, so that the adapter works before your library is in it. */
class Reader {
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  /** Go over so many bytes (a BigInt where the file says how many) and give where they began. */
  take(count, kind = "truncated") {
    const left = this.data.length - this.at;
    if (count > left) throw new Reject(kind, `${count} bytes are due, ${left} are left`, this.at);
    this.at += Number(count);
    return this.at - Number(count);
  }

  u32 = () => this.data.readUInt32LE(this.take(4));
  u64 = () => this.data.readBigUInt64LE(this.take(8));

  string() {
    const start = this.take(this.u64(), "bad-length");
    return text(this.data.subarray(start, this.at));
  }

  values(number, count) {
    const shown = [];
    if (number === STRING) {
      for (let index = 0n; index < count; index++) shown.push(this.string());
      return shown;
    }
    if (!(number in NUMBERS)) throw new Reject("bad-value-type", `value type ${number}`, this.at);
    const [, width, show] = NUMBERS[number];
    let at = this.take(count * BigInt(width), count > 1n ? "bad-length" : "truncated");
    for (; at < this.at; at += width) shown.push(show(this.data, at));
    return shown;
  }

  pair() {
    const key = this.string();
    const number = this.u32();
    const name = (type) => (type === STRING ? "str" : NUMBERS[type][0]);
    if (number !== ARRAY) {
      const [value] = this.values(number, 1n);
      return { key, type: name(number), value };
    }
    const items = this.u32();
    const value = this.values(items, this.u64());
    return { key, type: "array", value, items: name(items) };
  }

  tensor() {
    const name = this.string();
    const dims = [];
    for (let left = this.u32(); left > 0; left--) dims.push(`${this.u64()}`);
    return { name, dims, type: this.u32(), offset: `${this.u64()}` };
  }
}

function header(request) {
  const reader = new Reader(fs.readFileSync(request.path)); // what this throws is answered by `error`
  if (reader.data.toString("latin1", reader.take(4), 4) !== "GGUF") throw new Reject("bad-magic", "no GGUF at the start", 0);
  const version = reader.u32();
  if (version !== 2 && version !== 3) throw new Reject("bad-version", `version ${version}`, 4);
  const count = reader.u64();
  const kv = [];
  for (let left = reader.u64(); left > 0n; left--) kv.push(reader.pair());
  const given = kv.find((pair) => pair.key === "general.alignment" && pair.type === "u32");
  const alignment = given ? Number(given.value) : 32;
  if (alignment === 0 || !Number.isInteger(Math.log2(alignment))) throw new Reject("bad-alignment", `alignment ${alignment}`);
  const tensors = [];
  for (let left = count; left > 0n; left--) tensors.push(reader.tensor());
  const end = tensors.length ? Math.ceil(reader.at / alignment) * alignment : reader.at;
  return { version, alignment, data_offset: end, kv, tensors };
}

// ---- The protocol. What you add to OPS is asked; what is not there is never asked, and never counted against you. -------------

const OPS = { header };
const HELLO = { name: "@NAME@", version: "0", language: "javascript", protocol: 1, ops: { header: {} } };

/** Give bytes as the text that they are, or else by their hex digits. */
function text(bytes) {
  const decoded = bytes.toString("utf8");
  return Buffer.from(decoded, "utf8").equals(bytes) ? decoded : { hex: bytes.toString("hex") };
}

/** Give the answer to one line. Only a Reject is a verdict on the input; what else is thrown is a fault: `error`. */
function answer(line) {
  let seq = 0;
  try {
    const request = JSON.parse(line);
    seq = request.seq;
    if (request.op === "hello") return { seq, ok: HELLO };
    return Object.hasOwn(OPS, request.op) ? { seq, ok: OPS[request.op](request) } : { seq, unsupported: `op ${request.op}` };
  } catch (problem) {
    if (problem instanceof Reject) return { seq, reject: problem.answer };
    console.error(problem); // to stderr, of which the last lines go into a report
    return { seq, error: `${problem}` };
  }
}

/** Write all of it before anything else is done: process.stdout may be asynchronous, and a pipe takes only so much at a time. */
function say(line) {
  const bytes = Buffer.from(line + "\n");
  for (let done = 0; done < bytes.length; ) {
    try {
      done += fs.writeSync(1, bytes, done);
    } catch (problem) {
      if (problem.code !== "EAGAIN") throw problem;
    }
  }
}

console.log = console.error; // what the library prints goes to stderr: stdout is for answers alone
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => say(JSON.stringify(answer(line))));
