//! Quantised numbers: from bytes to `f32` and back, in plain Rust.
//!
//! Each format reads as its formula, one file a format. Decoding is that
//! of `akunu_types::format`, and gives the bits that ggml's own Python package gives. Encoding gives ggml's
//! bytes for the plain formats. For the K formats many encodings are valid, and ours is the best that a
//! least-squares search finds. Given [importances](Importance) of the columns, every quantised format
//! but q8_0 searches, and weighs the errors by them.
//!
//! ```
//! use akunu_gguf::quant::{dequantise, quantise};
//! use akunu_types::DType;
//!
//! let weights: Vec<f32> = (0..64).map(|i| i as f32 / 64.0).collect();
//! let mut bytes = vec![0; DType::Q8_0.bytes_of(weights.len()).expect("whole blocks")];
//! quantise(DType::Q8_0, &weights, &mut bytes)?;
//!
//! let mut back = vec![0.0; 64];
//! dequantise(DType::Q8_0, &bytes, &mut back)?;
//! assert!((back[63] - weights[63]).abs() < 0.005);
//! # Ok::<(), akunu_gguf::quant::QuantError>(())
//! ```

mod affine;
mod block;
mod convert;
mod float;
mod importance;
mod iq4_nl;
mod iq4_xs;
mod line;
mod mxfp4;
mod packing;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod rounding;
mod scales;
mod sums;
mod symmetric;
mod weights;

pub use convert::{Source, convert};
pub use importance::Importance;

use akunu_types::DType;
use akunu_types::format as layout;
use block::{Encode, encode_all};
use half::{bf16, f16};
use thiserror::Error;

/// Why numbers could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum QuantError {
    /// The type has no codec here: integers, MLX's types, and ggml types that kernels cannot use.
    #[error("tensor type {dtype} cannot be converted; known are {}", known_names())]
    Unsupported {
        /// The type asked for.
        dtype: DType,
    },
    /// The number of values does not fill whole blocks.
    #[error("{n} values do not fill whole {dtype} blocks of {}", dtype.block_len())]
    PartialBlock {
        /// The type asked for.
        dtype: DType,
        /// Number of values given.
        n: usize,
    },
    /// The byte buffer has another size than the values need.
    #[error("{n} values of type {dtype} take {expected} bytes, the buffer has {found}")]
    ByteCount {
        /// The type asked for.
        dtype: DType,
        /// Number of values given.
        n: usize,
        /// Bytes that they take.
        expected: usize,
        /// Bytes of the buffer.
        found: usize,
    },
    /// An importance is no number, or negative.
    #[error("importance number {index} is {value}; it must be finite and not negative")]
    Importance {
        /// Position of the first such importance.
        index: usize,
        /// The importance.
        value: f32,
    },
    /// Importances do not fit the columns.
    #[error("there are {found} importances for {n} × {cols} columns")]
    ImportanceCount {
        /// Number of importances.
        found: usize,
        /// Number of matrices.
        n: usize,
        /// Columns of the matrices.
        cols: usize,
    },
    /// A value is NaN, infinite, or beyond what the type can hold.
    #[error("value {index} is {value}, which {dtype} cannot hold (at most ±{largest})")]
    OutOfRange {
        /// The type asked for.
        dtype: DType,
        /// Position of the first such value.
        index: usize,
        /// The value.
        value: f32,
        /// The largest magnitude that the type takes.
        largest: f32,
    },
}

/// Encodes values that begin at some position of a tensor.
type Encoder = fn(&[f32], Option<&Importance>, usize, &mut [u8]);

/// How a type is encoded: the largest magnitude that it takes, and its encoder.
struct Format {
    largest: f32,
    encode: Encoder,
}

const fn format<B: Encode<N>, const N: usize>() -> Format {
    Format {
        largest: B::LARGEST,
        encode: encode_all::<B, N>,
    }
}

/// Defines [`find`] from the table of all types: a format without a quantiser does not compile.
macro_rules! encoders {
    ($($name:ident => $kind:ident $spec:tt;)*) => {
        fn find(dtype: DType) -> Result<Format, QuantError> {
            match dtype {
                $(DType::$name => encoders!(@find $kind $spec),)*
            }
            .ok_or(QuantError::Unsupported { dtype })
        }
    };
    (@find number ($number:ty)) => { Some(format::<$number, 1>()) };
    (@find block ($block:ident)) => {
        Some(format::<layout::$block, { <layout::$block as layout::Block>::LEN }>())
    };
    (@find read $spec:tt) => { None };
    (@find mlx $spec:tt) => { None };
    (@find listed $spec:tt) => { None };
}

