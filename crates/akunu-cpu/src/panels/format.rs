//! How weights lie in a panel.
//!
//! A panel is a group of [`ROWS`] rows of a weight matrix, cut into cells of [`CELL`] columns. What the
//! sixteen lanes of a vector need at once lies side by side, so that a product reads memory from front to
//! back and never shuffles.
//!
//! Quantised cells hold unsigned numbers `q`; a weight is `scale * (q - offset) + min`:
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
use akunu_types::block::QK_K;

/// Rows of a panel: the lanes of a 512-bit vector.
pub const ROWS: usize = 16;
/// Columns of a cell.
pub const CELL: usize = 32;
/// Cells of a super-block.
pub const SUPER: usize = QK_K / CELL;
/// Panels start at multiples of this many bytes.
const ALIGN: usize = 64;

/// The scales of a quantised cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scales {
    /// An f16 scale for each row.
    Plain,
    /// An f16 scale and an f16 minimum.
    WithMin,
    /// An 8-bit scale and an 8-bit minimum, times an f16 scale and an f16 scale of minima, which is
    /// subtracted, for each super-block.
    Grouped,
    /// An 8-bit scale for each 16 columns, times an f16 scale for each super-block.
    Halves,
    /// A 4-bit scale (low) and a 4-bit minimum (high) for each 16 columns, times an f16 scale and an f16 scale of
    /// minima, which is subtracted, for each super-block.
    HalvesWithMin,
}

impl Scales {
    /// Bytes of a cell's scales.
    pub const fn cell_bytes(self) -> usize {
        match self {
            Scales::WithMin => 4 * ROWS,
            _ => 2 * ROWS,
        }
    }

    /// Bytes of a super-block's scales.
    pub const fn super_bytes(self) -> usize {
        match self {
            Scales::Plain | Scales::WithMin => 0,
            Scales::Grouped | Scales::HalvesWithMin => 4 * ROWS,
            Scales::Halves => 2 * ROWS,
        }
    }
}

/// A quantised cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quant {
    /// 4, 5, 6 or 8.
    pub bits: u32,
    /// What is subtracted from a stored number.
    pub offset: i32,
    /// Its scales.
    pub scales: Scales,
}

impl Quant {
    const fn new(bits: u32, offset: i32, scales: Scales) -> Option<Quant> {
        Some(Quant {
            bits,
            offset,
            scales,
        })
    }

    /// The panels of a weight format; `None` for those that have none.
    pub const fn of(dtype: DType) -> Option<Quant> {
        match dtype {
            DType::Q4_0 => Quant::new(4, 8, Scales::Plain),
            DType::Q4_1 => Quant::new(4, 0, Scales::WithMin),
            DType::Q5_0 => Quant::new(5, 16, Scales::Plain),
            DType::Q5_1 => Quant::new(5, 0, Scales::WithMin),
            DType::Q8_0 => Quant::new(8, 128, Scales::Plain),
            DType::Q2_K => Quant::new(4, 0, Scales::HalvesWithMin),
            DType::Q3_K => Quant::new(4, 4, Scales::Halves),
            DType::Q4_K => Quant::new(4, 0, Scales::Grouped),
            DType::Q5_K => Quant::new(5, 0, Scales::Grouped),
            DType::Q6_K => Quant::new(6, 32, Scales::Halves),
            DType::MLX_Q2 | DType::MLX_Q3 | DType::MLX_Q4 => Quant::new(4, 0, Scales::WithMin),
            DType::MLX_Q5 => Quant::new(5, 0, Scales::WithMin),
            DType::MLX_Q6 => Quant::new(6, 0, Scales::WithMin),
            DType::MLX_Q8 => Quant::new(8, 0, Scales::WithMin),
            _ => None,
        }
    }

    /// Bytes of a panel with `cells` cells.
    pub const fn panel_bytes(self, cells: usize) -> usize {
        let supers = cells.div_ceil(SUPER) * self.scales.super_bytes();
        (cells * self.stride() + supers).next_multiple_of(ALIGN)
    }

    /// Bytes of a cell without its scales.
    pub const fn cell_bytes(self) -> usize {
        self.bits as usize * ROWS * CELL / 8
    }

    /// Bytes of a cell and its scales.
    pub const fn stride(self) -> usize {
        self.cell_bytes() + self.scales.cell_bytes()
    }

    /// Where the scales of the super-block of cell `c` begin.
    pub const fn super_at(self, c: usize) -> usize {
        c / SUPER * (SUPER * self.stride() + self.scales.super_bytes())
    }

    /// Where cell `c` begins.
    pub const fn cell_at(self, c: usize) -> usize {
        self.super_at(c) + self.scales.super_bytes() + c % SUPER * self.stride()
    }
}
