//! Our codecs against ggml's own code: decoding and the plain encoders to the bit, the encoders that search by
//! their error.
//!
//! `fixtures/make_quant_fixtures.py` wrote the expected figures. It builds its inputs as this file does,
//! from the same generator with exact arithmetic.

use akunu_gguf::GgufFile;
use akunu_gguf::quant::{dequantise, quantise};
use akunu_types::format::{Block, WithBlock};
use akunu_types::{DType, Scalar};
use half::f16;
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    dequantise: Vec<DecodeRow>,
    quantise: Vec<EncodeRow>,
    errors: Vec<ErrorRow>,
}

/// Hashes of the decoded values of random blocks.
#[derive(Deserialize)]
struct DecodeRow {
    dtype: String,
    seed: u64,
    blocks: usize,
    random: String,
    special_scales: String,
}

/// The hash of an input's encoded bytes.
#[derive(Deserialize)]
struct EncodeRow {
    dtype: String,
    input: String,
    hash: String,
}

/// What [`error`] is for ggml's encoder, of a generated input or a tensor of SmolLM2.
#[derive(Deserialize)]
struct ErrorRow {
    dtype: String,
    input: Option<String>,
    tensor: Option<String>,
    peer: f64,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../fixtures/quant.json")).expect("the fixture is JSON")
}

fn dtype(name: &str) -> DType {
    DType::from_name(name).expect("the fixture names known types")
}

/// xorshift64 with shifts 13, 7, 17.
struct XorShift(u64);

impl XorShift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// FNV-1a over 64 bits.
fn fnv(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The hash of the values' bits, every NaN as the same one.
fn hash_of_values(values: &[f32]) -> String {
    let canonical = |x: &f32| if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() };
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|x| canonical(x).to_le_bytes())
        .collect();
    fnv(&bytes)
}

/// Zero, minus zero, subnormal, smallest normal, one, largest, infinite, NaN, each with both signs.
const SPECIAL: [u16; 16] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x7bff, 0xfbff,
    0x7c00, 0xfc00, 0x7e00, 0xfe00,
];

/// Where the f16 scales of a block lie.
struct ScaleOffsets;

impl WithBlock for ScaleOffsets {
    type Out = Vec<usize>;

    fn run<B: Block>(self) -> Vec<usize> {
        let scales = B::LAYOUT.fields.iter();
        let scales = scales.filter(|field| field.scalar == Scalar::F16);
        scales.map(|field| field.offset).collect()
    }
}

/// Block i gets special scale number i, and its second scale is number i / 16.
fn set_special_scales(dtype: DType, bytes: &mut [u8]) {
    let offsets = dtype.with_block(ScaleOffsets).unwrap_or_default();
    for (i, block) in bytes.chunks_exact_mut(dtype.block_bytes()).enumerate() {
        for (field, &at) in offsets.iter().enumerate() {
            let number = if field == 0 { i } else { i / 16 };
            block[at..at + 2].copy_from_slice(&SPECIAL[number % 16].to_le_bytes());
        }
    }
}

/// Sums of 12 numbers of 16 bits, centred and divided by 2^16: about normal, and exact in f32.
fn gaussian(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = XorShift(seed);
    let mut value = || {
        let words = [rng.next(), rng.next(), rng.next()];
        let total: u64 = words
            .iter()
            .flat_map(|word| [0, 16, 32, 48].map(|shift| (word >> shift) & 0xffff))
            .sum();
        (total as f32 - 6.0 * 65536.0) / 65536.0
    };
    (0..n).map(|_| value()).collect()
}

fn input(kind: &str) -> Vec<f32> {
    let base = gaussian(99, 16384);
    let shape = |f: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
        base.iter().enumerate().map(|(i, &g)| f(i, g)).collect()
    };
    match kind {
        "gaussian" => base,
        "small" => shape(&|_, g| g / 64.0),
        "tiny" => shape(&|_, g| g / 1_048_576.0),
        "large" => shape(&|_, g| g * 4096.0),
        "positive" => shape(&|_, g| g.abs()),
        "shifted" => shape(&|_, g| g + 8.0),
        "spiky" => shape(&|i, g| if i % 37 == 0 { g * 64.0 } else { g }),
        "ties" => shape(&|_, g| (g * 4.0).floor().clamp(-8.0, 8.0) / 2.0),
        "constant" => shape(&|_, _| -0.75),
        "zero" => shape(&|_, _| 0.0),
        other => panic!("the fixture has an input {other} that this test cannot make"),
    }
}

fn decoded(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / dtype.block_bytes() * dtype.block_len()];
    dequantise(dtype, bytes, &mut values).unwrap();
    values
}

fn encoded(dtype: DType, values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; dtype.bytes_of(values.len()).unwrap()];
    quantise(dtype, values, &mut bytes).unwrap();
    bytes
}

