//! Which experts rows use, and the sums of their results. Parts share the rows, or the elements of all rows.

use akunu_kernels::kernel::experts::{route_experts, weigh_rows};
use akunu_types::params::{RouteParams, WeighParams};

use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;

/// The experts of each row, by the same function as the twin's: a few hundred numbers a row.
pub(crate) fn route(call: &Call, part: &mut Part) {
    let p: RouteParams = call.params();
    let b: route_experts::Buffers<Place> = call.buffers();
    let (n_rows, n_experts, n_used) = (p.n_rows as usize, p.n_experts as usize, p.n_used as usize);
    let logits = b.logits.read::<f32>(n_rows * n_experts);
    let bias = b
        .bias
        .read::<f32>(if p.has_bias == 0 { 0 } else { n_experts });
    for row in part.range(n_rows) {
        let own = &logits[row * n_experts..][..n_experts];
        // SAFETY: `own`: each row belongs to one part.
        let (ids, weights) = unsafe {
            (
                b.ids.write::<u32>(row * n_used, n_used),
                b.weights.write::<f32>(row * n_used, n_used),
            )
        };
        route_experts::route(&p, own, bias, ids, weights);
    }
    // One part reports for all.
    if part.index == 0 && !logits.iter().all(|logit| logit.is_finite()) {
        // SAFETY: `own`: only this part touches it.
        let fault = unsafe { b.fault.write::<u32>(0, 1) };
        if fault[0] == 0 {
            fault[0] = p.layer + 1;
        }
    }
}

/// `y[r] = Σ_j w[r][j] * x[r][j]`, or `y[r] += …`.
pub(crate) struct WeighRows;

impl Body for WeighRows {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: WeighParams = call.params();
        let weigh_rows::Buffers { x, weights, y } = call.buffers::<weigh_rows::Buffers<Place>>();
        let (n_rows, cols, n_used) = (p.n_rows as usize, p.cols as usize, p.n_used as usize);
        let x = x.read::<f32>(n_rows * n_used * cols);
        let n_weights = match p.weighed_by {
            weigh_rows::ONE_NUMBER => 0,
            _ => n_rows * n_used,
        };
        let weights = weights.read::<f32>(n_weights);
        let vectors = cols.div_ceil(L::N);
        for item in part.range(n_rows * vectors) {
            let (row, first) = (item / vectors, item % vectors * L::N);
            let n = L::N.min(cols - first);
            // SAFETY: `own`: these elements belong to one part; `reach`: `n` of them are there, in x and in y.
            unsafe {
                let y = y.write::<f32>(row * cols + first, n).as_mut_ptr();
                let mut sum = match p.add {
                    0 => L::splat(0.0),
                    _ => load::<L>(y, n),
                };
                for at in row * n_used..(row + 1) * n_used {
                    let weight = L::splat(weigh_rows::weight(&p, weights, at));
                    let row = load::<L>(x[at * cols + first..][..n].as_ptr(), n);
                    sum = row.fma(weight, sum);
                }
                match n == L::N {
                    true => sum.store(y),
                    false => sum.store_part(y, n),
                }
            }
        }
    }
}

/// Up to `L::N` floats.
///
/// # Safety
/// `reach`: `n` of them are there.
#[inline(always)]
unsafe fn load<L: Lanes>(from: *const f32, n: usize) -> L {
    // SAFETY: passes on `reach`.
    unsafe {
        match n == L::N {
            true => L::load(from),
            false => L::load_part(from, n),
        }
    }
}
