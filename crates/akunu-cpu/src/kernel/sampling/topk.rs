//! The k largest values of each part of the logits of each row, in descending order.
//!
//! Candidates are kept as numbers whose order is the wanted one: the value's bits, made ascending as
//! the value descends, before the place. Of more than twice k candidates the best k are kept, and from
//! then on only what is larger than the last of them is looked at: most blocks fall at one comparison.

use akunu_kernels::kernel::sampling::topk_select::NO_TOKEN;
use akunu_types::params::TopKParams;

use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::simd::Lanes;

/// The kernel.
pub(crate) struct TopKSelect;

impl Body for TopKSelect {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: TopKParams = call.params();
        let [values, ids, top_values, top_ids] = call.bindings();
        let (n, k, len) = (p.count as usize, p.k as usize, p.part as usize);
        let (n_rows, n_parts) = (p.n_rows as usize, n.div_ceil(len));
        let values = values.read::<f32>(n_rows * n);
        let ids = ids.read::<u32>(if p.indexed == 0 { 0 } else { n_rows * n });
        for at in part.range(n_rows * n_parts) {
            let (row, first) = (at / n_parts * n, at % n_parts * len);
            let values = &values[row..][first..n.min(first + len)];
            let candidates = part.scratch.take::<u64>(2 * k + L::N);
            // SAFETY: the results of each part of a row belong to one part.
            unsafe {
                let best = select::<L>(values, k, candidates);
                let top_values = top_values.write::<f32>(at * k, k);
                let top_ids = top_ids.write::<u32>(at * k, k);
                top_values.fill(f32::NEG_INFINITY);
                top_ids.fill(NO_TOKEN);
                for (rank, &key) in best.iter().enumerate() {
                    let place = key as u32 as usize;
                    if !values[place].is_nan() {
                        top_values[rank] = values[place];
                    }
                    top_ids[rank] = match p.indexed {
                        0 => (first + place) as u32,
                        _ => ids[row + first + place],
                    };
                }
            }
        }
    }
}

/// The keys of the k best values, or of all, in order. `candidates` has room for `2 k + N`.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
unsafe fn select<'a, L: Lanes>(values: &[f32], k: usize, candidates: &'a mut [u64]) -> &'a [u64] {
    let mut n = 0;
    let mut limit = f32::NAN;
    for (block, values) in values.chunks(L::N).enumerate() {
        if values.len() == L::N {
            // SAFETY: there are `N` of them. A NaN becomes -inf.
            let largest = unsafe {
                let values = L::load(values.as_ptr());
                values.max(L::splat(f32::NEG_INFINITY)).largest()
            };
            if largest <= limit {
                continue;
            }
        }
        for (i, &value) in values.iter().enumerate() {
            let falls = value <= limit;
            if !falls {
                candidates[n] = key(value, block * L::N + i);
                n += 1;
            }
        }
        if n >= 2 * k {
            let (_, &mut last, _) = candidates[..n].select_nth_unstable(k - 1);
            n = k;
            limit = value_of(last);
        }
    }
    let found = &mut candidates[..n];
    found.sort_unstable();
    &found[..n.min(k)]
}

/// Larger values first, -0 as 0, NaN after all others; then earlier places.
fn key(value: f32, place: usize) -> u64 {
    let bits = (value + 0.0).to_bits();
    let ascending = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    let order = if value.is_nan() { u32::MAX } else { !ascending };
    u64::from(order) << 32 | place as u64
}

/// The value of a key.
fn value_of(key: u64) -> f32 {
    let order = (key >> 32) as u32;
    if order == u32::MAX {
        return f32::NAN;
    }
    let ascending = !order;
    f32::from_bits(if ascending >> 31 == 1 {
        ascending & !(1 << 31)
    } else {
        !ascending
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_and_give_the_value_back() {
        let descending = [
            f32::INFINITY,
            3.0,
            1e-30,
            0.0,
            -1e-30,
            -3.0,
            f32::NEG_INFINITY,
        ];
        let keys = descending.map(|value| key(value, 7));
        assert!(keys.is_sorted());
        assert!(key(f32::NAN, 0) > keys[6]);
        assert_eq!(key(-0.0, 7), key(0.0, 7));
        assert!(key(1.0, 3) < key(1.0, 4));
        for (key, value) in keys.into_iter().zip(descending) {
            assert_eq!(value_of(key), value);
        }
        assert!(value_of(key(f32::NAN, 0)).is_nan());
    }
}
