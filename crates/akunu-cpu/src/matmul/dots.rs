//! Products of a panel with a few vectors, for each level of instructions.

use super::activation::Activations;
use super::format::{CELL, Float, Format, Quant, ROWS};
use crate::isa::Isa;

/// Most vectors that share a reading of the weights.
pub const BATCH: usize = 4;

/// The sixteen products of a panel with each of up to [`BATCH`] vectors.
pub type Dots = [[f32; ROWS]; BATCH];

/// Quantised cells with quantised activations.
pub type QuantDots = unsafe fn(Quant, *const u8, usize, &[Activations]) -> Dots;
/// Pairs of floating-point columns with plain activations.
pub type FloatDots = unsafe fn(Float, *const u8, usize, &[&[f32]]) -> Dots;

/// The functions of a level of instructions.
#[derive(Clone, Copy)]
pub struct Functions {
    quant: QuantDots,
    float: FloatDots,
    quantise: unsafe fn(&mut Activations, &[f32], i32),
}

impl Functions {
    /// The functions for a level that the machine has; `None` for the level that only has twins.
    pub fn of(isa: Isa) -> Option<Functions> {
        match isa {
            Isa::Scalar => None,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Some(Functions {
                quant: super::avx2::quant_dots,
                float: super::avx2::float_dots,
                quantise: super::avx2::quantise,
            }),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Amx => Some(Functions {
                quant: super::avx512::quant_dots,
                float: super::avx512::float_dots,
                quantise: super::avx512::quantise,
            }),
            _ => Some(Functions {
                quant: super::portable::quant_dots,
                float: super::portable::float_dots,
                quantise: super::portable::quantise,
            }),
        }
    }

    /// Quantises a vector for weights that are stored with `offset`.
    pub fn quantise(&self, into: &mut Activations, x: &[f32], offset: i32) {
        // SAFETY: `of` was given a level that the machine has.
        unsafe { (self.quantise)(into, x, offset) }
    }

    /// Products of `cells` quantised cells of a panel with one to [`BATCH`] vectors.
    pub fn quant(&self, quant: Quant, panel: &[u8], cells: usize, x: &[Activations]) -> Dots {
        assert!((1..=BATCH).contains(&x.len()));
        assert!(panel.len() >= Format::Quant(quant).panel_bytes(cells));
        for x in x {
            assert!(x.has(cells));
        }
        // SAFETY: the machine has the instructions, and the sizes were just compared.
        unsafe { (self.quant)(quant, panel.as_ptr(), cells, x) }
    }

    /// Products of `cells` floating-point cells of a panel with one to [`BATCH`] vectors of as many numbers.
    pub fn float(&self, float: Float, panel: &[u8], cells: usize, x: &[&[f32]]) -> Dots {
        assert!((1..=BATCH).contains(&x.len()));
        assert!(panel.len() >= Format::Float(float).panel_bytes(cells));
        for x in x {
            assert!(x.len() >= cells * CELL);
        }
        // SAFETY: the machine has the instructions, and the sizes were just compared.
        unsafe { (self.float)(float, panel.as_ptr(), cells, x) }
    }
}
