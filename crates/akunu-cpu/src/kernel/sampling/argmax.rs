//! The largest logit: the first of equals, never a NaN.

use akunu_types::params::{ArgmaxParams, ArgmaxPartialParams};

use super::{history_of, store_token};
use crate::call::Call;
use crate::part::Part;
use crate::simd::{Body, Lanes};

/// The token of the largest of some values.
pub(crate) struct Argmax;

impl Body for Argmax {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        if part.index != 0 {
            return;
        }
        let p: ArgmaxParams = call.params();
        let [values, ids, token, history] = call.bindings();
        let n = p.count as usize;
        // SAFETY: the CPU has the instructions.
        let place = unsafe { first_largest::<L>(values.read(n)) }.unwrap_or(0);
        let chosen = if p.indexed == 0 {
            place as u32
        } else {
            ids.read::<u32>(n)[place]
        };
        store_token(chosen, p.pos, token, history_of(history, p.history_len));
    }
}

/// The largest value of each part of the logits, and its token.
pub(crate) struct ArgmaxPartial;

impl Body for ArgmaxPartial {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: ArgmaxPartialParams = call.params();
        let [logits, values, ids] = call.bindings();
        let logits = logits.read::<f32>(p.count as usize);
        let len = p.part as usize;
        let range = part.range(logits.len().div_ceil(len));
        for at in range {
            let first = at * len;
            let logits = &logits[first..logits.len().min(first + len)];
            // SAFETY: each result belongs to one part; the CPU has the instructions.
            unsafe {
                let place = first_largest::<L>(logits);
                values.write(at, 1)[0] = place.map_or(f32::NEG_INFINITY, |place| logits[place]);
                ids.write(at, 1)[0] = (first + place.unwrap_or(0)) as u32;
            }
        }
    }
}

/// Values that are looked at together.
const BLOCK: usize = 256;

/// The place of the largest value; `None` if there are only NaNs. First the block that has it is found,
/// then its place in the block.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
unsafe fn first_largest<L: Lanes>(values: &[f32]) -> Option<usize> {
    let (mut best, mut block_of_best) = (f32::NEG_INFINITY, 0);
    for (at, block) in values.chunks(BLOCK).enumerate() {
        // SAFETY: by the caller's promise.
        let largest = unsafe { largest::<L>(block) };
        if largest > best {
            (best, block_of_best) = (largest, at);
        }
    }
    let start = block_of_best * BLOCK;
    let place = values.iter().skip(start).position(|&value| value == best);
    place.map(|place| start + place)
}

/// The largest value, -inf if there are only NaNs.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
unsafe fn largest<L: Lanes>(values: &[f32]) -> f32 {
    let whole = values.chunks_exact(L::N);
    let rest = whole.remainder().iter().copied();
    let rest = rest.fold(f32::NEG_INFINITY, f32::max);
    // SAFETY: there are `N` of them.
    unsafe {
        let mut largest = L::splat(rest);
        for values in whole {
            largest = L::load(values.as_ptr()).max(largest);
        }
        largest.largest()
    }
}
