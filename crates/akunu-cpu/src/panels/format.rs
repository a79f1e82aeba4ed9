//! How weights lie in a panel.
//!
//! A panel is a group of [`ROWS`] rows of a weight matrix, cut into cells of [`CELL`] columns. What the
//! sixteen lanes of a vector need at once lies side by side, so that a product reads memory from front to
//! back and never shuffles.
//!
//! Quantised cells hold unsigned numbers `q`; a weight is `scale * (q - offset) + min`, or `scale * table[q]`:
//!
//! ```text
//! byte 64 j + 4 n + i      column 4 j + i of row n              (8 bits)
//! byte 64 j + 4 n + i      low nibble:  column      4 j + i     (4, 5, 6 bits: j < 4)
//!                          high nibble: column 16 + 4 j + i
//! byte 256 + 4 n + i       bit j: the fifth bit of column 4 j + i of row n         (5 bits)
//! byte 256 + 64 h + 4 n + i
//!                          bits 2 j and 2 j + 1: the fifth and the sixth bit of column 16 h + 4 j + i   (6 bits)
//! ```
//!
//! So a shift and a mask bring the high bits of sixteen rows to their place.
//!
//! The scales of a cell follow it; those of a super-block of eight cells stand before the first. So a panel is
//! read from front to back.
//!
//! Floating-point weights have no panels: they are read as the file has them (`crate::matmul::float_gemv`).

use akunu_types::DType;
use akunu_types::format::{CellFormat, Codes, Numbers, QK_K};

pub use akunu_types::format::{CELL, Scales};

/// Rows of a panel: the lanes of a 512-bit vector.
pub const ROWS: usize = 16;
/// Cells of a super-block.
pub const SUPER: usize = QK_K / CELL;
/// By how much the numbers of a table are raised, to be bytes without a sign.
const TABLE_OFFSET: i32 = 128;
/// Panels start at multiples of this many bytes.
const ALIGN: usize = 64;

/// What codes of 4 bits stand for, where it is not the code itself.
pub type Table = Option<Numbers>;

/// How a quantised cell is laid out, and what its numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quant {
    /// 4, 5, 6 or 8.
    pub bits: u32,
    /// What is subtracted from a stored number; from one of a table, which is raised by it.
    pub offset: i32,
    /// The numbers of codes.
    pub table: Table,
    /// Its scales.
    pub scales: Scales,
}

impl Quant {
    /// The panels of such cells.
    pub const fn new(cells: CellFormat) -> Quant {
        let (offset, table) = match cells.codes {
            Codes::Above(offset) => (offset, None),
            Codes::Table(table) => (TABLE_OFFSET, Some(table)),
        };
        let bits = match cells.bits {
            ..=4 => 4,
            5 => 5,
            6 => 6,
            _ => 8,
        };
        Quant {
            bits,
            offset,
            table,
            scales: cells.scales,
        }
    }

    /// The panels of a weight format; `None` for those that have none.
    pub fn of(dtype: DType) -> Option<Quant> {
        let quant = Quant::new(dtype.cells()?);
        quant.can_be_multiplied().then_some(quant)
    }

    /// Whether the products have a form for such cells. Weights of others are multiplied by the twins.
    fn can_be_multiplied(self) -> bool {
        match self.scales {
            Scales::Plain => matches!(self.bits, 4 | 5 | 8),
            Scales::Power | Scales::Signed => self.table.is_some(),
            Scales::WithMin | Scales::Grouped | Scales::HalvesWithMin if self.table.is_some() => {
                false
            }
            Scales::WithMin => true,
            Scales::Grouped => matches!(self.bits, 4 | 5),
            Scales::Halves => matches!(self.bits, 4 | 6),
            Scales::HalvesWithMin => self.bits == 4,
        }
    }

    /// The number that a code stands for.
    pub fn number(self, code: u8) -> i32 {
        match self.table {
            Some(table) => i32::from(table.of_codes[usize::from(code & 15)]),
            None => i32::from(code) - self.offset,
        }
    }

    /// What a number counts.
    pub fn unit(self) -> f32 {
        self.table.map_or(1.0, Numbers::unit)
    }

    /// Whether its numbers have 8 bits when they are multiplied.
    #[cfg(target_arch = "aarch64")]
    pub const fn has_bytes(self) -> bool {
        self.bits == 8 || self.table.is_some()
    }

    /// Bytes of a cell's scales.
    pub const fn scale_bytes(self) -> usize {
        match self.scales {
            Scales::WithMin => 4 * ROWS,
            Scales::Power | Scales::Signed => ROWS,
            Scales::Plain | Scales::Grouped | Scales::Halves | Scales::HalvesWithMin => 2 * ROWS,
        }
    }

    /// Bytes of a super-block's scales.
    pub const fn super_bytes(self) -> usize {
        match self.scales {
            Scales::Plain | Scales::Power | Scales::WithMin => 0,
            Scales::Grouped | Scales::HalvesWithMin => 4 * ROWS,
            Scales::Signed | Scales::Halves => 2 * ROWS,
        }
    }

    /// Bytes of a panel with `cells` cells.
    pub const fn panel_bytes(self, cells: usize) -> usize {
        let supers = cells.div_ceil(SUPER) * self.super_bytes();
        (cells * self.stride() + supers).next_multiple_of(ALIGN)
    }

    /// Bytes of a cell without its scales.
    pub const fn cell_bytes(self) -> usize {
        self.bits as usize * ROWS * CELL / 8
    }

    /// Bytes of a cell and its scales.
    pub const fn stride(self) -> usize {
        self.cell_bytes() + self.scale_bytes()
    }

    /// Where the scales of the super-block of cell `c` begin.
    pub const fn super_at(self, c: usize) -> usize {
        c / SUPER * (SUPER * self.stride() + self.super_bytes())
    }

    /// Where cell `c` begins.
    pub const fn cell_at(self, c: usize) -> usize {
        self.super_at(c) + self.super_bytes() + c % SUPER * self.stride()
    }
}
