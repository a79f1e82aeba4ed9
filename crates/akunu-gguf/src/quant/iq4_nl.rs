//! IQ4_NL: `x = d * numbers[q]`, q from 0 to 15.
//!
//! The numbers lie closer around zero, where most weights are. Encoding looks for the smallest weighted sum of squared
//! errors: the extreme becomes the first or the last number, or one a little beside it, which gives a step. Round every
//! value to the nearest of the numbers `v` at this step; the best step for them is `Σwxv / Σwv²`, and it removes
//! `(Σwxv)² / Σwv²` of the error. Keep the step that removes most. Errors of large values count more, by `x²`, unless there are
//! importances.

use super::block::Encode;
use super::packing::pack;
use super::rounding::inverse;
use super::symmetric::{Numbers, best_step};
use super::weights::{by_importance, by_square};
use akunu_types::format::{BlockIQ4NL, IQ4_NL_NUMBERS as NUMBERS};
use half::f16;

/// How far the extreme may lie from an end of the table.
const BESIDE: i8 = 7;

/// Half-way between neighbouring numbers.
const BETWEEN: [f32; 15] = {
    let mut between = [0.0; 15];
    let mut at = 0;
    while at < 15 {
        between[at] = (NUMBERS[at] as f32 + NUMBERS[at + 1] as f32) / 2.0;
        at += 1;
    }
    between
};

impl Encode<32> for BlockIQ4NL {
    fn encode(values: &[f32; 32], importance: Option<&[f32; 32]>) -> Self {
        let weights = importance.map_or_else(|| by_square(values), by_importance);
        let d = f16::from_f32(best_step(values, &weights, Table));
        let per_step = inverse(d.to_f32());
        BlockIQ4NL {
            d,
            qs: pack::<4, 16, 16, 32>(&values.map(|x| code(x * per_step))),
        }
    }
}

/// The numbers of the table.
#[derive(Clone, Copy)]
pub(super) struct Table;

impl Numbers for Table {
    #[inline(always)]
    fn nearest(self, x: f32) -> f32 {
        let halves = 2.0 * (x - f32::from(NUMBERS[0]));
        NEAREST[(halves.clamp(0.0, 480.0) as usize).min(480)]
    }

    fn per_step(self, extreme: f32) -> impl Iterator<Item = f32> {
        let ends = [NUMBERS[0], NUMBERS[15]].map(f32::from);
        (-BESIDE..=BESIDE)
            .flat_map(move |beside| ends.map(|end| (end + f32::from(beside)) * inverse(extreme)))
    }
}

/// The place of the number nearest to `x`, of two the larger one.
#[inline(always)]
pub(super) fn code(x: f32) -> u8 {
    BETWEEN.iter().map(|&middle| u8::from(x >= middle)).sum()
}

/// The numbers nearest to all multiples of a half from the first number to the last. What lies half-way between two numbers is
/// such a multiple.
const NEAREST: [f32; 481] = {
    let mut nearest = [0.0; 481];
    let (mut at, mut code) = (0, 0);
    while at < nearest.len() {
        if code < BETWEEN.len() && NUMBERS[0] as f32 + at as f32 / 2.0 >= BETWEEN[code] {
            code += 1;
        }
        nearest[at] = NUMBERS[code] as f32;
        at += 1;
    }
    nearest
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_nearest_number() {
        for (at, &exact) in NUMBERS.iter().enumerate() {
            assert_eq!(usize::from(code(f32::from(exact))), at);
            assert_eq!(Table.nearest(f32::from(exact)), f32::from(exact));
        }
        assert_eq!([-1e9, -4.6, -4.5, 1e9].map(code), [0, 7, 8, 15]);
        assert_eq!(
            [-1e9, -4.6, -4.5, 1e9].map(|x| Table.nearest(x)),
            [-127.0, -10.0, 1.0, 113.0]
        );
    }

    /// Fails when only one end of the table is tried: the extreme is the last number here, not the first.
    #[test]
    fn numbers_of_the_table_are_stored_exactly() {
        for step in [0.5, -0.25] {
            let values: [f32; 32] = std::array::from_fn(|i| step * f32::from(NUMBERS[1 + i % 15]));
            let block = BlockIQ4NL::encode(&values, None);
            assert_eq!(block.d.to_f32(), step);
            assert_eq!(block, BlockIQ4NL::encode(&values, Some(&[1.0; 32])));
        }
        assert_eq!(BlockIQ4NL::encode(&[0.0; 32], None).d, f16::ZERO);
    }
}
