//! The types that candle has, by ggml's names and numbers, and what it does with each.

use candle_core::quantized::GgmlDType as T;

const TYPES: [(&str, u32, T); 15] = [
    ("F32", 0, T::F32),
    ("F16", 1, T::F16),
    ("Q4_0", 2, T::Q4_0),
    ("Q4_1", 3, T::Q4_1),
    ("Q5_0", 6, T::Q5_0),
    ("Q5_1", 7, T::Q5_1),
    ("Q8_0", 8, T::Q8_0),
    ("Q8_1", 9, T::Q8_1),
    ("Q2_K", 10, T::Q2K),
    ("Q3_K", 11, T::Q3K),
    ("Q4_K", 12, T::Q4K),
    ("Q5_K", 13, T::Q5K),
    ("Q6_K", 14, T::Q6K),
    ("Q8_K", 15, T::Q8K),
    ("BF16", 30, T::BF16),
];

/// Whether candle was compiled with its vector code; without it `vec_dot` is `vec_dot_unopt`.
pub const VECTOR: bool = cfg!(target_feature = "avx2");

pub fn number(dtype: T) -> u32 {
    TYPES.iter().find(|entry| entry.2 == dtype).expect("each type is in the table").1
}

pub fn by_name(name: &str) -> Option<T> {
    TYPES.iter().find(|entry| entry.0 == name).map(|entry| entry.2)
}

pub fn names(variant: &str) -> Vec<String> {
    TYPES.iter().map(|entry| format!("{}{variant}", entry.0)).collect()
}

/// Each type plainly; the types of a product's vector, which ggml quantizes by their reference function alone, as that.
pub fn quantized() -> Vec<String> {
    let mut all = names("");
    all.extend(["Q8_1:ref".into(), "Q8_K:ref".into()]);
    all
}

/// Floats are left out of the sums in order: what candle calls unoptimized there is vector code.
pub fn dots() -> Vec<String> {
    let mut all = blocks(|_| true);
    all.extend(if VECTOR { names(":simd") } else { vec![] });
    all
}

/// `QMatMul` sums in order where `vec_dot` does: everywhere without vector code, else where candle has none for the type.
pub fn matvecs() -> Vec<String> {
    let mut all = blocks(|dtype| !VECTOR || matches!(dtype, T::Q4_1 | T::Q5_0 | T::Q5_1 | T::Q8_1));
    all.extend(if VECTOR { names(":simd") } else { vec![] });
    all
}

fn blocks(chosen: impl Fn(T) -> bool) -> Vec<String> {
    let of_blocks = TYPES.iter().filter(|entry| entry.2.block_size() > 1 && chosen(entry.2));
    of_blocks.map(|entry| entry.0.to_string()).collect()
}
