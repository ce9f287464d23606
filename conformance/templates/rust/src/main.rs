//! Puts @NAME@ behind protocol 1 of gguf-conformance: a line of JSON comes in, a line of JSON goes out.

mod json;

use json::{object, text};
use std::io::{BufRead, Write};

/// What can come of a request but an answer. `Reject` is a verdict on the file: class (docs/protocol.md has the list; `other`
/// fits all), message, offset in the file. All else is `Error`.
enum Failure {
    Reject(&'static str, String, usize),
    Error(String),
    Unsupported,
}
type Outcome<T> = Result<T, Failure>;

// ---- The library. Replace all of this part: call yours in `header`, and give what it found in this form. ---------------------

/// Of the values' types, by number: name and bytes.
const TYPES: [(&str, usize); 13] = [
    ("u8", 1),
    ("i8", 1),
    ("u16", 2),
    ("i16", 2),
    ("u32", 4),
    ("i32", 4),
    ("f32", 4),
    ("bool", 1),
    ("str", 0),
    ("array", 0),
    ("u64", 8),
    ("i64", 8),
    ("f64", 8),
];

/// A little reader of the header, so that the adapter works before your library is in it.
struct Reader {
    data: Vec<u8>,
    at: usize,
}

impl Reader {
    fn refuse<T>(&self, class: &'static str, message: String) -> Outcome<T> {
        Err(Failure::Reject(class, message, self.at))
    }

    fn take(&mut self, count: u64, class: &'static str) -> Outcome<&[u8]> {
        let left = self.data.len() - self.at;
        if count > left as u64 {
            return self.refuse(class, format!("{count} bytes are due, {left} are left"));
        }
        self.at += count as usize;
        Ok(&self.data[self.at - count as usize..self.at])
    }

    /// An integer of up to 8 bytes, without its sign.
    fn bits(&mut self, width: usize) -> Outcome<u64> {
        let raw = self.take(width as u64, "truncated")?;
        Ok(raw.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn string(&mut self) -> Outcome<String> {
        let length = self.bits(8)?;
        self.take(length, "bad-length").map(text)
    }

    fn type_of(&mut self, arrays: bool) -> Outcome<(&'static str, usize)> {
        let number = self.bits(4)?;
        match TYPES.get(number as usize) {
            Some(found) if arrays || found.0 != "array" => Ok(*found),
            _ => self.refuse("bad-value-type", format!("value type {number}")),
        }
    }

    fn value(&mut self, (name, width): (&str, usize)) -> Outcome<String> {
        if name == "str" {
            return self.string();
        }
        let bits = self.bits(width)?;
        let shift = 64 - 8 * width as u32;
        Ok(match &name[..1] {
            "f" => format!("\"0x{bits:00$x}\"", 2 * width), // the bits, never a number
            "b" => format!("\"{}\"", bits != 0),
            "i" => format!("\"{}\"", (bits << shift) as i64 >> shift),
            _ => format!("\"{bits}\""),
        })
    }

    fn pair(&mut self, alignment: &mut u64) -> Outcome<String> {
        let (key, kind) = (self.string()?, self.type_of(true)?);
        if kind.0 != "array" {
            let start = self.at;
            let value = self.value(kind)?;
            if key == "\"general.alignment\"" && kind.0 == "u32" {
                self.at = start;
                *alignment = self.bits(4)?;
            }
            return Ok(object(&[("key", &key), ("type", &text(kind.0)), ("value", &value)]));
        }
        let (items, count) = (self.type_of(false)?, self.bits(8)?);
        if count > (self.data.len() - self.at) as u64 {
            return self.refuse("bad-length", format!("an array of {count} elements"));
        }
        let values = (0..count).map(|_| self.value(items)).collect::<Outcome<Vec<_>>>()?.join(",");
        let list = format!("[{values}]");
        Ok(object(&[("key", &key), ("type", "\"array\""), ("value", &list), ("items", &text(items.0))]))
    }

    fn tensor(&mut self) -> Outcome<String> {
        let (name, count) = (self.string()?, self.bits(4)?);
        let dims = (0..count).map(|_| Ok(format!("\"{}\"", self.bits(8)?))).collect::<Outcome<Vec<_>>>()?.join(",");
        let (kind, offset) = (self.bits(4)?.to_string(), format!("\"{}\"", self.bits(8)?));
        Ok(object(&[("name", &name), ("dims", &format!("[{dims}]")), ("type", &kind), ("offset", &offset)]))
    }
}

fn header(path: &str) -> Outcome<String> {
    let data = std::fs::read(path).map_err(|problem| Failure::Error(problem.to_string()))?;
    let (mut reader, mut alignment) = (Reader { data, at: 0 }, 32);
    if reader.take(4, "truncated")? != b"GGUF" {
        return reader.refuse("bad-magic", "no GGUF at the start".into());
    }
    let version = reader.bits(4)?;
    if version != 2 && version != 3 {
        return reader.refuse("bad-version", format!("version {version}"));
    }
    let (count, pairs) = (reader.bits(8)?, reader.bits(8)?);
    let kv = (0..pairs).map(|_| reader.pair(&mut alignment)).collect::<Outcome<Vec<_>>>()?.join(",");
    if !alignment.is_power_of_two() {
        return reader.refuse("bad-alignment", format!("alignment {alignment}"));
    }
    let tensors = (0..count).map(|_| reader.tensor()).collect::<Outcome<Vec<_>>>()?.join(",");
    let end = reader.at as u64;
    let offset = if count > 0 { end.next_multiple_of(alignment) } else { end };
    let numbers = format!("\"version\":{version},\"alignment\":{alignment},\"data_offset\":{offset}");
    Ok(format!("{{{numbers},\"kv\":[{kv}],\"tensors\":[{tensors}]}}"))
}

// ---- The protocol. What you add to HELLO and to `answer` is asked; what is not there is never asked, nor counted against you. -

const HELLO: &str = r#"{"name":"@NAME@","version":"0","language":"rust","protocol":1,"ops":{"header":{}}}"#;

fn answer(op: &str, path: &str) -> Outcome<String> {
    match op {
        "hello" => Ok(HELLO.to_string()),
        "header" => header(path),
        _ => Err(Failure::Unsupported),
    }
}

fn main() {
    let (mut requests, mut answers, mut line) = (std::io::stdin().lock(), std::io::stdout().lock(), Vec::new());
    while requests.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let fields = json::fields(&line).unwrap_or_default();
        let field = |name| fields.get(name).map_or("", String::as_str);
        let seq = if field("seq").is_empty() { "0" } else { field("seq") };
        // A panic that is caught is a fault, no verdict on the input.
        let outcome = std::panic::catch_unwind(|| answer(field("op"), field("path")));
        let (name, content) = match outcome.unwrap_or_else(|_| Err(Failure::Error("a panic".into()))) {
            Ok(content) => ("ok", content),
            Err(Failure::Reject(class, message, at)) => {
                ("reject", object(&[("class", &text(class)), ("message", &text(message)), ("at", &at.to_string())]))
            }
            Err(Failure::Error(message)) => ("error", text(message)),
            Err(Failure::Unsupported) => ("unsupported", text(format!("op {}", field("op")))),
        };
        writeln!(answers, "{{\"seq\":{seq},\"{name}\":{content}}}").and_then(|()| answers.flush()).expect("nobody reads");
        line.clear();
    }
}