akunu_types::for_each_format!(encoders);

/// The types that [`quantise`], [`dequantise`] and [`convert`] take.
pub fn supported() -> impl Iterator<Item = DType> {
    DType::all().filter(|dtype| find(*dtype).is_ok())
}

fn known_names() -> String {
    let names: Vec<&str> = supported().map(DType::name).collect();
    names.join(", ")
}

/// Decodes `bytes` into `values`, whose length says how many there are.
pub fn dequantise(dtype: DType, bytes: &[u8], values: &mut [f32]) -> Result<(), QuantError> {
    let decode = dtype.decoder().ok_or(QuantError::Unsupported { dtype })?;
    check_sizes(dtype, values.len(), bytes.len())?;
    decode(bytes, values);
    Ok(())
}

/// Encodes `values` into `bytes`, which must have the size that [`DType::bytes_of`] says.
///
/// NaN, infinities and values beyond the type's range are refused: a single one would spoil its block
/// in silence.
pub fn quantise(dtype: DType, values: &[f32], bytes: &mut [u8]) -> Result<(), QuantError> {
    let part = Part {
        values,
        importance: None,
        first: 0,
    };
    quantise_part(dtype, part, bytes)
}

/// Values of a tensor, from position `first` on, and the importances of all its columns.
pub(crate) struct Part<'a> {
    pub values: &'a [f32],
    pub importance: Option<&'a Importance<'a>>,
    pub first: usize,
}

pub(crate) fn quantise_part(dtype: DType, part: Part, bytes: &mut [u8]) -> Result<(), QuantError> {
    let format = find(dtype)?;
    let values = part.values;
    check_sizes(dtype, values.len(), bytes.len())?;
    let largest = format.largest;
    let outside = |x: &f32| x.is_nan() || x.abs() > largest;
    if let Some(index) = values.iter().position(outside) {
        return Err(QuantError::OutOfRange {
            dtype,
            index: part.first + index,
            value: values[index],
            largest,
        });
    }
    (format.encode)(values, part.importance, part.first, bytes);
    Ok(())
}

fn check_sizes(dtype: DType, n: usize, found: usize) -> Result<(), QuantError> {
    match dtype.bytes_of(n) {
        None => Err(QuantError::PartialBlock { dtype, n }),
        Some(expected) if expected != found => Err(QuantError::ByteCount {
            dtype,
            n,
            expected,
            found,
        }),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_converted_is_refused_in_words() {
        let error = dequantise(DType::TQ1_0, &[0; 54], &mut [0.0; 256]).unwrap_err();
        assert!(error.to_string().contains("tq1_0"), "{error}");
        assert!(error.to_string().contains("q4_k"), "{error}");

        let error = quantise(DType::Q4_0, &[0.0; 33], &mut [0; 36]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "33 values do not fill whole q4_0 blocks of 32"
        );

        let error = dequantise(DType::Q4_K, &[0; 143], &mut [0.0; 256]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "256 values of type q4_k take 144 bytes, the buffer has 143"
        );
    }

    #[test]
    fn values_that_would_spoil_a_block_are_named() {
        for dtype in supported() {
            let n = 2 * dtype.block_len();
            let mut bytes = vec![0; dtype.bytes_of(n).unwrap()];
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut values = vec![0.5; n];
                values[n - 1] = bad;
                let error = quantise(dtype, &values, &mut bytes).unwrap_err();
                assert!(
                    error.to_string().contains(&format!("value {}", n - 1)),
                    "{error}"
                );
            }
        }
        let error = quantise(DType::F16, &[1e6], &mut [0; 2]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "value 0 is 1000000, which f16 cannot hold (at most ±65504)"
        );
    }

    #[test]
    fn no_values_are_no_bytes() {
        for dtype in supported() {
            quantise(dtype, &[], &mut []).unwrap();
            dequantise(dtype, &[], &mut []).unwrap();
        }
    }
}
