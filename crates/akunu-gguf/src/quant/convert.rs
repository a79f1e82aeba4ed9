//! Tensors from one type to another, on several threads.

use super::importance::Importance;
use super::{Part, QuantError, check_sizes, dequantise, find, quantise_part};
use akunu_types::DType;
use std::num::NonZeroUsize;

/// Values that a thread takes at a time: a multiple of every block length, and small enough to stay
/// in the cache between the two conversions.
const CHUNK: usize = 64 * 256;

/// Values of a tensor as they lie in a file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The type of the values.
    pub dtype: DType,
    /// Their bytes.
    pub bytes: &'a [u8],
    /// Position of the first of them in the tensor.
    pub first: usize,
    /// The importances of the whole tensor's columns, where they are known.
    pub importance: Option<Importance<'a>>,
}

impl<'a> Source<'a> {
    /// A whole tensor without importances.
    pub fn new(dtype: DType, bytes: &'a [u8]) -> Source<'a> {
        Source {
            dtype,
            bytes,
            first: 0,
            importance: None,
        }
    }
}

/// Converts `n` values to type `to`, on `threads` threads.
///
/// Equal types are copied. Otherwise the values go through `f32`, chunk by chunk, so that no more than a
/// chunk for each thread is ever held as `f32`.
pub fn convert(
    source: Source,
    n: usize,
    to: DType,
    threads: NonZeroUsize,
) -> Result<Vec<u8>, QuantError> {
    let from = source.dtype;
    find(from)?;
    find(to)?;
    check_sizes(from, n, source.bytes.len())?;
    if from == to {
        return Ok(source.bytes.to_vec());
    }
    if let Some(importance) = source.importance {
        importance.check(to)?;
    }
    let size = to
        .bytes_of(n)
        .ok_or(QuantError::PartialBlock { dtype: to, n })?;
    let mut out = vec![0; size];
    let chunks_each = n.div_ceil(CHUNK).div_ceil(threads.get()).max(1);
    let share = |dtype: DType| chunks_each * CHUNK / dtype.block_len() * dtype.block_bytes();
    std::thread::scope(|scope| {
        let shares = source.bytes.chunks(share(from));
        let workers: Vec<_> = shares
            .zip(out.chunks_mut(share(to)))
            .enumerate()
            .map(|(i, (bytes, out))| {
                let first = source.first + i * chunks_each * CHUNK;
                let part = Source {
                    bytes,
                    first,
                    ..source
                };
                scope.spawn(move || convert_share(part, to, out))
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    Ok(out)
}

/// One thread's part.
fn convert_share(source: Source, to: DType, out: &mut [u8]) -> Result<(), QuantError> {
    let from = source.dtype;
    let chunk_bytes = |dtype: DType| CHUNK / dtype.block_len() * dtype.block_bytes();
    let mut values = vec![0.0; CHUNK];
    let chunks = source.bytes.chunks(chunk_bytes(from));
    for (i, (bytes, out)) in chunks.zip(out.chunks_mut(chunk_bytes(to))).enumerate() {
        let n = bytes.len() / from.block_bytes() * from.block_len();
        dequantise(from, bytes, &mut values[..n])?;
        let part = Part {
            values: &values[..n],
            importance: source.importance.as_ref(),
            first: source.first + i * CHUNK,
        };
        quantise_part(to, part, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quant::quantise;

    fn threads(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).expect("not zero")
    }

    fn ramp(n: usize) -> Vec<f32> {
        (0..n)
            .map(|i| ((i * 7919) % 1009) as f32 / 500.0 - 1.0)
            .collect()
    }

    /// Chunks cut inside a block, or threads that write each other's share, would change the bytes.
    #[test]
    fn the_number_of_threads_does_not_change_the_bytes() {
        let values = ramp(5 * CHUNK + 512);
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let n = values.len();
        for to in [DType::Q4_0, DType::Q4_K, DType::F16] {
            let mut expected = vec![0; to.bytes_of(n).unwrap()];
            quantise(to, &values, &mut expected).unwrap();
            for count in [1, 2, 3, 64] {
                let found = convert(Source::new(DType::F32, bytes), n, to, threads(count)).unwrap();
                assert!(found == expected, "{to} on {count} threads");
            }
        }
    }

    #[test]
    fn a_bad_value_is_named_by_its_place_in_the_tensor() {
        let mut values = ramp(3 * CHUNK);
        let bad = 2 * CHUNK + 17;
        values[bad] = f32::NAN;
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        for count in [1, 3] {
            let error = convert(
                Source::new(DType::F32, bytes),
                values.len(),
                DType::Q8_0,
                threads(count),
            );
            assert!(
                matches!(error, Err(QuantError::OutOfRange { index, .. }) if index == bad),
                "{error:?}"
            );
        }
    }

    #[test]
    fn sizes_are_checked_before_anything_is_allocated() {
        let error = convert(
            Source::new(DType::F32, &[0; 12]),
            usize::MAX,
            DType::F16,
            threads(1),
        );
        assert!(
            matches!(error, Err(QuantError::PartialBlock { .. })),
            "{error:?}"
        );
        let error = convert(
            Source::new(DType::F32, &[0; 12]),
            3,
            DType::Q8_0,
            threads(1),
        );
        assert!(
            matches!(error, Err(QuantError::PartialBlock { .. })),
            "{error:?}"
        );
        let error = convert(Source::new(DType::F32, &[0; 12]), 4, DType::F16, threads(1));
        assert!(
            matches!(error, Err(QuantError::ByteCount { .. })),
            "{error:?}"
        );
    }

    #[test]
    fn equal_types_are_copied() {
        let bytes: Vec<u8> = (0..144).collect();
        let copy = convert(
            Source::new(DType::Q4_K, &bytes),
            256,
            DType::Q4_K,
            threads(2),
        )
        .unwrap();
        assert_eq!(copy, bytes);
    }
}
