//! The way of 64-bit ARM.

use akunu_kernels::kernel::matmul::product::Product;

use crate::isa::Isa;
use crate::matmul::batch::FEW;
use crate::matmul::blocked::{Blocks, PANELS};
use crate::matmul::neon::many::{self, Many};
use crate::matmul::outputs::{Outputs, multiply_blocked};
use crate::matmul::rows::Float;
use crate::matmul::shape::Shape;
use crate::matmul::weight::Weight;
use crate::panels::format::ROWS;
use crate::part::Part;

/// How x is laid out for all parts: as 16-bit integers in the order of a level, for panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    isa: Isa,
    blocks: Blocks,
}

impl Layout {
    /// The layout for a product, which is exact whether that is wanted or not; `None` with few vectors, and for floating-point
    /// weights.
    pub fn of((isa, _): (Isa, bool), product: &Product) -> Option<Layout> {
        let m = product.m as usize;
        let fits = isa != Isa::Scalar && Float::of(product.weight.dtype).is_none() && m > FEW;
        let blocks = Blocks::of(m, isa);
        fits.then_some(Layout { isa, blocks })
    }

    /// Bytes that x takes.
    pub fn bytes(self, m: usize, cols: usize) -> usize {
        many::packed_bytes(m, cols)
    }

    /// How many groups of outputs there are, and how many of them share a reading of x.
    pub fn groups(self, shape: &Shape) -> (usize, usize) {
        (shape.n.div_ceil(ROWS), PANELS)
    }

    /// Lays this part's share of x out.
    ///
    /// # Safety
    /// The machine has the instructions, `packed` has room for [`Layout::bytes`], and each part has vectors of its own.
    pub unsafe fn pack(self, part: &Part, cols: usize, shape: &Shape, x: &[f32], packed: *mut u8) {
        let range = part.range(self.blocks.count());
        // SAFETY: as the caller says.
        unsafe { many::packing(self.isa)(cols, (shape, self.blocks), x, range, packed) }
    }

    /// Multiplies this part's groups of rows.
    ///
    /// # Safety
    /// The machine has the instructions; x is laid out at `packed`; `y` is the whole output.
    pub unsafe fn multiply(
        self,
        part: &mut Part,
        (weight, isa): (&Weight, Isa),
        shape: &Shape,
        packed: *const u8,
        (y, outputs): (*mut f32, Outputs),
    ) {
        let Weight::Panels(matrix) = weight else {
            unreachable!("rows of floats have no layout");
        };
        let many = Many { matrix, isa };
        // SAFETY: as the caller says.
        unsafe { multiply_blocked(part, many, shape, (packed, self.blocks), (y, outputs)) }
    }
}