/// Fails when a bit is taken from the wrong place, or a product is rounded in another order.
#[test]
fn decoding_random_blocks_agrees_to_the_bit() {
    let rows = fixture().dequantise;
    let decoded_here = DType::all().filter(|dtype| dtype.decoder().is_some());
    assert_eq!(rows.len(), decoded_here.count(), "one row a format");
    for row in rows {
        let dtype = dtype(&row.dtype);
        let mut rng = XorShift(row.seed);
        let n = row.blocks * dtype.block_bytes();
        let mut bytes: Vec<u8> = (0..n).map(|_| (rng.next() >> 56) as u8).collect();
        assert_eq!(
            hash_of_values(&decoded(dtype, &bytes)),
            row.random,
            "{dtype}"
        );
        set_special_scales(dtype, &mut bytes);
        let found = hash_of_values(&decoded(dtype, &bytes));
        assert_eq!(found, row.special_scales, "{dtype}, special scales");
    }
}

/// Fails when a scale is computed or a tie is rounded in another way.
#[test]
fn encoding_plain_formats_agrees_to_the_bit() {
    for row in fixture().quantise {
        let dtype = dtype(&row.dtype);
        let found = fnv(&encoded(dtype, &input(&row.input)));
        assert_eq!(found, row.hash, "{dtype} of {}", row.input);
    }
}

/// A misaligned buffer must decode to the same values.
#[test]
fn blocks_may_lie_at_odd_addresses() {
    let bytes = encoded(DType::Q6_K, &input("gaussian"));
    let mut shifted = vec![0];
    shifted.extend_from_slice(&bytes);
    assert_eq!(
        decoded(DType::Q6_K, &shifted[1..]),
        decoded(DType::Q6_K, &bytes)
    );
}

fn smollm2_tensor(name: &str) -> Vec<f32> {
    let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let file = GgufFile::open(path).unwrap();
    let tensor = file.tensor(name).unwrap();
    decoded(tensor.info.dtype, tensor.bytes)
}

/// How much the errors of a block's values count: what the encoders minimise. Super-blocks with minima
/// give large values more, `sqrt(σ² + x²)` with `σ²` the mean square, and IQ4_NL and IQ4_XS `x²`, scaled to a mean of 1.
fn weights(dtype: DType, block: &[f32]) -> Vec<f64> {
    let with_minima = matches!(dtype, DType::Q2_K | DType::Q4_K | DType::Q5_K);
    let by_square = matches!(dtype, DType::IQ4_NL | DType::IQ4_XS);
    let squares = block.iter().map(|&x| f64::from(x).powi(2));
    let sigma2 = squares.clone().sum::<f64>() / block.len() as f64;
    if !(with_minima || by_square) || sigma2 == 0.0 {
        return vec![1.0; block.len()];
    }
    let weight = |square: f64| {
        if by_square {
            square
        } else {
            (sigma2 + square).sqrt()
        }
    };
    let weights: Vec<f64> = squares.map(weight).collect();
    let mean = weights.iter().sum::<f64>() / block.len() as f64;
    weights.iter().map(|weight| weight / mean).collect()
}

/// The root of the weighted mean square error of `decoded`.
fn error(dtype: DType, values: &[f32], decoded: &[f32]) -> f64 {
    let weights = values
        .chunks_exact(dtype.block_len())
        .flat_map(|block| weights(dtype, block));
    let squares = values
        .iter()
        .zip(decoded)
        .map(|(x, y)| f64::from(x - y).powi(2));
    let total: f64 = weights.zip(squares).map(|(w, square)| w * square).sum();
    (total / values.len() as f64).sqrt()
}

/// Fails when a search misses a better encoding that ggml's finds. Both encoders' errors are weighted as
/// ours weighs them.
#[test]
fn searching_encoders_are_no_worse_than_ggml() {
    let mut worse = Vec::new();
    for row in fixture().errors {
        let dtype = dtype(&row.dtype);
        let (what, values) = match (&row.input, &row.tensor) {
            (Some(kind), _) => (kind, input(kind)),
            (None, Some(name)) => (name, smollm2_tensor(name)),
            (None, None) => panic!("a row names an input or a tensor"),
        };
        let back = decoded(dtype, &encoded(dtype, &values));
        let ours = error(dtype, &values, &back);
        println!("{dtype} {what}: {ours:.3e}, ggml {:.3e}", row.peer);
        if ours > row.peer {
            worse.push(format!("{dtype} {what}: {ours:.4e} > {:.4e}", row.peer));
        }
    }
    assert!(worse.is_empty(), "{worse:#?}");
}

/// `f16` scales that would round to zero must still reach small values.
#[test]
fn values_near_the_smallest_f16_survive() {
    let smallest = f16::from_bits(1).to_f32();
    for dtype in [
        DType::Q2_K,
        DType::Q3_K,
        DType::Q4_K,
        DType::Q5_K,
        DType::Q6_K,
    ] {
        let values = vec![-smallest; 256];
        let back = decoded(dtype, &encoded(dtype, &values));
        assert_eq!(back, values, "{dtype}");
    }
}
