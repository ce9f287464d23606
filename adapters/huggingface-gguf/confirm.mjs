// Shows what is surprising in @huggingface/gguf with the library alone. Run it where `gguf-conformance build` has put it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gguf } from "@huggingface/gguf";

const u32 = (number) => Buffer.from(new Uint32Array([number]).buffer);
const u64 = (number) => Buffer.from(new BigUint64Array([BigInt(number)]).buffer);
const str = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const head = (tensors, pairs) => Buffer.concat([Buffer.from("GGUF"), u32(3), u64(tensors), u64(pairs)]);
const pair = (key, type, ...value) => Buffer.concat([str(key), u32(type), ...value]);
const file = (...pairs) => Buffer.concat([head(0, pairs.length), ...pairs]);
const tensor = Buffer.concat([str("t"), u32(1), u64(4), u32(0), u64(0)]);

const FILES = {
  "five bytes: the magic and a 3": Buffer.from("GGUF\x03"),
  "24 bytes that claim three pairs": head(0, 3),
  "a string that claims 100 bytes and has 2": file(pair("a", 8, u64(100), Buffer.from("xy"))),
  "an array that claims a thousand u32 and has none": file(pair("a", 9, u32(4), u64(1000))),
  "a string of 2,100,000 bytes, all there": file(pair("a", 8, str("x".repeat(2_100_000))), pair("b", 4, u32(7))),
  "a string of 5,000,000 bytes, all there": file(pair("a", 8, str("x".repeat(5_000_000))), pair("b", 4, u32(7))),
  "alignment 2^31": Buffer.concat([head(1, 1), pair("general.alignment", 4, u32(2 ** 31)), tensor]),
  "alignment 48, directory to byte 98": Buffer.concat([head(1, 1), pair("general.alignment", 4, u32(48)), tensor]),
  "alignment as the string 64": file(pair("general.alignment", 8, str("64"))),
  "a key named version": file(pair("version", 4, u32(7)), pair("a", 4, u32(8))),
  "a key named __proto__": file(pair("__proto__", 4, u32(7)), pair("a", 4, u32(8))),
  "keys b, 1, 0 in this order": file(pair("b", 4, u32(1)), pair("1", 4, u32(2)), pair("0", 4, u32(3))),
  "a string that begins with U+FEFF": file(pair("a", 8, str("\ufefftext"))),
  "a key twice": file(pair("a", 4, u32(1)), pair("a", 4, u32(2))),
  "a tensor of type 4, removed long ago": Buffer.concat([head(1, 0), str("t"), u32(1), u64(32), u32(4), u64(0)]),
  "an array of 1,000,001 u8, all there": file(pair("a", 9, u32(0), u64(1_000_001), Buffer.alloc(1_000_001))),
};

/** A value in few letters. */
function brief(value) {
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return `[${value.length} elements]`;
  const text = JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 12)}..." of ${value.length} characters` : text;
}

function told({ metadata, tensorInfos, tensorDataOffset }) {
  const pairs = Object.entries(metadata).map(([key, value]) => `${JSON.stringify(key)}: ${brief(value)}`);
  const types = tensorInfos.map(({ dtype }) => dtype);
  return `{${pairs.join(", ")}}, tensors of type [${types}], data at ${tensorDataOffset}`;
}

const folder = mkdtempSync(join(tmpdir(), "confirm-"));
const path = join(folder, "case.gguf");
for (const [name, bytes] of Object.entries(FILES)) {
  writeFileSync(path, bytes);
  const answer = await gguf(path, { allowLocalFile: true }).then(told, (thrown) => `throws ${thrown}`);
  console.log(`${name}:\n    ${answer}`);
}
rmSync(folder, { recursive: true });
