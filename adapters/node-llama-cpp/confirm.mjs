// Shows what is surprising in node-llama-cpp's reader with the library alone. Run it where `gguf-conformance build` has put it.
// Each file is read by a process of its own, since some end it, within five seconds and 512 MiB for JavaScript's objects.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readGgufFileInfo } from "node-llama-cpp";

const u32 = (number) => Buffer.from(new Uint32Array([number]).buffer);
const u64 = (number) => Buffer.from(new BigUint64Array([BigInt(number)]).buffer);
const str = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const head = (tensors, pairs, version = 3) => Buffer.concat([Buffer.from("GGUF"), u32(version), u64(tensors), u64(pairs)]);
const pair = (key, type, ...value) => Buffer.concat([str(key), u32(type), ...value]);
const file = (...pairs) => Buffer.concat([head(0, pairs.length), ...pairs]);
const nested = (levels) => Buffer.concat([...Array(levels).fill(Buffer.concat([u32(9), u64(1)])), u32(0), u64(0)]);

const FILES = {
  "a string that claims 2^31 bytes and has none": file(pair("a", 8, u64(2n ** 31n))),
  "a string that claims 2^40 bytes and has none": file(pair("a", 8, u64(2n ** 40n))),
  "a string that claims 100 bytes and has 2": file(pair("a", 8, u64(100), Buffer.from("xy"))),
  "24 bytes that claim 2^40 tensors": head(2n ** 40n, 0),
  "24 bytes that claim 2^40 pairs": head(0, 2n ** 40n),
  "24 bytes that claim three pairs": head(0, 3),
  "five bytes: the magic and a 3": Buffer.from("GGUF\x03"),
  "version 99": head(0, 0, 99),
  "bools of 1, 2 and 255": file(pair("a", 7, Buffer.of(1)), pair("b", 7, Buffer.of(2)), pair("c", 7, Buffer.of(255))),
  "alignment 0": file(pair("general.alignment", 4, u32(0))),
  "alignment -1 as i32": file(pair("general.alignment", 5, u32(2 ** 32 - 1))),
  "a key named __proto__": file(pair("__proto__", 4, u32(7)), pair("a", 4, u32(8))),
  "a key twice": file(pair("a", 4, u32(1)), pair("a", 4, u32(2))),
  "arrays in arrays, 10,000 levels": file(pair("a", 9, nested(10_000))),
};

const shown = (_, value) => (typeof value === "bigint" ? `${value}n` : Number.isNaN(value) ? "NaN" : value);

async function read(path) {
  const { version, metadata, tensorInfo, infoEndOffset } = await readGgufFileInfo(path, { logWarnings: false });
  const text = JSON.stringify({ version, metadata, tensorInfo, infoEndOffset }, shown);
  console.log(text.length > 300 ? `${text.slice(0, 300)}... of ${text.length} characters` : text);
}

/** What a process said of a file, or how it ended. */
function told({ status, signal, stdout, stderr, error }) {
  if (error) return `no answer: ${error.code}`;
  const lines = stderr.split("\n").filter((line) => /Error|Assertion/.test(line));
  return status === 0 ? stdout.trim() : `ends with ${signal ?? `status ${status}`}: ${lines[0] ?? ""}`;
}

function readAll() {
  const folder = mkdtempSync(join(tmpdir(), "confirm-"));
  const path = join(folder, "case.gguf");
  const command = ["--max-old-space-size=512", fileURLToPath(import.meta.url), path];
  for (const [name, bytes] of Object.entries(FILES)) {
    writeFileSync(path, bytes);
    const done = spawnSync(process.execPath, command, { encoding: "utf8", timeout: 5000, killSignal: "SIGKILL" });
    console.log(`${name}:\n    ${told(done)}`);
  }
  rmSync(folder, { recursive: true });
}

if (process.argv[2]) await read(process.argv[2]);
else readAll();
