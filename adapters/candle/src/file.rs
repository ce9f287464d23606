//! A file's header and tensors: `gguf_file::Content`, and what it shows.

use crate::{types, Failure, Request};
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value as Meta, VersionedMagic};
use candle_core::Device;
use serde_json::{json, Value};
use std::{fs::File, io::BufReader};

/// Pairs and tensors lie in hash maps, strings are Rust's, and the data start at an aligned place even where there are none.
pub fn view() -> Value {
    json!({"ordered": false, "strings": "lossy", "data_offset": "tensors", "hides": ["alignment"]})
}

pub fn header(path: &str) -> Result<Value, Failure> {
    let content = Content::read(&mut BufReader::new(File::open(path)?))?;
    let tensors: Vec<Value> = content.tensor_infos.iter().map(|(name, info)| entry(name, info)).collect();
    Ok(shown(&content, tensors))
}

pub fn load(path: &str) -> Result<Value, Failure> {
    let mut reader = BufReader::new(File::open(path)?);
    let content = Content::read(&mut reader)?;
    let mut tensors = vec![];
    for (name, info) in by_offset(&content) {
        let tensor = content.tensor(&mut reader, name, &Device::Cpu)?;
        let mut shown = entry(name, info);
        shown["nbytes"] = json!(tensor.storage_size_in_bytes().to_string());
        tensors.push(shown);
    }
    Ok(shown(&content, tensors))
}

pub fn tensor(request: &Request) -> Result<Value, Failure> {
    let mut reader = BufReader::new(File::open(&request.path)?);
    let content = Content::read(&mut reader)?;
    let tensors = by_offset(&content);
    let (name, _) = tensors.get(request.index).ok_or_else(|| Failure::Adapter("no such tensor".into()))?;
    let tensor = content.tensor(&mut reader, name, &Device::Cpu)?;
    std::fs::write(&request.out, tensor.data()?)?;
    Ok(json!({}))
}

/// The directory's order is lost, but in a file that llama.cpp takes the tensors lie in it; of two at one offset the first is empty.
fn by_offset(content: &Content) -> Vec<(&String, &TensorInfo)> {
    let mut tensors: Vec<_> = content.tensor_infos.iter().collect();
    tensors.sort_by_key(|(name, info)| (info.offset, info.shape.elem_count(), *name));
    tensors
}

fn shown(content: &Content, tensors: Vec<Value>) -> Value {
    let version = match content.magic {
        VersionedMagic::GgufV1 => 1,
        VersionedMagic::GgufV2 => 2,
        VersionedMagic::GgufV3 => 3,
    };
    let kv: Vec<Value> = content.metadata.iter().map(|(key, value)| pair(key, value)).collect();
    // The alignment does not show; hello says so.
    json!({"version": version, "alignment": 0, "data_offset": content.tensor_data_offset, "kv": kv, "tensors": tensors})
}

fn entry(name: &str, info: &TensorInfo) -> Value {
    let dims: Vec<String> = info.shape.dims().iter().rev().map(|dim| dim.to_string()).collect();
    json!({"name": name, "type": types::number(info.ggml_dtype), "dims": dims, "offset": info.offset.to_string()})
}

fn pair(key: &str, value: &Meta) -> Value {
    let mut shown = match value {
        Meta::Array(items) => array(items),
        scalar => json!({"value": plain(scalar)}),
    };
    shown["key"] = json!(key);
    shown["type"] = json!(kind(value));
    shown
}

/// An array as the protocol has it; an empty one does not tell its elements' type.
fn array(items: &[Meta]) -> Value {
    let mut shown = json!({"value": items.iter().map(element).collect::<Vec<_>>()});
    if let Some(first) = items.first() {
        shown["items"] = json!(kind(first));
    }
    shown
}

fn element(value: &Meta) -> Value {
    match value {
        Meta::Array(items) => array(items),
        scalar => json!(plain(scalar)),
    }
}

fn kind(value: &Meta) -> &'static str {
    match value {
        Meta::U8(_) => "u8",
        Meta::I8(_) => "i8",
        Meta::U16(_) => "u16",
        Meta::I16(_) => "i16",
        Meta::U32(_) => "u32",
        Meta::I32(_) => "i32",
        Meta::U64(_) => "u64",
        Meta::I64(_) => "i64",
        Meta::F32(_) => "f32",
        Meta::F64(_) => "f64",
        Meta::Bool(_) => "bool",
        Meta::String(_) => "str",
        Meta::Array(_) => "array",
    }
}

fn plain(value: &Meta) -> String {
    match value {
        Meta::U8(v) => v.to_string(),
        Meta::I8(v) => v.to_string(),
        Meta::U16(v) => v.to_string(),
        Meta::I16(v) => v.to_string(),
        Meta::U32(v) => v.to_string(),
        Meta::I32(v) => v.to_string(),
        Meta::U64(v) => v.to_string(),
        Meta::I64(v) => v.to_string(),
        Meta::F32(v) => format!("{:#010x}", v.to_bits()),
        Meta::F64(v) => format!("{:#018x}", v.to_bits()),
        Meta::Bool(v) => v.to_string(),
        Meta::String(v) => v.clone(),
        Meta::Array(_) => unreachable!("arrays are told apart before"),
    }
}
