//! The largest logit: the first of equals, never a NaN.

use akunu_kernels::kernel::sampling::{argmax, argmax_partial};
use akunu_types::params::{ArgmaxParams, ArgmaxPartialParams};

use super::Choices;
use crate::call::Call;
use crate::isa::Level;
use crate::part::Part;
use crate::simd::{self, Lanes, WithLanes};

/// The token of the largest of some values of each row. Parts share the rows.
pub(crate) fn argmax(call: &Call, part: &mut Part) {
    let p: ArgmaxParams = call.params();
    let argmax::Buffers {
        values,
        ids,
        tokens,
        history,
        outputs,
        rows,
    } = call.buffers();
    let (n_rows, n) = (p.n_rows as usize, p.count as usize);
    let values = values.read::<f32>(n_rows * n);
    let ids = ids.read::<u32>(if p.indexed == 0 { 0 } else { n_rows * n });
    let choices = Choices {
        outputs: outputs.read(n_rows),
        rows: rows.read(p.row_capacity as usize),
        tokens,
        history,
        history_stride: p.history_stride as usize,
    };
    for at in part.range(n_rows) {
        // SAFETY: `own`: parts have different rows.
        unsafe {
            let place = first_largest(call.level, &values[at * n..][..n]).unwrap_or(0);
            let token = match (choices.row(at).is_active(), p.indexed) {
                (false, _) => 0,
                (true, 0) => place as u32,
                (true, _) => ids[at * n + place],
            };
            choices.store(at, token);
        }
    }
}

/// The largest value of each part of the logits of each row, and its token.
pub(crate) fn argmax_partial(call: &Call, part: &mut Part) {
    let p: ArgmaxPartialParams = call.params();
    let argmax_partial::Buffers {
        logits,
        values,
        ids,
    } = call.buffers();
    let (n_rows, n, len) = (p.n_rows as usize, p.count as usize, p.part as usize);
    let n_parts = n.div_ceil(len);
    let logits = logits.read::<f32>(n_rows * n);
    for at in part.range(n_rows * n_parts) {
        let first = at % n_parts * len;
        let logits = &logits[at / n_parts * n..][first..n.min(first + len)];
        // SAFETY: `own`: each result belongs to one part.
        unsafe {
            let place = first_largest(call.level, logits);
            values.write(at, 1)[0] = place.map_or(f32::NEG_INFINITY, |place| logits[place]);
            ids.write(at, 1)[0] = (first + place.unwrap_or(0)) as u32;
        }
    }
}

/// Values that are looked at together.
const BLOCK: usize = 256;

/// The place of the largest value; `None` if there are only NaNs.
pub(super) fn first_largest(level: Level, values: &[f32]) -> Option<usize> {
    simd::run(level, FirstLargest(values))
}

/// The largest value, -inf if there are only NaNs.
pub(super) fn largest(level: Level, values: &[f32]) -> f32 {
    simd::run(level, Largest(values))
}

/// First the block that has it is found, then its place in the block.
struct FirstLargest<'a>(&'a [f32]);

impl WithLanes for FirstLargest<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self) -> Option<usize> {
        let FirstLargest(values) = self;
        let (mut best, mut block_of_best) = (f32::NEG_INFINITY, 0);
        for (at, block) in values.chunks(BLOCK).enumerate() {
            let largest = largest_of::<L>(block);
            if largest > best {
                (best, block_of_best) = (largest, at);
            }
        }
        let start = block_of_best * BLOCK;
        let place = values.iter().skip(start).position(|&value| value == best);
        place.map(|place| start + place)
    }
}

struct Largest<'a>(&'a [f32]);

impl WithLanes for Largest<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self) -> f32 {
        largest_of::<L>(self.0)
    }
}

/// The largest value, -inf if there are only NaNs.
#[inline(always)]
pub(super) fn largest_of<L: Lanes>(values: &[f32]) -> f32 {
    let whole = values.chunks_exact(L::N);
    let rest = whole.remainder().iter().copied();
    let rest = rest.fold(f32::NEG_INFINITY, f32::max);
    // SAFETY: `reach`: there are `N` of them.
    unsafe {
        let mut largest = L::splat(rest);
        for values in whole {
            largest = L::load(values.as_ptr()).max(largest);
        }
        largest.largest()
    }
}
