//! What is multiplied, by the format of the weights.

use crate::panels::format::{Quant, Scales};

/// How the numbers of weights and of vectors are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// As bf16.
    Floats,
    /// As bytes.
    Bytes,
}

impl Digits {
    /// The way for such weights; `None` for those of six bits, and for those with two scales in a cell.
    pub fn of(quant: Quant) -> Option<Digits> {
        match (quant.bits, quant.scales) {
            (_, Scales::Halves | Scales::HalvesWithMin) => None,
            (4 | 5, _) => Some(Digits::Floats),
            (8, _) => Some(Digits::Bytes),
            _ => None,
        }
    }
}
