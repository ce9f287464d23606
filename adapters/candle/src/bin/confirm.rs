//! Shows with candle alone what the harness and docs/candle.md say of it: confirm [MODEL].
//!
//! Inputs are made here; MODEL, the SmolLM2 file of the cases, adds a real matrix and a real header.

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::{k_quants::*, GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device::Cpu, Module, Tensor};
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::{borrow::Cow, cell::Cell, fs::File, panic};

/// The project's numbers of distribution `normal` (docs/numbers.md).
fn normal(mut state: u64, count: usize) -> Vec<f32> {
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut sum =
        || (0..3).map(|_| draw()).flat_map(|z| [z, z >> 16, z >> 32, z >> 48]).map(|field| (field & 0xffff) as i64).sum::<i64>();
    (0..count).map(|_| (sum() - 393_210) as f32 / 65536.0).collect()
}

fn quantized<T: GgmlType>(values: &[f32]) -> Vec<T> {
    let mut blocks = vec![T::zeros(); values.len() / T::BLCK_SIZE];
    T::from_float(values, &mut blocks);
    blocks
}

fn exact(w: &[f32], x: &[f32]) -> f64 {
    w.iter().zip(x).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
}

fn products() {
    let (w, x) = (normal(701, 4096), normal(702, 4096));
    let (a, b) = (quantized::<BlockQ8_0>(&w), quantized::<BlockQ8_0>(&x));
    println!("two vectors of 4096 numbers, both quantized to Q8_0");
    println!("    exact, not quantized {:.15}", exact(&w, &x));
    println!("    vec_dot_unopt        {:.9}", BlockQ8_0::vec_dot_unopt(4096, &a, &b));
    println!("    vec_dot              {:.9}", BlockQ8_0::vec_dot(4096, &a, &b));
}

fn farthest(found: &[f32], expected: impl Iterator<Item = f64>) -> f64 {
    found.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).abs()).fold(0.0, f64::max)
}

/// 576 rows of the model's embeddings (Q8_0) times a vector.
fn matrix(path: &str) -> candle_core::Result<()> {
    const N: usize = 576;
    let mut file = BufReader::new(File::open(path)?);
    let tensor = Content::read(&mut file)?.tensor(&mut file, "token_embd.weight", &Cpu)?;
    let bytes = tensor.data()?[..N * N / 32 * 34].to_vec();
    let mut stored = vec![BlockQ8_0::zeros(); N * N / 32];
    // SAFETY: a block is 34 plain bytes, and there are as many blocks as bytes for them.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), stored.as_mut_ptr().cast::<u8>(), bytes.len()) };
    let tensor = QTensor::new(QStorage::from_data(Cow::Owned(bytes), &Cpu, GgmlDType::Q8_0)?, (N, N))?;
    let weights = tensor.dequantize(&Cpu)?.to_vec2::<f32>()?;
    let x = normal(902, N);
    let vector =
        QMatMul::from_qtensor(tensor)?.forward(&Tensor::from_vec(x.clone(), (1, N), &Cpu)?)?.flatten_all()?.to_vec1::<f32>()?;
    let b = quantized::<BlockQ8_0>(&x);
    let scalar: Vec<f32> = stored.chunks(N / 32).map(|row| BlockQ8_0::vec_dot_unopt(N, row, &b)).collect();
    let float: Vec<f32> = weights.iter().map(|row| row.iter().zip(&x).fold(0.0, |sum, (w, x)| sum + w * x)).collect();
    let exact: Vec<f64> = weights.iter().map(|row| exact(row, &x)).collect();
    let same = vector.iter().zip(&scalar).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
    println!("576 x 576 of Q8_0 times a vector, by QMatMul");
    println!(
        "    {same} of {N} outputs are those of the sum in order, greatest difference {:.1e}",
        farthest(&vector, scalar.iter().map(|&v| v.into()))
    );
    println!(
        "    greatest error {:.1e}; {:.1e} where the vector stays float32",
        farthest(&vector, exact.iter().copied()),
        farthest(&float, exact.into_iter())
    );
    Ok(())
}

