// node-llama-cpp's own reader behind protocol 1: a request a line on stdin, an answer a line on stdout.
import { createInterface } from "node:readline";
import { readGgufFileInfo } from "node-llama-cpp";

// Keys come nested, cut at their dots, so their order is lost; strings come out of a Buffer's UTF-8 decoder; the data start at an
// aligned place even where there are no tensors.
const VIEW = { types: "lost", ordered: false, strings: "lossy", data_offset: "tensors", hides: ["alignment", "nbytes"] };

const HELLO = {
  name: "node-llama-cpp",
  version: "3.21.1",
  language: "javascript",
  protocol: 1,
  ops: { header: VIEW },
  details: { node: process.version },
};

// What the library's own messages on a file begin with. Anything else that it throws was not meant for one.
const REFUSALS = [
  ["Invalid GGUF magic", "bad-magic"],
  ["GGUF version 1 is not supported", "bad-version"],
  ["Unsupported GGUF value type", "bad-value-type"],
  ["Expected buffer to be long enough", "other"],
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

function pair(key, value) {
  const type = kind(value);
  return type === "array" ? { key, type, ...array(value) } : { key, type, value: plain(value) };
}

/** The pairs of nested metadata; a key is the way to its value, joined by dots again. */
function pairs(nested, before = "") {
  return Object.entries(nested).flatMap(([name, value]) =>
    kind(value) ? [pair(before + name, value)] : pairs(value, `${before}${name}.`),
  );
}

function tensor({ name, ggmlType, dimensions, offset }) {
  return { name, type: ggmlType, dims: dimensions.map(String), offset: String(offset) };
}

/** A number that the protocol has as one of JSON, which has no NaN. */
function natural(name, value) {
  if (typeof value === "number" && value >= 0) return value;
  throw new Error(`${name} is ${value} (${typeof value})`);
}

async function header(path) {
  const info = await readGgufFileInfo(path, { sourceType: "filesystem" });
  return {
    version: info.version,
    alignment: 0,
    data_offset: natural("infoEndOffset", info.infoEndOffset),
    kv: pairs(info.metadata),
    tensors: info.tensorInfo.map(tensor),
  };
}

function failure(thrown) {
  const message = String(thrown?.message ?? thrown);
  const refusal = REFUSALS.find(([start]) => message.startsWith(start));
  return refusal ? { reject: { class: refusal[1], message } } : { error: String(thrown) };
}

async function answer({ op, path }) {
  if (op === "hello") return { ok: HELLO };
  if (op !== "header") return { unsupported: `no op ${op}` };
  try {
    return { ok: await header(path) };
  } catch (thrown) {
    return failure(thrown);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  process.stdout.write(JSON.stringify({ seq: request.seq, ...(await answer(request)) }) + "\n");
}
