//! `to = norm(x) * weight * silu(gate)`, or `norm(x * silu(gate)) * weight`. Parts share the pieces of all rows.

use akunu_kernels::kernel::state::{gated_norm, split_heads};
use akunu_types::params::{GatedNormParams, SplitHeadsParams};

use crate::body::Body;
use crate::call::Call;
use crate::kernel::elementwise::{Silu, gated};
use crate::kernel::norm::normalise;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;

/// A norm and a gate.
pub(crate) struct GatedNorm;

impl Body for GatedNorm {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: GatedNormParams = call.params();
        let b: gated_norm::Buffers<Place> = call.buffers();
        let (pieces, width) = (p.pieces as usize, p.width as usize);
        for at in part.range(p.n_rows as usize * pieces) {
            let (row, piece) = (at / pieces, at % pieces);
            let x = piece_at(b.x, at * width, width);
            let gate = piece_at(b.gate, row * p.gate_stride as usize + piece * width, width);
            let own = usize::from(p.own_weights != 0) * piece * width;
            let weight = piece_at(b.weight, own, width);
            // SAFETY: `own`: each piece of a row belongs to one part.
            let to = unsafe { b.to.write::<f32>(at * width, width) };
            if p.gate_first == 0 {
                let normal = part.scratch.take::<f32>(width);
                normal.copy_from_slice(x);
                normalise::<L>(normal, weight, p.eps);
                gated::<L, Silu>(gate, normal, to);
            } else {
                gated::<L, Silu>(gate, x, to);
                normalise::<L>(to, weight, p.eps);
            }
        }
    }
}

/// `width` numbers of a binding.
fn piece_at(from: Place<'_>, first: usize, width: usize) -> &[f32] {
    &from.read::<f32>(first + width)[first..]
}

/// `first[r][h] = x[r][h][0]`, `second[r][h] = x[r][h][1]`. Parts share the heads of all rows.
pub(crate) fn split_heads(call: &Call, part: &mut Part) {
    let p: SplitHeadsParams = call.params();
    let b: split_heads::Buffers<Place> = call.buffers();
    let dim = p.head_dim as usize;
    let n_heads = p.n_rows as usize * p.n_heads as usize;
    let x = b.x.read::<f32>(2 * n_heads * dim);
    for head in part.range(n_heads) {
        let (first, second) = x[2 * head * dim..][..2 * dim].split_at(dim);
        for (to, from) in [(b.first, first), (b.second, second)] {
            // SAFETY: `own`: each head of a row belongs to one part.
            unsafe { to.write::<f32>(head * dim, dim) }.copy_from_slice(from);
        }
    }
}
