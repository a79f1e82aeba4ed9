//! What holds for every block: encoding and decoding loses no more than a step.

use akunu_gguf::quant::{Importance, Source, convert, dequantise, quantise, supported};
use akunu_types::DType;
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// What an encoded value may be off by, as a share of its super-block's largest magnitude.
///
/// Half a step of the format, over the range it must span (twice the magnitude for the asymmetric
/// ones), plus 1/2048 for rounding an f16 scale. K formats add what rounding a group's scale and minimum
/// to few bits can shift its ends by; they may also clip a value to serve the others better, which the
/// factor of two allows for.
fn bound(dtype: DType) -> f32 {
    match dtype {
        DType::F32 => 0.0,
        DType::F16 => 1.0 / 2048.0,
        DType::BF16 => 1.0 / 256.0,
        // One end of the range lies a whole step inside: -8 to 7.
        DType::Q4_0 => 1.0 / 8.0 + 1.0 / 2048.0,
        DType::Q5_0 => 1.0 / 16.0 + 1.0 / 2048.0,
        DType::Q4_1 => 1.0 / 15.0 + 2.0 / 2048.0,
        DType::Q5_1 => 1.0 / 31.0 + 2.0 / 2048.0,
        DType::Q8_0 => 0.5 / 127.0 + 1.0 / 2048.0,
        // The largest gap is 24 of 113 steps; an extreme may be clipped to serve the others better.
        DType::IQ4_NL => 2.0 * (12.0 / 113.0 + 1.0 / 2048.0),
        DType::IQ4_XS => 2.0 * (12.0 / 113.0 + 1.0 / 32.0),
        // A value just below 8 becomes 6; between 4 and 6 the gap is 2.
        DType::MXFP4 => 1.0 / 4.0,
        DType::Q2_K => 2.0 * (1.0 / 3.0 + 1.0 / 15.0),
        DType::Q3_K => 2.0 * (1.0 / 4.0 + 1.0 / 32.0),
        DType::Q4_K => 2.0 * (1.0 / 15.0 + 1.0 / 63.0),
        DType::Q5_K => 2.0 * (1.0 / 31.0 + 1.0 / 63.0),
        DType::Q6_K => 2.0 * (1.0 / 32.0 + 1.0 / 128.0),
        other => panic!("{other} has no bound"),
    }
}

/// A value whose scale would be subnormal in f16 is off by steps of that scale instead: the smallest
/// f16 times the largest scale and integer of any format.
const SUBNORMAL_STEPS: f32 = 128.0 * 5.960_464_5e-8;

fn blocks_of_values() -> impl Strategy<Value = Vec<f32>> {
    let value = prop_oneof![8 => -1.0_f32..1.0, 1 => Just(0.0), 1 => -0.01_f32..0.01];
    (prop::collection::vec(value, 256), -14..14_i32).prop_map(|(values, exponent)| {
        let scale = 2.0_f32.powi(exponent);
        values.into_iter().map(|x| x * scale).collect()
    })
}

/// Numbers from 0 to 1.
fn random(seed: u32, n: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..n).map(|_| next()).collect()
}

/// Fails when an encoder does not look at importances. Q8_0 does not.
#[test]
fn importances_lower_the_error_where_it_matters() {
    let (rows, cols) = (16, 256);
    let values: Vec<f32> = random(1, rows * cols).iter().map(|x| x - 0.5).collect();
    // A few columns count far more than the others.
    let importances: Vec<f32> = random(2, cols).iter().map(|x| x.powi(9)).collect();
    let importance = Importance::new(&importances, [1, rows, cols]).unwrap();
    for dtype in supported().filter(|dtype| dtype.cells().is_some() && *dtype != DType::Q8_0) {
        let error = |importance| {
            let source = Source {
                importance,
                ..Source::new(DType::F32, bytemuck::cast_slice(&values))
            };
            let bytes = convert(source, values.len(), dtype, NonZeroUsize::MIN).unwrap();
            let mut found = vec![0.0; values.len()];
            dequantise(dtype, &bytes, &mut found).unwrap();
            let errors = values.iter().zip(&found).map(|(x, y)| (x - y) * (x - y));
            let weighted = errors.zip(importances.iter().cycle());
            weighted.map(|(error, weight)| error * weight).sum::<f32>()
        };
        let (with, without) = (error(Some(importance)), error(None));
        assert!(with < without, "{dtype}: {with:e}, without {without:e}");
    }
}

proptest! {
    #[test]
    fn a_value_comes_back_within_the_bound(values in blocks_of_values()) {
        let largest = values.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        for dtype in supported() {
            let mut bytes = vec![0; dtype.bytes_of(values.len()).unwrap()];
            quantise(dtype, &values, &mut bytes).unwrap();
            let mut back = vec![f32::NAN; values.len()];
            dequantise(dtype, &bytes, &mut back).unwrap();
            let limit = largest * bound(dtype) + SUBNORMAL_STEPS;
            for (i, (x, y)) in values.iter().zip(&back).enumerate() {
                prop_assert!((x - y).abs() <= limit, "{dtype}: value {i} is {x}, came back as {y}");
            }
        }
    }

    /// Fails on a panic, and on a scale that overflows f16.
    #[test]
    fn any_bytes_decode_and_any_finite_values_encode(
        bytes in prop::collection::vec(any::<u8>(), 1024),
        values in prop::collection::vec(-65504.0_f32..65504.0, 256),
    ) {
        for dtype in supported() {
            let size = dtype.bytes_of(256).unwrap();
            let mut decoded = vec![0.0; 256];
            dequantise(dtype, &bytes[..size], &mut decoded).unwrap();
            let mut encoded = vec![0; size];
            quantise(dtype, &values, &mut encoded).unwrap();
            dequantise(dtype, &encoded, &mut decoded).unwrap();
            prop_assert!(decoded.iter().all(|x| x.is_finite()), "{dtype}");
        }
    }
}
