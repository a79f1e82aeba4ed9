//! Kernels that treat each element by itself. Parts share the elements in whole cache lines.

use akunu_kernels::kernel::activation::{activate, gate};
use akunu_kernels::kernel::attention::logit_softcap;
use akunu_kernels::kernel::common::{bias_add, copy, copy_pieces, gather_rows};
use akunu_kernels::kernel::convert::halves;
use akunu_kernels::kernel::embedding::embedding_scale;
use std::marker::PhantomData;

use akunu_types::params::{
    CopyPiecesParams, ElementwiseParams, EmbeddingScaleParams, GatherRowsParams,
    LogitSoftcapParams, MatrixParams,
};

use super::norm::add;
use super::stored::round_halves;
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::simd::{self, Lanes, gelu, silu, tanh};

/// Elements that are not worth sharing: a kilobyte or four.
const SHARE: usize = 1024;

/// A function of each element.
pub(crate) trait Activation {
    fn of<L: Lanes>(x: L) -> L;
}

/// `x * sigmoid(x)`.
pub(crate) struct Silu;
/// The tanh form of GELU.
pub(crate) struct Gelu;
/// The exact GELU.
pub(crate) struct GeluErf;
/// `max(x, 0)²`.
pub(crate) struct ReluSquared;

/// `sigmoid(x)`.
pub(crate) struct Sigmoid;

impl Activation for Silu {
    #[inline(always)]
    fn of<L: Lanes>(x: L) -> L {
        silu(x)
    }
}

impl Activation for Sigmoid {
    #[inline(always)]
    fn of<L: Lanes>(x: L) -> L {
        simd::sigmoid(x)
    }
}

impl Activation for Gelu {
    #[inline(always)]
    fn of<L: Lanes>(x: L) -> L {
        gelu(x)
    }
}

impl Activation for GeluErf {
    #[inline(always)]
    fn of<L: Lanes>(x: L) -> L {
        simd::gelu_erf(x)
    }
}

impl Activation for ReluSquared {
    #[inline(always)]
    fn of<L: Lanes>(x: L) -> L {
        // NaN stays NaN.
        let zero = L::splat(0.0);
        let positive = x.if_less(zero, zero, x);
        positive.mul(positive)
    }
}

/// `y = act(gate) * up`.
pub(crate) struct Gate<A>(PhantomData<A>);

impl<A: Activation> Body for Gate<A> {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let n = call.params::<ElementwiseParams>().count as usize;
        let gate::Buffers { gate, up, y } = call.buffers();
        let (gate, up) = (gate.read::<f32>(n), up.read::<f32>(n));
        let range = part.range_in_blocks(n, SHARE);
        let (gate, up) = (&gate[range.clone()], &up[range.clone()]);
        // SAFETY: `own`: parts have different ranges.
        unsafe { gated::<L, A>(gate, up, y.write::<f32>(range.start, range.len())) };
    }
}

/// How two products become one.
pub(crate) trait Gating {
    /// `act(gate) * up`, or what stands for it.
    fn of<L: Lanes>(gate: L, up: L) -> L;
}

impl<A: Activation> Gating for A {
    #[inline(always)]
    fn of<L: Lanes>(gate: L, up: L) -> L {
        A::of(gate).mul(up)
    }
}

/// The gate of gpt-oss: `g * sigmoid(1.702 g) * (u + 1)`, with both products limited to 7. NaN stays NaN.
pub(crate) struct SwigluOai;

impl Gating for SwigluOai {
    #[inline(always)]
    fn of<L: Lanes>(gate: L, up: L) -> L {
        let (slope, limit, least) = (L::splat(1.702), L::splat(7.0), L::splat(-7.0));
        let gate = gate.min(limit);
        let sigmoid = silu(gate.mul(slope)).div(slope);
        // `min` and `max` would take NaN for a limit.
        let up = up.if_less(limit, up, up.sub(up).add(limit));
        let up = up.if_less(least, least, up);
        sigmoid.mul(up.add(L::splat(1.0)))
    }
}

/// Writes the gated products to `y`. The slices have one length.
#[inline(always)]
pub(crate) fn gated<L: Lanes, G: Gating>(gate: &[f32], up: &[f32], y: &mut [f32]) {
    assert!(gate.len() == y.len() && up.len() == y.len());
    let (whole, rest) = (y.len() / L::N * L::N, y.len() % L::N);
    // SAFETY: `reach`: all accesses are within the slices.
    unsafe {
        for at in (0..whole).step_by(L::N) {
            let (gate, up) = (L::load(gate.as_ptr().add(at)), L::load(up.as_ptr().add(at)));
            G::of(gate, up).store(y.as_mut_ptr().add(at));
        }
        let gate = L::load_part(gate.as_ptr().add(whole), rest);
        let up = L::load_part(up.as_ptr().add(whole), rest);
        G::of(gate, up).store_part(y.as_mut_ptr().add(whole), rest);
    }
}

/// `x = act(x)`.
pub(crate) struct Activate<A>(PhantomData<A>);

