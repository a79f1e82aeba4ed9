//! MLX's affine formats: `scale * q + bias`, one scale and one bias for each group of a row.
//!
//! A row is one little-endian stream of bits, value i in bits `i * BITS .. (i + 1) * BITS`. Scales and biases lie in arrays
//! of their own, so that there are no blocks.

use super::{CellFormat, Codes, Scales};

/// Ids of MLX's types, which GGUF does not have, are this plus their bits.
pub(crate) const FIRST_ID: u32 = 1000;

/// The cells of values of so many bits.
pub(crate) const fn cells(bits: u32) -> CellFormat {
    CellFormat {
        bits,
        codes: Codes::Above(0),
        scales: Scales::WithMin,
    }
}

/// Values of the smallest run that fills whole words of 4 bytes, and its bytes.
pub(crate) const fn run(bits: u32) -> (usize, usize) {
    let n_values = 32 >> bits.trailing_zeros();
    (n_values, n_values * bits as usize / 8)
}
