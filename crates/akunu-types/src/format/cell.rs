//! Cells: the view of a quantised format that decoding and the CPU's panels share.
//!
//! A cell is 32 values of a block: a code each, and scales. A value is
//!
//! ```text
//! scale * number(code) + min
//! ```
//!
//! with a scale and a minimum for all of them or for each 16. The order of the operations is ggml's, so that values agree
//! with it to the bit.

use crate::e8m0::E8M0;
use half::f16;

/// Values of a cell.
pub const CELL: usize = 32;

/// 32 values of a block, with every code in a byte of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The code of each value.
    pub codes: [u8; CELL],
    /// The cell's scales, as [`Scales`] says: the bits of two f16, or one or two bytes in the first.
    pub scales: [u16; 2],
    /// The bits of the block's f16: the scale of its cells' scales, and that of their minima.
    pub of_block: [u16; 2],
}

/// What the cells of a format have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellFormat {
    /// Bits of a code.
    pub bits: u32,
    /// The numbers that codes stand for.
    pub codes: Codes,
    /// How scales are stored.
    pub scales: Scales,
}

/// The numbers that codes stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codes {
    /// The code less this.
    Above(i32),
    /// A place in this table. Codes have 4 bits.
    Table(Numbers),
}

/// Sixteen numbers that codes of 4 bits stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The numbers, before they are halved.
    pub of_codes: &'static [i8; 16],
    /// How often all of them are halved.
    pub halvings: u32,
}

impl Numbers {
    /// These numbers as they are.
    pub const fn whole(of_codes: &'static [i8; 16]) -> Numbers {
        Numbers {
            of_codes,
            halvings: 0,
        }
    }

    /// What 1 in the table stands for.
    pub const fn unit(self) -> f32 {
        f32::from_bits((127 - self.halvings) << 23)
    }
}

/// How the scales of a cell are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scales {
    /// An f16 scale.
    Plain,
    /// A power of two: the bits of an [`E8M0`], of which a half is the scale.
    Power,
    /// A signed 8-bit scale, times an f16 scale for each block.
    Signed,
    /// An f16 scale and an f16 minimum.
    WithMin,
    /// An 8-bit scale and an 8-bit minimum, times an f16 scale and an f16 scale of minima, which is
    /// subtracted, for each block.
    Grouped,
    /// A signed 8-bit scale for each 16 values, times an f16 scale for each block.
    Halves,
    /// A 4-bit scale (low) and a 4-bit minimum (high) for each 16 values, times an f16 scale and an f16 scale of
    /// minima, which is subtracted, for each block.
    HalvesWithMin,
}

impl Scales {
    /// Whether values have a minimum.
    pub const fn has_min(self) -> bool {
        match self {
            Scales::Plain | Scales::Power | Scales::Signed | Scales::Halves => false,
            Scales::WithMin | Scales::Grouped | Scales::HalvesWithMin => true,
        }
    }

    /// Whether the halves of a cell have separate scales.
    pub const fn has_halves(self) -> bool {
        match self {
            Scales::Plain | Scales::Power | Scales::Signed | Scales::WithMin | Scales::Grouped => {
                false
            }
            Scales::Halves | Scales::HalvesWithMin => true,
        }
    }

    /// The scale and the minimum (0 if there is none) of each half of a cell, from [`Cell::scales`] and
    /// [`Cell::of_block`].
    pub fn affine(self, of_cell: [u16; 2], of_block: [u16; 2]) -> [[f32; 2]; 2] {
        let half = |bits| f16::from_bits(bits).to_f32();
        let [d, dmin] = of_block.map(half);
        let bytes = of_cell[0].to_le_bytes();
        match self {
            Scales::Plain => [[half(of_cell[0]), 0.0]; 2],
            Scales::Power => [[E8M0::from_bits(bytes[0]).half(), 0.0]; 2],
            Scales::Signed => [[d * f32::from(bytes[0].cast_signed()), 0.0]; 2],
            Scales::WithMin => [of_cell.map(half); 2],
            Scales::Grouped => {
                let [scale, min] = bytes.map(f32::from);
                [[d * scale, -(dmin * min)]; 2]
            }
            Scales::Halves => bytes.map(|byte| [d * f32::from(byte.cast_signed()), 0.0]),
            Scales::HalvesWithMin => {
                bytes.map(|byte| [d * f32::from(byte & 15), -(dmin * f32::from(byte >> 4))])
            }
        }
    }
}

impl CellFormat {
    /// Writes the values of a cell.
    pub fn values(self, cell: &Cell, out: &mut [f32; CELL]) {
        match self.codes {
            Codes::Above(zero) => self.scaled(cell, out, |code| (i32::from(code) - zero) as f32),
            Codes::Table(numbers) => self.scaled(cell, out, |code| {
                f32::from(numbers.of_codes[usize::from(code & 15)]) * numbers.unit()
            }),
        }
    }

    fn scaled(self, cell: &Cell, out: &mut [f32; CELL], number: impl Fn(u8) -> f32) {
        let halves = self.scales.affine(cell.scales, cell.of_block);
        let codes = cell.codes.chunks_exact(CELL / 2);
        for ((out, codes), [scale, min]) in out.chunks_exact_mut(CELL / 2).zip(codes).zip(halves) {
            for (value, &code) in out.iter_mut().zip(codes) {
                *value = scale * number(code);
                // Without a minimum nothing is added: -0 would become 0.
                if self.scales.has_min() {
                    *value += min;
                }
            }
        }
    }
}
