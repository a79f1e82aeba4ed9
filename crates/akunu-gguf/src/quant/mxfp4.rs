//! MXFP4: `x = 2^(e - 128) * numbers[q]`, q from 0 to 15.
//!
//! The numbers are 4-bit floats, doubled: at most 12. As ggml has it, the largest magnitude becomes at least 8 and less than 16, so that
//! its exponent is that of the block; what is beyond 12 is clipped. With importances the power of two is the best of this one and its
//! neighbours.

use super::block::Encode;
use super::packing::pack;
use super::weights::by_importance;
use akunu_types::E8M0;
use akunu_types::format::{BlockMXFP4, MXFP4_NUMBERS as NUMBERS};

/// Half-way between neighbouring numbers, which are those of codes 0 to 7.
const BETWEEN: [f32; 7] = {
    let mut between = [0.0; 7];
    let mut at = 0;
    while at < 7 {
        between[at] = (NUMBERS[at] as f32 + NUMBERS[at + 1] as f32) / 2.0;
        at += 1;
    }
    between
};

impl Encode<32> for BlockMXFP4 {
    const LARGEST: f32 = f32::MAX;

    fn encode(values: &[f32; 32], importance: Option<&[f32; 32]>) -> Self {
        let plain = exponent(values);
        let Some(importance) = importance else {
            return with_exponent(values, plain);
        };
        let weights = by_importance(importance);
        // The plain one first: of equally good answers, it wins.
        let tries = [plain, plain.saturating_sub(1), plain.saturating_add(1)];
        let blocks = tries.map(|e| with_exponent(values, e));
        let errors = blocks.map(|block| squared_error(&block, values, &weights));
        let best = (1..tries.len()).fold(
            0,
            |best, at| {
                if errors[at] < errors[best] { at } else { best }
            },
        );
        blocks[best]
    }
}

/// The exponent of the largest magnitude, less 2: the largest number is 6, or 1.5 * 2^2.
fn exponent(values: &[f32; 32]) -> u8 {
    let largest = values
        .iter()
        .fold(0.0, |largest: f32, x| largest.max(x.abs()));
    ((largest.to_bits() >> 23) as u8).saturating_sub(2)
}

fn with_exponent(values: &[f32; 32], e: u8) -> BlockMXFP4 {
    let e = E8M0::from_bits(e);
    let step = f64::from(e.half());
    let codes = values.map(|x| code((f64::from(x) / step) as f32));
    BlockMXFP4 {
        e,
        qs: pack::<4, 16, 16, 32>(&codes),
    }
}

/// The place of the number nearest to `x`, of two the smaller magnitude.
fn code(x: f32) -> u8 {
    let magnitude: u8 = BETWEEN
        .iter()
        .map(|&middle| u8::from(x.abs() > middle))
        .sum();
    let sign = u8::from(x < 0.0 && magnitude > 0);
    magnitude | sign << 3
}

fn squared_error(block: &BlockMXFP4, values: &[f32; 32], weights: &[f32; 32]) -> f32 {
    use akunu_types::format::Block;
    let mut found = [0.0; 32];
    BlockMXFP4::FORMAT.values(&block.cell(0), &mut found);
    let errors = values.iter().zip(found).map(|(x, found)| x - found);
    errors
        .zip(weights)
        .map(|(error, weight)| weight * error * error)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_nearest_number_and_ties_the_smaller_one() {
        for (at, &number) in NUMBERS.iter().enumerate().filter(|(at, _)| *at != 8) {
            assert_eq!(usize::from(code(number.into())), at);
        }
        assert_eq!(
            [0.5, 0.51, -0.5, -5.0, -5.1, 1e9].map(code),
            [0, 1, 0, 12, 13, 7]
        );
    }

    /// 7 is clipped to 6 where all count the same; where it alone counts, twice the scale has 8.
    #[test]
    fn a_value_that_alone_counts_is_not_clipped() {
        let mut values = [0.5; 32];
        values[3] = 7.9;
        let mut importance = [1e-3; 32];
        importance[3] = 1.0;
        assert_eq!(BlockMXFP4::encode(&values, None).e, E8M0::from_bits(127));
        let block = BlockMXFP4::encode(&values, Some(&importance));
        assert_eq!(block.e, E8M0::from_bits(128));
        assert_eq!(BlockMXFP4::encode(&[0.0; 32], None), BlockMXFP4::default());
    }
}
