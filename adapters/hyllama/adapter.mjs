// hyllama behind protocol 1: a request a line on stdin, an answer a line on stdout.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { ggufMetadata } from "hyllama";

const HELLO = {
  name: "hyllama",
  version: "0.2.2",
  language: "javascript",
  protocol: 1,
  ops: { header: { types: "lost", hides: ["alignment", "data_offset", "nbytes"] } },
  details: { node: process.version },
};

// Entries that the library puts before those of the file, under keys that a file may have too.
const OWN = ["version", "tensorCount"];

// The library's own messages on a file, and the one of which its manual says that the bytes did not suffice. It comes for a file
// cut short and for a length beyond its end alike. Anything else that is thrown was not meant for a refusal.
const REFUSALS = [
  ["Not a valid GGUF file", "bad-magic"],
  ["Unsupported metadata type", "bad-value-type"],
  ["Offset is outside the bounds of the DataView", "other"],
];

function bits(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return "0x" + view.getBigUint64(0).toString(16).padStart(16, "0");
}

/** What JavaScript knows of a value's type: of a number no more than that it is a double. */
function kind(value) {
  if (Array.isArray(value)) return "array";
  if (typeof value === "bigint") return value < 0n ? "i64" : "u64";
  return { number: "f64", boolean: "bool", string: "str" }[typeof value];
}

function plain(value) {
  if (Array.isArray(value)) return array(value);
  return typeof value === "number" ? bits(value) : String(value);
}

/** An array's elements; an empty one does not tell their type, and one with a negative among BigInts is one of i64. */
function array(values) {
  const kinds = values.map(kind);
  return { items: kinds.includes("i64") ? "i64" : kinds[0], value: values.map(plain) };
}

function pair([key, value]) {
  const type = kind(value);
  return type === "array" ? { key, type, ...array(value) } : { key, type, value: plain(value) };
}

function tensor({ name, type, shape, offset }) {
  return { name, type, dims: shape.map(String), offset: String(offset) };
}

/** A number that the protocol has as one of JSON; a file's own key may have put something else in its place. */
function natural(name, value) {
  if (typeof value === "number" && value >= 0) return value;
  throw new Error(`${name} is ${value} (${typeof value})`);
}

function header(path) {
  // A copy, so that the ArrayBuffer holds the file and nothing else.
  const { metadata, tensorInfos } = ggufMetadata(new Uint8Array(readFileSync(path)).buffer);
  const pairs = Object.entries(metadata).filter(([key]) => !OWN.includes(key));
  return {
    version: natural("version", metadata.version),
    alignment: 0,
    data_offset: 0,
    kv: pairs.map(pair),
    tensors: tensorInfos.map(tensor),
  };
}

function failure(thrown) {
  const message = String(thrown?.message ?? thrown);
  const refusal = REFUSALS.find(([start]) => message.startsWith(start));
  return refusal ? { reject: { class: refusal[1], message } } : { error: String(thrown) };
}

function answer({ op, path }) {
  if (op === "hello") return { ok: HELLO };
  if (op !== "header") return { unsupported: `no op ${op}` };
  try {
    return { ok: header(path) };
  } catch (thrown) {
    return failure(thrown);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  process.stdout.write(JSON.stringify({ seq: request.seq, ...answer(request) }) + "\n");
}
