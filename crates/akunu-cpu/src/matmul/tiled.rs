//! Products of many vectors, where weights are worth being made into something that is multiplied faster: tiles for
//! the tile instructions, bytes, 16-bit integers or f32 for plain ones. What there is depends on the processor ([`Layout`]).

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

use akunu_kernels::kernel::matmul::product::Product;

#[cfg(target_arch = "aarch64")]
use self::arm::Layout;
#[cfg(target_arch = "x86_64")]
use self::x86::Layout;
use super::outputs::Outputs;
use super::shape::Shape;
use super::weight::Weight;
use crate::call::Call;
use crate::isa::Isa;
use crate::kept::UntilBarrier;
use crate::part::Part;
use crate::place::Place;

/// Which x is laid out, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiled {
    /// The address of the first number.
    first: usize,
    shape: [usize; 3],
    layout: Layout,
}

/// Bytes of what a product makes of x.
pub(crate) fn bytes(isa: Isa, exact: bool, product: &Product) -> usize {
    let (m, cols) = (product.m as usize, product.k as usize);
    Layout::of((isa, exact), product).map_or(0, |layout| layout.bytes(m, cols))
}

/// Runs the product in one of these ways; false when none is worth it.
pub(crate) fn run(
    call: &Call,
    part: &mut Part,
    (weight, product): (&Weight, &Product),
    x: &[f32],
    y: Place,
) -> bool {
    let (m, cols) = (product.m as usize, product.k as usize);
    let Some(layout) = Layout::of((call.isa, call.exact), product) else {
        return false;
    };
    let Some(packed) = call.panels.tiles(layout.bytes(m, cols)) else {
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
    pack(part, (layout, cols), &shape, x, packed);
    // The whole of y, as far as the last of its rows goes.
    let [_, _, y_bytes] = product.bytes();
    let y = y.pointer::<f32>(y_bytes / size_of::<f32>());
    let outputs = Outputs::divide(part, layout.groups(&shape));
    // SAFETY: the machine has the instructions; x is laid out, since all parts have passed the barrier; each part
    // has rows of the weight, and so columns of y, of its own.
    unsafe { layout.multiply(part, (weight, call.isa), &shape, packed, (y, outputs)) };
    true
}

/// Lays x out, all parts together, unless the last product had the same x.
fn pack(
    part: &mut Part,
    (layout, cols): (Layout, usize),
    shape: &Shape,
    x: &[f32],
    packed: *mut u8,
) {
    let made_of = Tiled {
        first: x.as_ptr().addr(),
        shape: [shape.m, cols, shape.lda],
        layout,
    };
    let section = part.section();
    let last = part.kept.get::<UntilBarrier<Tiled>>().get(section).copied();
    if last == Some(made_of) {
        return;
    }
    if last.is_some() {
        // Another part may still read what the last product had.
        part.wait();
    }
    // SAFETY: the machine has the instructions, the memory has room, and each part has vectors of its own.
    unsafe { layout.pack(part, cols, shape, x, packed) };
    part.wait();
    let tiles: &mut UntilBarrier<Tiled> = part.kept.get();
    tiles.set(Some(made_of), section);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::batch::FEW;
    use crate::panels::format::Quant;
    use akunu_kernels::weight::WeightLayout;
    use akunu_types::DType;

    fn product(dtype: DType, m: usize) -> Product {
        Product {
            m: m as u32,
            n: 32,
            k: 256,
            lda: 256,
            ldc: 32,
            alpha: 1.0,
            beta: 0.0,
            weight: WeightLayout::contiguous(dtype, 32, 256),
        }
    }

    /// A level whose prompts went through the loop for a few vectors would only be slow.
    #[test]
    fn a_prompt_with_quantised_weights_is_laid_out_and_a_few_vectors_are_not() {
        let levels = Isa::available().into_iter();
        for isa in levels.filter(|&isa| isa != Isa::Scalar) {
            for dtype in DType::all().filter(|&dtype| Quant::of(dtype).is_some()) {
                for exact in [false, true] {
                    let bytes = |m: usize| bytes(isa, exact, &product(dtype, m));
                    assert_eq!(bytes(FEW), 0, "{isa}, {dtype}");
                    assert!(bytes(FEW + 1) > 0, "{isa}, {dtype}");
                }
            }
        }
    }

    /// The parity tests of `akunu-engine` run only once what this shows to be the same. Fails if another level or format gets
    /// a way that rounds activations further.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn only_amx_and_k_formats_round_activations_further() {
        for isa in [Isa::Avx2, Isa::AvxVnni, Isa::Avx512] {
            for dtype in DType::all().filter(|dtype| !dtype.name().ends_with("_k")) {
                for m in [1, FEW, FEW + 1, 48, 49, 100, 1000] {
                    let layout = |exact| Layout::of((isa, exact), &product(dtype, m));
                    assert_eq!(layout(true), layout(false), "{isa}, {dtype}, {m} rows");
                }
            }
        }
        let layout = |isa, dtype, exact| Layout::of((isa, exact), &product(dtype, 100));
        assert_ne!(
            layout(Isa::Avx2, DType::Q4_K, true),
            layout(Isa::Avx2, DType::Q4_K, false)
        );
    }
}
