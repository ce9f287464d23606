//! candle-core behind protocol 1: a request a line on stdin, an answer a line on stdout.

mod blocks;
mod file;
mod types;

use serde::Deserialize;
use serde_json::{json, Value};
use std::io::{BufRead, Write};

/// What any op may be asked with; each op takes what it needs.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Request {
    seq: u64,
    op: String,
    path: String,
    index: usize,
    out: String,
    r#type: String,
    variant: Option<String>,
    rows: usize,
    cols: usize,
    r#in: String,
    imatrix: Option<String>,
    weights: String,
    x: String,
}

/// An answer other than ok: candle's refusal with a class of the protocol, or a failure of the adapter itself.
pub enum Failure {
    Reject(&'static str, String),
    Adapter(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Adapter(error.to_string())
    }
}

impl From<candle_core::Error> for Failure {
    fn from(error: candle_core::Error) -> Self {
        let message = error.to_string();
        Failure::Reject(class_of(&message), message)
    }
}

/// Find the class that a message of candle stands for. Its parts are those of candle-core 0.11.0. "header declares" is of none:
/// whether the counts are wrong or the file cut short cannot be told.
fn class_of(message: &str) -> &'static str {
    const PARTS: [(&str, &str); 16] = [
        ("failed to fill whole buffer", "truncated"),
        ("unknown magic", "bad-magic"),
        ("unsupported magic/version", "bad-version"),
        ("gguf: tensor_count", "bad-count"),
        ("gguf: metadata_kv_count", "bad-count"),
        ("gguf: string length", "bad-length"),
        ("gguf: array", "bad-length"),
        ("gguf: value nesting", "too-deep"),
        ("unrecognized value-type", "bad-value-type"),
        ("unexpected bool", "bad-value"),
        ("dimensions, max is", "bad-dims"),
        ("unknown dtype", "bad-tensor-type"),
        ("is not supported yet", "bad-tensor-type"),
        ("divisible by", "bad-block"),
        ("scalar tensor cannot", "bad-dims"),
        ("remaining in file", "missing-data"),
    ];
    PARTS.iter().find(|(part, _)| message.contains(part)).map_or("other", |(_, class)| class)
}

fn hello() -> Value {
    json!({"name": "candle", "version": "0.11.0", "language": "rust", "protocol": 1,
        "ops": {"header": file::view(), "load": file::view(), "tensor": {},
            "dequantize": types::names(""), "quantize": types::quantized(),
            "dot": types::dots(), "matvec": types::matvecs()},
        "details": {"vector_code": if types::VECTOR { "avx2" } else { "none" }}})
}

fn answer(request: &Request) -> Result<Value, Failure> {
    match request.op.as_str() {
        "hello" => Ok(hello()),
        "header" => file::header(&request.path),
        "load" => file::load(&request.path),
        "tensor" => file::tensor(request),
        "dequantize" => blocks::dequantize(request),
        "quantize" => blocks::quantize(request),
        "dot" => blocks::dot(request),
        "matvec" => blocks::matvec(request),
        op => Err(Failure::Adapter(format!("no op {op}"))),
    }
}

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let mut reply = match answer(&request) {
            Ok(value) => json!({"ok": value}),
            Err(Failure::Reject(class, message)) => json!({"reject": {"class": class, "message": message}}),
            Err(Failure::Adapter(message)) => json!({"error": message}),
        };
        reply["seq"] = request.seq.into();
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{reply}")?;
        stdout.flush()?;
    }
    Ok(())
}
