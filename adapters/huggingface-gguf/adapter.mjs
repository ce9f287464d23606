// @huggingface/gguf behind protocol 1: a request a line on stdin, an answer a line on stdout.
import { createInterface } from "node:readline";
import { gguf } from "@huggingface/gguf";

const HELLO = {
  name: "huggingface-gguf",
  version: "0.4.6",
  language: "javascript",
  protocol: 1,
  // Strings come out of a TextDecoder; the data start at an aligned place even where there are no tensors.
  ops: { header: { strings: "lossy", data_offset: "tensors", hides: ["alignment", "nbytes"] } },
  details: { node: process.version },
};

// The value types by their number in the file.
const TYPES = ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "array", "u64", "i64", "f64"];

// Entries that the library puts before those of the file, under keys that a file may have too.
const OWN = ["version", "tensor_count", "kv_count"];

// What the library's own messages on a file begin with. Anything else that it throws was not meant for one.
const REFUSALS = [
  ["not a valid gguf file: not starting", "bad-magic"],
  ["not a valid gguf file: unsupported version", "bad-version"],
  ["Tensor count", "bad-count"],
  ["KV metadata count", "bad-count"],
  ["String length", "bad-length"],
  ["Metadata array length", "bad-length"],
  ["Exceeded maximum chunk fetches", "bad-length"],
  ["Unsupported metadata type", "bad-value-type"],
  ["Unsupported array element type", "bad-value-type"],
  ["Nested ARRAY depth", "too-deep"],
  ["Tensor n_dims", "bad-dims"],
  ["Tensor \"", "bad-dims"],
  ["general.alignment", "bad-alignment"],
];

function bits32(number) {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, number);
  return "0x" + view.getUint32(0).toString(16).padStart(8, "0");
}

function bits64(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return "0x" + view.getBigUint64(0).toString(16).padStart(16, "0");
}

/** A value whose type the library tells. */
function scalar(type, value) {
  if (type === "f32") return bits32(value);
  return type === "f64" ? bits64(value) : String(value);
}

/** An element of an array; an array in an array comes without the type of its own elements. */
function element(type, value) {
  return type === "array" ? { value: value.map(untyped) } : scalar(type, value);
}

function untyped(value) {
  if (Array.isArray(value)) return { value: value.map(untyped) };
  return typeof value === "number" ? bits64(value) : String(value);
}

function pair([key, entry]) {
  const type = TYPES[entry.type];
  if (type !== "array") return { key, type, value: scalar(type, entry.value) };
  const items = TYPES[entry.subType];
  return { key, type, items, value: entry.value.map((value) => element(items, value)) };
}

function tensor({ name, dtype, shape, offset }) {
  return { name, type: dtype, dims: shape.map(String), offset: String(offset) };
}

/** A number that the protocol has as one of JSON; a file's own key may have put something else in its place. */
function natural(name, value) {
  if (typeof value === "number" && value >= 0) return value;
  throw new Error(`${name} is ${value} (${typeof value})`);
}

async function header(path) {
  const read = await gguf(path, { allowLocalFile: true, typedMetadata: true });
  const pairs = Object.entries(read.typedMetadata).filter(([key]) => !OWN.includes(key));
  return {
    version: natural("version", read.metadata.version),
    alignment: 0,
    data_offset: Number(read.tensorDataOffset),
    kv: pairs.map(pair),
    tensors: read.tensorInfos.map(tensor),
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
