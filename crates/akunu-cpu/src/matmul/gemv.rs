//! Products with a few vectors, for each level of instructions.

use std::ops::Range;

use super::activation::Activations;
#[cfg(target_arch = "aarch64")]
use super::arm::neon;
use super::batch::{BATCH, Dots};
use super::float_gemv::Rows;
#[cfg(target_arch = "x86_64")]
use super::x86::{avx2, avx512};
use crate::isa::{Isa, Level};
use crate::panels::format::Quant;
use crate::simd::{self, Lanes, WithLanes};

/// Multiplies a panel: its format, where it lies, how many cells it has, the vectors.
type PanelGemv = unsafe fn(Quant, *const u8, usize, &[Activations]) -> Dots;
/// Quantises activations for such panels.
type Quantise = unsafe fn(&mut Activations, &[f32], Quant);

/// Rows of a group of floating-point rows on their way to products.
struct RowsGemv<'a> {
    rows: &'a Rows<'a>,
    at: (usize, Range<usize>),
    x: &'a [&'a [f32]],
}

impl WithLanes for RowsGemv<'_> {
    type Output = Dots;

    #[inline(always)]
    fn run<L: Lanes>(self) -> Dots {
        self.rows.dots::<L>(self.at, self.x)
    }
}

/// The functions of a level of instructions.
#[derive(Clone, Copy)]
pub struct Gemv {
    level: Level,
    panel: PanelGemv,
    quantise: Quantise,
}

impl Gemv {
    /// The functions of a level; `None` for the one that only has twins.
    pub fn of(level: Level) -> Option<Gemv> {
        let (panel, quantise): (PanelGemv, Quantise) = match level.isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni | Isa::Avx2 => (avx2::gemv::panel_gemv, avx2::gemv::quantise),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Amx => (avx512::gemv::panel_gemv, avx512::gemv::quantise),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => (
                neon::gemv::panel_gemv::<neon::gemv::Smull>,
                neon::gemv::quantise,
            ),
            #[cfg(target_arch = "aarch64")]
            Isa::Dotprod | Isa::I8mm => (
                neon::gemv::panel_gemv::<neon::gemv::Sdot>,
                neon::gemv::quantise,
            ),
            _ => return None,
        };
        Some(Gemv {
            level,
            panel,
            quantise,
        })
    }

    /// Quantises a vector for such weights.
    pub fn quantise(&self, into: &mut Activations, x: &[f32], quant: Quant) {
        // SAFETY: `level`: the function is that of `self.level`.
        unsafe { (self.quantise)(into, x, quant) }
    }

    /// Products of `cells` quantised cells of a panel with one to [`BATCH`] vectors.
    pub fn panel(&self, quant: Quant, panel: &[u8], cells: usize, x: &[Activations]) -> Dots {
        assert!((1..=BATCH).contains(&x.len()));
        assert!(panel.len() >= quant.panel_bytes(cells));
        for x in x {
            assert!(x.has(cells));
        }
        // SAFETY: `level`: the function is that of `self.level`; `reach`: the sizes were just compared.
        unsafe { (self.panel)(quant, panel.as_ptr(), cells, x) }
    }

    /// Products of some rows of a group, as [`Rows::dots`] takes them, with one to [`BATCH`] vectors.
    pub fn rows(&self, rows: &Rows, at: (usize, Range<usize>), x: &[&[f32]]) -> Dots {
        simd::run(self.level, RowsGemv { rows, at, x })
    }
}