impl<A: Activation> Body for Activate<A> {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let n = call.params::<ElementwiseParams>().count as usize;
        let activate::Buffers { x } = call.buffers();
        let range = part.range_in_blocks(n, SHARE);
        // SAFETY: `own`: parts have different ranges; all accesses are within.
        unsafe {
            let x = x.write::<f32>(range.start, range.len());
            let (whole, rest) = (x.len() / L::N * L::N, x.len() % L::N);
            for at in (0..whole).step_by(L::N) {
                let x = x.as_mut_ptr().add(at);
                A::of(L::load(x)).store(x);
            }
            let x = x.as_mut_ptr().add(whole);
            A::of(L::load_part(x, rest)).store_part(x, rest);
        }
    }
}

/// `y = x`, as halves.
pub(crate) struct Halves;

impl Body for Halves {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let n = call.params::<ElementwiseParams>().count as usize;
        let halves::Buffers { x, y } = call.buffers();
        let range = part.range_in_blocks(n, SHARE);
        let x = &x.read::<f32>(n)[range.clone()];
        // SAFETY: `own`: parts have different ranges.
        unsafe { round_halves::<L>(x, y.write::<u8>(2 * range.start, 2 * range.len())) };
    }
}

/// `x[row] += bias`.
pub(crate) struct BiasAdd;

impl Body for BiasAdd {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: MatrixParams = call.params();
        let bias_add::Buffers { x, bias } = call.buffers();
        let cols = p.cols as usize;
        let bias = bias.read::<f32>(cols);
        for row in part.range(p.rows as usize) {
            // SAFETY: `own`: parts have different rows.
            unsafe { add::<L>(x.write::<f32>(row * cols, cols), bias) };
        }
    }
}

/// `x *= factor`.
pub(crate) struct Scale;

impl Body for Scale {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: EmbeddingScaleParams = call.params();
        let embedding_scale::Buffers { x } = call.buffers();
        let range = part.range_in_blocks(p.count as usize, SHARE);
        // SAFETY: `own`: parts have different ranges; all accesses are within.
        unsafe {
            let x = x.write::<f32>(range.start, range.len());
            let (whole, rest) = (x.len() / L::N * L::N, x.len() % L::N);
            let factor = L::splat(p.factor);
            for at in (0..whole).step_by(L::N) {
                let x = x.as_mut_ptr().add(at);
                L::load(x).mul(factor).store(x);
            }
            let x = x.as_mut_ptr().add(whole);
            L::load_part(x, rest).mul(factor).store_part(x, rest);
        }
    }
}

/// `x = cap * tanh(x / cap)`.
pub(crate) struct Softcap;

impl Body for Softcap {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: LogitSoftcapParams = call.params();
        let logit_softcap::Buffers { logits: x } = call.buffers();
        let range = part.range_in_blocks(p.count as usize, SHARE);
        // SAFETY: `own`: parts have different ranges; all accesses are within.
        unsafe {
            let x = x.write::<f32>(range.start, range.len());
            let (whole, rest) = (x.len() / L::N * L::N, x.len() % L::N);
            let cap = L::splat(p.cap);
            for at in (0..whole).step_by(L::N) {
                let x = x.as_mut_ptr().add(at);
                tanh(L::load(x).div(cap)).mul(cap).store(x);
            }
            let x = x.as_mut_ptr().add(whole);
            let last = tanh(L::load_part(x, rest).div(cap)).mul(cap);
            last.store_part(x, rest);
        }
    }
}

/// `to[i] = from[outputs[i]]`, a row each. Parts share the rows.
pub(crate) fn gather_rows(call: &Call, part: &mut Part) {
    let p: GatherRowsParams = call.params();
    let gather_rows::Buffers { from, outputs, to } = call.buffers();
    let dim = p.dim as usize;
    let from = from.read::<f32>(p.row_capacity as usize * dim);
    let outputs = outputs.read::<u32>(p.n_rows as usize);
    for at in part.range(outputs.len()) {
        // SAFETY: `own`: parts have different rows.
        let to = unsafe { to.write::<f32>(at * dim, dim) };
        to.copy_from_slice(&from[outputs[at] as usize * dim..][..dim]);
    }
}

/// `y[i] = x[i]`.
pub(crate) fn copy(call: &Call, part: &mut Part) {
    let p: ElementwiseParams = call.params();
    let copy::Buffers { x, y } = call.buffers();
    let range = part.range(p.count as usize);
    let x = &x.read::<f32>(p.count as usize)[range.clone()];
    // SAFETY: `own`: parts have different elements.
    unsafe { y.write::<f32>(range.start, range.len()) }.copy_from_slice(x);
}

/// Pieces of each row of x become pieces of the same row of y. Parts share the pieces of all rows.
pub(crate) fn copy_pieces(call: &Call, part: &mut Part) {
    let p: CopyPiecesParams = call.params();
    let copy_pieces::Buffers { x, y } = call.buffers();
    let (pieces, width) = (p.pieces as usize, p.width as usize);
    let place = |at: usize, [row, piece]: [u32; 2]| {
        at / pieces * row as usize + at % pieces * piece as usize
    };
    for at in part.range(p.n_rows as usize * pieces) {
        let from = place(at, [p.x_row, p.x_piece]);
        let x = &x.read::<f32>(from + width)[from..];
        // SAFETY: `own`: each piece of a row belongs to one part, and pieces do not overlap (the launch checks it).
        unsafe { y.write::<f32>(place(at, [p.y_row, p.y_piece]), width) }.copy_from_slice(x);
    }
}
