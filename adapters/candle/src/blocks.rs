//! Blocks: quantized, dequantized and multiplied by candle's own functions.

use crate::{types, Failure, Request};
use candle_core::quantized::{k_quants::*, GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device::Cpu, Module, Tensor};
use serde_json::{json, Value};
use std::borrow::Cow;

pub fn dequantize(request: &Request) -> Result<Value, Failure> {
    let values = stored(request, &request.r#in)?.dequantize(&Cpu)?;
    write(request, &values.flatten_all()?.to_vec1()?)
}

pub fn quantize(request: &Request) -> Result<Value, Failure> {
    let values = Tensor::from_vec(floats(&request.r#in)?, (request.rows, request.cols), &Cpu)?;
    let tensor = match &request.imatrix {
        Some(path) => QTensor::quantize_imatrix(&values, &floats(path)?, dtype(request)?)?,
        None => QTensor::quantize(&values, dtype(request)?)?,
    };
    std::fs::write(&request.out, tensor.data()?)?;
    Ok(json!({}))
}

/// Whatever candle does with one row on the CPU: blocks take it quantized, a matrix of floats becomes a matrix of float32.
pub fn matvec(request: &Request) -> Result<Value, Failure> {
    let x = Tensor::from_vec(floats(&request.x)?, (1, request.cols), &Cpu)?;
    let product = QMatMul::from_qtensor(stored(request, &request.weights)?)?.forward(&x)?;
    write(request, &product.flatten_all()?.to_vec1()?)
}

pub fn dot(request: &Request) -> Result<Value, Failure> {
    match dtype(request)? {
        GgmlDType::F32 => dot_rows::<f32>(request),
        GgmlDType::F16 => dot_rows::<half::f16>(request),
        GgmlDType::BF16 => dot_rows::<half::bf16>(request),
        GgmlDType::Q4_0 => dot_rows::<BlockQ4_0>(request),
        GgmlDType::Q4_1 => dot_rows::<BlockQ4_1>(request),
        GgmlDType::Q5_0 => dot_rows::<BlockQ5_0>(request),
        GgmlDType::Q5_1 => dot_rows::<BlockQ5_1>(request),
        GgmlDType::Q8_0 => dot_rows::<BlockQ8_0>(request),
        GgmlDType::Q8_1 => dot_rows::<BlockQ8_1>(request),
        GgmlDType::Q2K => dot_rows::<BlockQ2K>(request),
        GgmlDType::Q3K => dot_rows::<BlockQ3K>(request),
        GgmlDType::Q4K => dot_rows::<BlockQ4K>(request),
        GgmlDType::Q5K => dot_rows::<BlockQ5K>(request),
        GgmlDType::Q6K => dot_rows::<BlockQ6K>(request),
        GgmlDType::Q8K => dot_rows::<BlockQ8K>(request),
    }
}

fn dot_rows<T: GgmlType>(request: &Request) -> Result<Value, Failure> {
    let (weights, x) = (blocks::<T>(&std::fs::read(&request.weights)?), floats(&request.x)?);
    let product = if request.variant.as_deref() == Some("simd") { T::vec_dot } else { T::vec_dot_unopt };
    let rows = weights.chunks(request.cols / T::BLCK_SIZE).zip(x.chunks(request.cols));
    let sums: Vec<f32> = rows
        .map(|(row, x)| {
            let mut paired = vec![T::VecDotType::zeros(); request.cols / T::VecDotType::BLCK_SIZE];
            T::VecDotType::from_float(x, &mut paired);
            product(request.cols, row, &paired)
        })
        .collect();
    write(request, &sums)
}

/// The type that a request names. Only those that hello declares are asked.
fn dtype(request: &Request) -> Result<GgmlDType, Failure> {
    types::by_name(&request.r#type).ok_or_else(|| Failure::Adapter(format!("no type {}", request.r#type)))
}

fn stored(request: &Request, path: &str) -> Result<QTensor, Failure> {
    let storage = QStorage::from_data(Cow::Owned(std::fs::read(path)?), &Cpu, dtype(request)?)?;
    Ok(QTensor::new(storage, (request.rows, request.cols))?)
}

fn blocks<T: GgmlType>(bytes: &[u8]) -> Vec<T> {
    let mut blocks = vec![T::zeros(); bytes.len() / size_of::<T>()];
    let length = size_of_val(blocks.as_slice());
    // SAFETY: candle's blocks are plain bytes, numbers of fixed size for which every pattern is valid.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), blocks.as_mut_ptr().cast::<u8>(), length) };
    blocks
}

fn floats(path: &str) -> std::io::Result<Vec<f32>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four bytes"))).collect())
}

fn write(request: &Request, values: &[f32]) -> Result<Value, Failure> {
    std::fs::write(&request.out, values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(json!({}))
}
