// Shows what is surprising in hyllama with the library alone. Run it where `gguf-conformance build` has put it.
import { ggufMetadata } from "hyllama";

const u32 = (number) => Buffer.from(new Uint32Array([number]).buffer);
const u64 = (number) => Buffer.from(new BigUint64Array([BigInt(number)]).buffer);
const str = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const head = (version, tensors, pairs) => Buffer.concat([Buffer.from("GGUF"), u32(version), u64(tensors), u64(pairs)]);
const pair = (key, type, ...value) => Buffer.concat([str(key), u32(type), ...value]);
const file = (...pairs) => Buffer.concat([head(3, 0, pairs.length), ...pairs]);
const nested = (levels) => Buffer.concat([...Array(levels).fill(Buffer.concat([u32(9), u64(1)])), u32(0), u64(0)]);

const FILES = {
  "a string of ö and ▁": file(pair("a", 8, str("ö ▁"))),
  "a key of ö": file(pair("ö", 4, u32(7))),
  "version 99": head(99, 0, 0),
  "version 1, whose counts have 32 bits, with one pair": Buffer.concat([
    Buffer.from("GGUF"), u32(1), u32(0), u32(1), u32(1), Buffer.from("a"), u32(4), u32(7),
  ]),
  "a big-endian file's head": Buffer.from("GGUF\0\0\0\x03" + "\0".repeat(16), "latin1"),
  "a key named version": file(pair("version", 4, u32(7))),
  "a key named tensorCount": file(pair("tensorCount", 4, u32(7))),
  "a key named __proto__": file(pair("__proto__", 4, u32(7)), pair("a", 4, u32(8))),
  "keys b, 1, 0 in this order": file(pair("b", 4, u32(1)), pair("1", 4, u32(2)), pair("0", 4, u32(3))),
  "a key twice": file(pair("a", 4, u32(1)), pair("a", 4, u32(2))),
  "alignment 0": file(pair("general.alignment", 4, u32(0))),
  "an empty array of type 77": file(pair("a", 9, u32(77), u64(0))),
  "arrays in arrays, 10,000 levels": file(pair("a", 9, nested(10_000))),
  "a tensor of type 1000 with dims 5, 2^63": Buffer.concat([
    head(3, 1, 0), str("t"), u32(2), u64(5), u64(2n ** 63n), u32(1000), u64(0),
  ]),
};

const shown = (_, value) => (typeof value === "bigint" ? `${value}n` : value);

function told(bytes) {
  try {
    return JSON.stringify(ggufMetadata(new Uint8Array(bytes).buffer), shown);
  } catch (thrown) {
    return `throws ${thrown}`;
  }
}

for (const [name, bytes] of Object.entries(FILES)) console.log(`${name}:\n    ${told(bytes)}`);