/// The sum that Q8_1 keeps of each block beside the one rounding of it that ggml has.
fn sums() {
    let (mut other, mut worst) = (0, 0i32);
    let x = normal(902, 32 * 4096);
    for (block, x) in quantized::<BlockQ8_1>(&x).iter().zip(x.chunks(32)) {
        // SAFETY: a block is 36 plain bytes: scale, sum, 32 codes.
        let bytes: &[u8; 36] = unsafe { &*std::ptr::from_ref(block).cast() };
        let scale = x.iter().fold(0f32, |max, x| max.max(x.abs())) / 127.0;
        let sum: i32 = bytes[4..].iter().map(|&code| i32::from(code as i8)).sum();
        let once = half::f16::from_f32(sum as f32 * scale).to_bits();
        let apart = (i32::from(once) - i32::from(u16::from_le_bytes([bytes[2], bytes[3]]))).abs();
        (other, worst) = (other + i32::from(apart > 0), worst.max(apart));
    }
    println!("Q8_1: the sums of {other} of 4096 blocks are not the product rounded once, by up to {worst} last bits");
}

/// ggml's greatest magnitude starts anew behind a NaN, and is NaN where one ends the block.
fn not_numbers() -> candle_core::Result<()> {
    for place in [1, 31] {
        let mut row = vec![0f32; 32];
        (row[0], row[place]) = (1.0, f32::NAN);
        let tensor = QTensor::quantize(&Tensor::from_vec(row, (1, 32), &Cpu)?, GgmlDType::Q8_0)?;
        println!("Q8_0 of 1, zeros and a NaN at {place}: scale and first codes {:02x?}", &tensor.data()?[..4]);
    }
    Ok(())
}

fn with_importances(dtype: GgmlDType, weight: f32) -> candle_core::Result<Vec<f32>> {
    let row = Tensor::from_vec(normal(1, 256), (1, 256), &Cpu)?;
    QTensor::quantize_imatrix(&row, &[weight; 256], dtype)?.dequantize(&Cpu)?.flatten_all()?.to_vec1()
}

fn importances() -> candle_core::Result<()> {
    for (dtype, weight) in [(GgmlDType::Q4K, 1.0), (GgmlDType::Q4K, 0.0), (GgmlDType::Q4_0, 1.0)] {
        let said = match panic::catch_unwind(|| with_importances(dtype, weight)) {
            Ok(values) => format!("{:?} ...", &values?[..4]),
            Err(_) => "panics".into(),
        };
        println!("{dtype:?} with importances of {weight}: {said}");
    }
    Ok(())
}

/// A tensor of 2^32 by 2^32, without a byte of data.
fn wraps() -> candle_core::Result<()> {
    let mut bytes = header(1, 0, "", 0);
    bytes.extend(1u64.to_le_bytes());
    bytes.push(b't');
    bytes.extend(
        [
            2u32.to_le_bytes().as_slice(),
            &(1u64 << 32).to_le_bytes(),
            &(1u64 << 32).to_le_bytes(),
            &0u32.to_le_bytes(),
            &0u64.to_le_bytes(),
        ]
        .concat(),
    );
    bytes.resize(96, 0);
    let tensor = Content::read(&mut Cursor::new(&bytes))?.tensor(&mut Cursor::new(&bytes), "t", &Cpu)?;
    println!("a file of 96 bytes has the tensor {tensor:?} of {} bytes", tensor.storage_size_in_bytes());
    Ok(())
}

fn header(tensors: u64, pairs: u64, key: &str, kind: u32) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend([tensors.to_le_bytes(), pairs.to_le_bytes()].concat());
    if pairs > 0 {
        bytes.extend((key.len() as u64).to_le_bytes());
        bytes.extend(key.as_bytes());
        bytes.extend(kind.to_le_bytes());
    }
    bytes
}

