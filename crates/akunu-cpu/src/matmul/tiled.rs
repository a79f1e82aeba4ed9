//! Products of many vectors, where weights are worth being made into something that is multiplied faster: tiles for
//! the tile instructions, bytes, 16-bit integers or f32 for plain ones. What there is depends on the processor ([`Layout`]).

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use akunu_kernels::kernel::matmul::product::Product;

#[cfg(target_arch = "aarch64")]
use self::arm::Layout;
#[cfg(target_arch = "x86_64")]
use self::x86::Layout;
use super::blocked::{self, Blocks, Form};
use super::shape::Shape;
use super::weight::Weight;
use crate::call::Call;
use crate::isa::Isa;
use crate::kept::UntilBarrier;
use crate::part::Part;
use crate::pieces::Pieces;
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

/// Multiplies this part's groups of rows.
///
/// # Safety
/// The machine has the instructions of the form; x is laid out for it; `y` is the whole output.
unsafe fn blocked<F: Form>(
    part: &mut Part,
    form: F,
    shape: &Shape,
    (packed, blocks): (*const u8, Blocks),
    (y, mut outputs): (*mut f32, Outputs),
) {
    let bytes = blocked::scratch_bytes::<F>(blocks);
    let job = blocked::Job {
        form,
        shape,
        blocks,
        packed,
        scratch: part.scratch.take::<u8>(bytes).as_mut_ptr(),
        y,
    };
    while let Some(range) = outputs.take(part) {
        // SAFETY: as the caller says; each part has groups of its own.
        unsafe { job.run(range) };
    }
}

/// The outputs of a product: groups of rows of the weight, of which the parts take some at once.
struct Outputs {
    groups: usize,
    at_once: usize,
    pieces: Pieces,
}

impl Outputs {
    /// As many at once as share a reading of x, `most`, if there are enough for all parts.
    fn divide(part: &mut Part, (groups, most): (usize, usize)) -> Outputs {
        let at_once = (groups / part.count).clamp(1, most);
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
