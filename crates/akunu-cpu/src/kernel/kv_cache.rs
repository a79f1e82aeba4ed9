//! The shift of a KV cache: drops the oldest positions and turns the keys back by as many. Parts share
//! the heads.

use akunu_kernels::kernel::rope::Style;
use akunu_types::params::KVCacheShiftParams;
use half::f16;

use super::rope::{frequencies, rotate, to_halves};
use crate::call::Call;
use crate::part::Part;
use crate::simd::{Body, Lanes};

/// `k[p] = turn(k[p + shift], -shift)`, `v[p] = v[p + shift]`; `NEOX` pairs the halves of a head.
pub(crate) struct Shift<const NEOX: bool>;

impl<const NEOX: bool> Body for Shift<NEOX> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: KVCacheShiftParams = call.params();
        let [k, v, _] = call.bindings();
        let (head_dim, n_slots) = (p.head_dim as usize, p.max_seq_len as usize);
        let n_moved = p.new_len.min(p.max_seq_len.saturating_sub(p.shift)) as usize;
        let style = if NEOX {
            Style::SplitHalves
        } else {
            Style::Interleaved
        };
        let frequencies = frequencies(call, head_dim, p.theta, p.freq_scale);
        let back = -i64::from(p.shift);
        let heads = part.range(p.n_kv_heads as usize);
        let turns = part.rotations.of(&frequencies, back..back + 1, style);
        let shift = p.shift as usize * head_dim;
        for head in heads.filter(|_| n_moved > 0) {
            let first = head * n_slots * head_dim;
            let len = shift + n_moved * head_dim;
            // SAFETY: each head belongs to one part; the CPU has the instructions.
            unsafe {
                v.write::<f16>(first, len).copy_within(shift.., 0);
                let k = k.write::<f16>(first, len);
                for at in (0..n_moved).map(|position| position * head_dim) {
                    let wide = part.scratch.take::<f32>(head_dim);
                    for (wide, k) in wide.iter_mut().zip(&k[shift + at..]) {
                        *wide = k.to_f32();
                    }
                    rotate::<L>(wide, turns.at(back));
                    to_halves::<L>(wide, &mut k[at..][..head_dim]);
                }
            }
        }
    }
}
