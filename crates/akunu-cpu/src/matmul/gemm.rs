//! Products of many vectors, where weights are worth being made into something that is multiplied faster: tiles for
//! the tile instructions, bytes, 16-bit integers or f32 for plain ones. What there is depends on the processor ([`Gemm`]).

use akunu_kernels::kernel::matmul::product::Product;

#[cfg(target_arch = "aarch64")]
use super::arm::Gemm;
use super::blocked_gemm::outputs::Outputs;
use super::shape::Shape;
use super::weight::Weight;
#[cfg(target_arch = "x86_64")]
use super::x86::Gemm;
use crate::call::Call;
use crate::isa::Level;
use crate::kept::UntilBarrier;
use crate::part::Part;
use crate::place::Place;

/// Which x is laid out, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedX {
    /// The address of the first number.
    first: usize,
    shape: [usize; 3],
    gemm: Gemm,
}

/// Bytes of what a product makes of x.
pub(crate) fn packed_bytes(level: Level, exact: bool, product: &Product) -> usize {
    let (m, cols) = (product.m as usize, product.k as usize);
    Gemm::of((level, exact), product).map_or(0, |gemm| gemm.packed_bytes(m, cols))
}

/// Runs the product as a gemm; false when that is not worth it.
pub(crate) fn run(
    call: &Call,
    part: &mut Part,
    (weight, product): (&Weight, &Product),
    x: &[f32],
    y: Place,
) -> bool {
    let (m, cols) = (product.m as usize, product.k as usize);
    let Some(gemm) = Gemm::of((call.level, call.exact), product) else {
        return false;
    };
    let Some(packed) = call.panels.tiles(gemm.packed_bytes(m, cols)) else {
        return false;
    };
    let shape = Shape {
        m,
        n: product.n as usize,
        lda: product.lda as usize,
        ldc: product.ldc as usize,
        alpha: product.alpha,
        beta: product.beta,
    };
    pack(part, (gemm, cols), &shape, x, packed);
    // The whole of y, as far as the last of its rows goes.
    let y = y.pointer::<f32>(product.y_len());
    let outputs = Outputs::divide(part, gemm.groups(&shape));
    // SAFETY: `reach`: x is laid out, since all parts have passed the barrier, and `Place::pointer` compared the size of y;
    // `own`: each part takes rows of the weight, and so columns of y, of its own.
    unsafe { gemm.multiply(part, (weight, call.level), &shape, packed, (y, outputs)) };
    true
}

/// Lays x out, all parts together, unless the last product had the same x.
fn pack(part: &mut Part, (gemm, cols): (Gemm, usize), shape: &Shape, x: &[f32], packed: *mut u8) {
    let made_of = PackedX {
        first: x.as_ptr().addr(),
        shape: [shape.m, cols, shape.lda],
        gemm,
    };
    let section = part.section();
    let last = part
        .kept
        .get::<UntilBarrier<PackedX>>()
        .get(section)
        .copied();
    if last == Some(made_of) {
        return;
    }
    if last.is_some() {
        // Another part may still read what the last product had.
        part.wait();
    }
    // SAFETY: `level`: the gemm was chosen for the call's; `reach`: `Panels::tiles` compared the size; `own`: no part reads what
    // the last product had any more, nor this before the barrier below.
    unsafe { gemm.pack(part, cols, shape, x, packed) };
    part.wait();
    let packed: &mut UntilBarrier<PackedX> = part.kept.get();
    packed.set(Some(made_of), section);
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
                    assert_eq!(packed_bytes(level, exact, &of(FEW)), 0, "{isa}, {dtype}");
                    assert!(
                        packed_bytes(level, exact, &of(FEW + 1)) > 0,
                        "{isa}, {dtype}"
                    );
                }
            }
        }
    }
}
