//! Products with a few vectors, for each level of instructions.

use super::activation::Activations;
use super::batch::{BATCH, Dots};
use super::rows::Rows;
use crate::isa::Isa;
use crate::panels::format::Quant;
use crate::simd::{self, Lanes, WithLanes};

/// Quantised cells with quantised activations.
pub type QuantDots = unsafe fn(Quant, *const u8, usize, &[Activations]) -> Dots;
/// Floating-point rows with plain activations.
pub type FloatDots = unsafe fn(&Rows, usize, &[&[f32]]) -> Dots;
/// Quantises activations.
pub type Quantise = unsafe fn(&mut Activations, &[f32], Quant);

/// A call of [`FloatDots`].
struct RowDots<'a> {
    rows: &'a Rows<'a>,
    at: usize,
    x: &'a [&'a [f32]],
}

impl WithLanes for RowDots<'_> {
    type Output = Dots;

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) -> Dots {
        // SAFETY: by the caller's promise the CPU has the instructions.
        unsafe { self.rows.dots::<L>(self.at, self.x) }
    }
}

/// The functions of a level of instructions.
#[derive(Clone, Copy)]
pub struct Functions {
    quant: QuantDots,
    float: FloatDots,
    quantise: Quantise,
}

impl Functions {
    /// The functions for a level that the machine has; `None` for the level that only has twins.
    pub fn of(isa: Isa) -> Option<Functions> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni | Isa::Avx2 => Some(Functions {
                quant: super::avx2::quant_dots,
                float: |rows, at, x| {
                    // SAFETY: as the caller says.
                    unsafe { simd::avx2::run(RowDots { rows, at, x }) }
                },
                quantise: super::avx2::quantise,
            }),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Amx => Some(Functions {
                quant: super::avx512::quant_dots,
                float: |rows, at, x| {
                    // SAFETY: as the caller says.
                    unsafe { simd::avx512::run(RowDots { rows, at, x }) }
                },
                quantise: super::avx512::quantise,
            }),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => Some(Functions {
                quant: super::neon::quant_dots::<super::neon::Smull>,
                float: |rows, at, x| {
                    // SAFETY: as the caller says.
                    unsafe { simd::neon::run(RowDots { rows, at, x }) }
                },
                quantise: super::neon::quantise,
            }),
            #[cfg(target_arch = "aarch64")]
            Isa::Dotprod | Isa::I8mm => Some(Functions {
                quant: super::neon::quant_dots::<super::neon::Sdot>,
                float: |rows, at, x| {
                    // SAFETY: as the caller says.
                    unsafe { simd::neon::run(RowDots { rows, at, x }) }
                },
                quantise: super::neon::quantise,
            }),
            _ => None,
        }
    }

    /// Quantises a vector for such weights.
    pub fn quantise(&self, into: &mut Activations, x: &[f32], quant: Quant) {
        // SAFETY: `of` was given a level that the machine has.
        unsafe { (self.quantise)(into, x, quant) }
    }

    /// Products of `cells` quantised cells of a panel with one to [`BATCH`] vectors.
    pub fn quant(&self, quant: Quant, panel: &[u8], cells: usize, x: &[Activations]) -> Dots {
        assert!((1..=BATCH).contains(&x.len()));
        assert!(panel.len() >= quant.panel_bytes(cells));
        for x in x {
            assert!(x.has(cells));
        }
        // SAFETY: the machine has the instructions, and the sizes were just compared.
        unsafe { (self.quant)(quant, panel.as_ptr(), cells, x) }
    }

    /// Products of the rows of group `at` with one to [`BATCH`] vectors.
    pub fn float(&self, rows: &Rows, at: usize, x: &[&[f32]]) -> Dots {
        // SAFETY: the machine has the instructions.
        unsafe { (self.float)(rows, at, x) }
    }
}