fn nested(levels: usize) -> Vec<u8> {
    let mut bytes = header(0, 1, "general.tags", 9);
    for level in 1..=levels {
        bytes.extend((if level < levels { 9u32 } else { 0 }).to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
    }
    bytes.push(7);
    bytes
}

fn try_header(what: &str, bytes: Vec<u8>) {
    let size = bytes.len();
    let said = match panic::catch_unwind(|| Content::read(&mut Cursor::new(bytes))) {
        Ok(Ok(content)) => format!("accepted, data at {}", content.tensor_data_offset),
        Ok(Err(error)) => format!("refused: {}", error.to_string().lines().next().unwrap_or_default()),
        Err(_) => "panics; a program that does not catch it dies".into(),
    };
    println!("{what} ({size} bytes)\n    {said}");
}

fn headers() {
    let mut zero = header(0, 1, "general.alignment", 4);
    zero.extend(0u32.to_le_bytes());
    try_header("alignment 0", zero);
    let mut string = header(0, 1, "general.architecture", 8);
    string.extend((1u64 << 40).to_le_bytes());
    try_header("a string of 2^40 bytes", string);
    try_header("2^40 tensors", header(1 << 40, 0, "", 0));
    for levels in [64, 65, 66, 100, 1_000_000] {
        try_header(&format!("{levels} arrays within each other"), nested(levels));
    }
    let mut magic = header(0, 0, "", 0);
    magic[..4].reverse();
    try_header("the magic spelled FUGG", magic);
}

/// Counts the calls that reach what it wraps.
struct Counting<'a, R>(R, &'a Cell<(u64, u64)>);

impl<R: Read> Read for Counting<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.1.set((self.1.get().0 + 1, self.1.get().1));
        self.0.read(into)
    }
}

impl<R: Seek> Seek for Counting<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.1.set((self.1.get().0, self.1.get().1 + 1));
        self.0.seek(to)
    }
}

/// Milliseconds that this thread has spent on a processor, whatever else the machine does meanwhile.
fn busy() -> f64 {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts them");
    said.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number of nanoseconds") / 1e6
}

fn timed(what: &str, mut read: impl FnMut()) {
    let took = (0..5).map(|_| {
        let start = busy();
        read();
        busy() - start
    });
    println!("    {what:24} {:.1} ms", took.fold(f64::MAX, f64::min));
}

fn reading(path: &str) -> candle_core::Result<()> {
    let calls = Cell::new((0, 0));
    Content::read(&mut Counting(File::open(path)?, &calls))?;
    println!("the header of the model: {} reads and {} seeks straight on the file", calls.get().0, calls.get().1);
    calls.set((0, 0));
    Content::read(&mut BufReader::new(Counting(File::open(path)?, &calls)))?;
    println!("    {} reads and {} seeks through a buffer of 8 KiB; processor time, best of five:", calls.get().0, calls.get().1);
    timed("straight on the file", || drop(Content::read(&mut File::open(path).unwrap()).unwrap()));
    for size in [8 << 10, 1 << 20] {
        let open = || BufReader::with_capacity(size, File::open(path).unwrap());
        timed(&format!("buffer of {} KiB", size >> 10), || drop(Content::read(&mut open()).unwrap()));
    }
    let mut bytes = vec![];
    File::open(path)?.take(2 << 20).read_to_end(&mut bytes)?;
    timed("from memory", || drop(Content::read(&mut Cursor::new(&bytes)).unwrap()));
    Ok(())
}

fn main() -> candle_core::Result<()> {
    panic::set_hook(Box::new(|_| ()));
    products();
    sums();
    not_numbers()?;
    importances()?;
    headers();
    wraps()?;
    if let Some(path) = std::env::args().nth(1) {
        matrix(&path)?;
        reading(&path)?;
    }
    Ok(())
}
