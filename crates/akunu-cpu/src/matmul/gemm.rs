//! Products of many vectors, where weights are worth being made into something that is multiplied faster: tiles for
//! the tile instructions, bytes, 16-bit integers or f32 for plain ones. What there is depends on the processor ([`Gemm`]).

use std::ops::Range;

use akunu_kernels::kernel::matmul::product::Product;

#[cfg(target_arch = "aarch64")]
pub(super) use super::arm::Gemm;
use super::shape::Shape;
use super::vectors::{Origin, Vectors};
use super::weight::Weight;
#[cfg(target_arch = "x86_64")]
pub(super) use super::x86::Gemm;
use crate::call::Call;
use crate::isa::Level;
use crate::kept::UntilBarrier;
use crate::part::Part;
use crate::pieces::Pieces;
use crate::place::Place;

/// What the memory of laid out vectors holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// The vectors of a product, and for which gemm.
    Product(Origin, Gemm),
    /// Those of a product of experts, which no other product has.
    Experts,
}

/// Bytes of what a product makes of x.
pub(crate) fn packed_bytes(level: (Level, bool), product: &Product) -> usize {
    let (m, cols) = (product.m as usize, product.k as usize);
    let gemm = Gemm::of(level, product.weight.dtype, (m, cols));
    gemm.map_or(0, |gemm| gemm.packed_bytes(m, cols))
}

/// Runs the product as a gemm; false when that is not worth it.
pub(crate) fn run(
    call: &Call,
    part: &mut Part,
    (weight, product): (&Weight, &Product),
    x: &Vectors,
    y: Place,
) -> bool {
    let (m, cols) = (x.count(), x.len());
    let Some(gemm) = Gemm::of((call.level, call.exact), product.weight.dtype, (m, cols)) else {
        return false;
    };
    let Some(packed) = call.panels.tiles(gemm.packed_bytes(m, cols)) else {
        return false;
    };
    let shape = Shape {
        m,
        n: product.n as usize,
        ldc: product.ldc as usize,
        alpha: product.alpha,
        beta: product.beta,
    };
    pack(part, gemm, x, packed);
    // The whole of y, as far as the last of its rows goes.
    let y = y.pointer::<f32>(product.y_len());
    let mut outputs = Outputs::divide(part, gemm, &shape);
    while let Some(range) = outputs.take(part) {
        // SAFETY: `reach`: x is laid out, since all parts have passed the barrier, and `Place::pointer` compared the size of y;
        // `own`: each part takes rows of the weight, and so columns of y, of its own.
        unsafe {
            let weight = (weight, call.level);
            gemm.multiply(part.scratch, weight, (&shape, packed), y, range);
        }
    }
    true
}

/// Lays x out, all parts together, unless the last product had the same x.
fn pack(part: &mut Part, gemm: Gemm, x: &Vectors, packed: *mut u8) {
    if !claim(part, Contents::Product(x.origin(), gemm)) {
        return;
    }
    let range = part.range(gemm.pieces_of_x(x.count(), x.len()));
    // SAFETY: `level`: the gemm was chosen for the call's; `reach`: `Panels::tiles` compared the size; `own`: no part reads what
    // the last product had any more, nor this before the barrier below.
    unsafe { gemm.pack(x, range, packed) };
    part.wait();
}

/// Makes the memory of laid out vectors free for others; false if it holds these already. All parts must have written before any
/// reads.
pub(super) fn claim(part: &mut Part, contents: Contents) -> bool {
    let section = part.section();
    let last = part
        .kept
        .get::<UntilBarrier<Contents>>()
        .get(section)
        .copied();
    if last == Some(contents) && contents != Contents::Experts {
        return false;
    }
    if last.is_some() {
        // Another part may still read what the last product had.
        part.wait();
    }
    let kept: &mut UntilBarrier<Contents> = part.kept.get();
    kept.set(Some(contents), section);
    true
}

/// The outputs of a product: groups of rows of the weight, of which the parts take some at once.
struct Outputs {
    groups: usize,
    at_once: usize,
    pieces: Pieces,
}

impl Outputs {
    /// As many at once as share a reading of x, if there are enough for all parts.
    fn divide(part: &mut Part, gemm: Gemm, shape: &Shape) -> Outputs {
        let groups = shape.n.div_ceil(gemm.group());
        let at_once = (groups / part.count).clamp(1, gemm.groups_at_once(shape.m));
        Outputs {
            groups,
            at_once,
            pieces: part.divide(groups.div_ceil(at_once)),
        }
    }

    /// The next groups for this part.
    fn take(&mut self, part: &Part) -> Option<Range<usize>> {
        let piece = part.take(&mut self.pieces)?;
        Some(piece.start * self.at_once..self.groups.min(piece.end * self.at_once))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::matmul::batch::FEW;
    use crate::panels::format::Quant;
    use akunu_kernels::weight::WeightLayout;
    use akunu_types::DType;

    /// A level whose prompts went through the loop for a few vectors would only be slow.
    #[test]
    fn a_prompt_with_quantised_weights_is_laid_out_and_a_few_vectors_are_not() {
        let levels = Level::available().into_iter();
        for level in levels.filter(|level| level.isa() != Isa::Scalar) {
            let isa = level.isa();
            for dtype in DType::all().filter(|&dtype| Quant::of(dtype).is_some()) {
                let of = |m: usize| Product {
                    m: m as u32,
                    n: 32,
                    k: 256,
                    lda: 256,
                    ldc: 32,
                    alpha: 1.0,
                    beta: 0.0,
                    weight: WeightLayout::contiguous(dtype, 32, 256),
                };
                for exact in [false, true] {
                    let bytes = |m| packed_bytes((level, exact), &of(m));
                    assert_eq!(bytes(FEW), 0, "{isa}, {dtype}");
                    assert!(bytes(FEW + 1) > 0, "{isa}, {dtype}");
                }
            }
        }
    }
}
