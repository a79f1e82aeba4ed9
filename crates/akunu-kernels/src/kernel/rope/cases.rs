//! What the cases of kernels that turn have in common.

use super::*;
use crate::case::Rng;
use akunu_types::KvFormat;
use akunu_types::rope::divisors;

/// How far another executor may be from the twin.
///
/// With a table the angle is two correctly rounded operations, the same everywhere, and sine and
/// cosine are good to a few units in the last place: 1e-6, 1e-12 squared; a pool of halves may round a
/// value to the other neighbour, 2^-11 of it, in one of a thousand: 1e-9. Without a table MSL's `pow`
/// may be wrong by 16 units in the last place, 1e-6 of the angle: at position p, p * 1e-6 radians.
pub fn tolerance(last_position: u32, has_table: bool) -> f64 {
    let angle = if has_table {
        0.0
    } else {
        f64::from(last_position) * 1e-6
    };
    1e-9 + angle * angle
}

/// What a format adds to that. In 8 bits a number may be rounded to the other neighbour, 1/127 of the largest,
/// and a block's scale as a half: in a pool of thousands of numbers that stay, 1e-8 for each time.
pub fn rounding(format: KvFormat) -> f64 {
    match format {
        KvFormat::F16 => 0.0,
        KvFormat::Q8 => 1e-7,
    }
}

/// What a centre adds to that. Turned keys have numbers of 300 before it is subtracted, which a few units in the last place make
/// wrong by 7e-5; what remains is up to 1, in steps of 1/127, so that one number in a hundred is rounded to the other neighbour.
pub fn centring(has_centre: bool) -> f64 {
    if has_centre { 3e-6 } else { 0.0 }
}

/// The centres of a case, or a NaN that must not be read.
pub fn case_centres(rng: &mut Rng, has_centre: bool, n: u32) -> Vec<f32> {
    if has_centre {
        rng.floats(n as usize, 300.0)
    } else {
        vec![f32::NAN]
    }
}

/// Adds to the keys of a row of a case what makes them their centres and a remainder, once they are turned to a position.
pub fn move_to_centres(
    keys: &mut [f32],
    centres: &[f32],
    frequencies: &Frequencies,
    position: u32,
    pairing: Pairing,
) {
    let heads = keys.chunks_exact_mut(frequencies.head_dim);
    for (key, centre) in heads.zip(centres.chunks_exact(frequencies.head_dim)) {
        let turned_back = frequencies.turn(centre, -(position as f32), pairing);
        key.iter_mut().zip(turned_back).for_each(|(x, c)| *x += c);
    }
}

/// The table of a case: the divisors of base 10000, infinite for pairs that do not turn, or a NaN that must not be read.
pub fn case_table(has_table: bool, head_dim: u32, turned_dim: u32) -> Vec<f32> {
    if has_table {
        let mut table = divisors(10000.0, turned_dim, |d, _| 1.0 + d as f64 / 16.0);
        table.resize(head_dim as usize / 2, f32::INFINITY);
        table
    } else {
        vec![f32::NAN]
    }
}
