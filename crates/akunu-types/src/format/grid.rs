//! Grids: codes of four or eight values at once, as a place in a table of points.
//!
//! Not every combination of magnitudes is a point, and signs are stored apart. As a cell, each value has a code of 4 bits of its own:
//! the level of its magnitude, and the sign in the highest bit. So whoever reads cells has a table of 16 numbers, as of iq4_nl.

#[rustfmt::skip]
pub(super) mod tables;

use super::CELL;
use super::cell::Numbers;

/// All grids, by the names that kernels call them.
pub const GRIDS: [(&str, &[u16]); 6] = [
    ("IQ1", &tables::IQ1),
    ("IQ2_XXS", &tables::IQ2_XXS),
    ("IQ2_XS", &tables::IQ2_XS),
    ("IQ2_S", &tables::IQ2_S),
    ("IQ3_XXS", &tables::IQ3_XXS),
    ("IQ3_S", &tables::IQ3_S),
];

/// The highest bit of a code: the number is negative.
const NEGATIVE: u8 = 8;

/// The numbers of the formats of 2 bits.
pub(super) const IQ2_NUMBERS: Numbers = Numbers {
    of_codes: &signed([8, 25, 43]),
    halvings: 3,
};
/// The numbers of the formats of 1 bit, -1, 0 and 1: with an eighth added, then with one subtracted.
pub(super) const IQ1_NUMBERS: Numbers = Numbers {
    of_codes: &[-7, 1, 9, 0, 0, 0, 0, 0, -9, -1, 7, 0, 0, 0, 0, 0],
    halvings: 3,
};

/// The table of codes with these magnitudes.
pub(super) const fn signed<const N: usize>(magnitudes: [i8; N]) -> [i8; 16] {
    let mut table = [0; 16];
    let mut level = 0;
    while level < N {
        table[level] = magnitudes[level];
        table[level + NEGATIVE as usize] = -magnitudes[level];
        level += 1;
    }
    table
}

/// The codes of a cell of points of four levels of 3 bits; bit i of the signs belongs to value i of a point.
pub(super) fn fours(point: impl Fn(usize) -> (u16, u8)) -> [u8; CELL] {
    codes::<4>(3, point)
}

/// The codes of a cell of points of eight levels of 2 bits; bit i of the signs belongs to value i of a point.
pub(super) fn eights(point: impl Fn(usize) -> (u16, u8)) -> [u8; CELL] {
    codes::<8>(2, point)
}

fn codes<const N: usize>(bits: usize, point: impl Fn(usize) -> (u16, u8)) -> [u8; CELL] {
    let mut codes = [0; CELL];
    for (at, codes) in codes.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        let (levels, signs) = point(at);
        for (i, code) in codes.iter_mut().enumerate() {
            let level = (levels >> (bits * i)) as u8 & ((1 << bits) - 1);
            *code = level | (signs >> i & 1) * NEGATIVE;
        }
    }
    codes
}

/// The signs of eight values of which the lowest seven bits are stored: an even number are negative.
pub(super) fn even(stored: u32) -> u8 {
    let seven = (stored & 127) as u8;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// All signs, or none.
pub(super) fn all_if(is_set: bool) -> u8 {
    if is_set { 255 } else { 0 }
}

/// 32 bits, the low half first.
pub(super) fn word([low, high]: [u16; 2]) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// `1 + 2 * scale` for both halves of a cell.
pub(super) fn odd_scales(scales: [u8; 2]) -> u16 {
    u16::from_le_bytes(scales.map(|scale| 1 + 2 * scale))
}
