//! The shift of a sequence's keys and values: the slots from `keep + shift` on move down to `keep`, and the keys are
//! turned back by as many positions. Parts share the heads. What is stored of keys with a centre is `k - centre`.

use akunu_kernels::kernel::kv_cache::kv_shift;
use akunu_kernels::kernel::pages::Pages;
use akunu_types::params::KVShiftParams;

use super::rope::{centres, frequencies, pairing, rotate, subtract};
use super::rotation::Rotations;
use super::stored::{Slot, SlotMut};
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::simd::Lanes;

/// `k[keep + p] = turn(k[keep + shift + p], -shift)`, `v[keep + p] = v[keep + shift + p]` for p below `new_len`.
pub(crate) struct Shift;

impl Body for Shift {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: KVShiftParams = call.params();
        if p.shift == 0 {
            return;
        }
        let kv_shift::Buffers {
            k,
            v,
            table,
            freqs,
            centre,
        } = call.buffers();
        let (head_dim, shift) = (p.head_dim as usize, p.shift as usize);
        let pages = Pages::from((&p, call.args.constants));
        let table = table.read::<u32>(p.n_sequences as usize * p.table_stride as usize);
        let frequencies = frequencies(call, freqs, head_dim, (p.theta, p.freq_scale));
        let centres = centres(call, centre, p.n_kv_heads as usize * head_dim);
        let heads = part.range(p.n_kv_heads as usize);
        let back = [-i64::from(p.shift)].into_iter();
        let rotations: &mut Rotations = part.kept.get();
        let turn = rotations.of(&frequencies, back, pairing(call.kernel)).at(0);
        let key = part.scratch.take::<f32>(head_dim);
        for head in heads {
            let first = p.keep as usize;
            let centre = centres.map(|centres| &centres[head * head_dim..][..head_dim]);
            for slot in first..first + p.new_len as usize {
                let to = pages.slot_at(table, p.sequence, slot, head);
                let from = pages.slot_at(table, p.sequence, slot + shift, head);
                // SAFETY: `own`: each head belongs to one part, and the two slots are not the same.
                unsafe {
                    Slot::piece(&pages, k, from).widen::<L>(pages.format, 0, key);
                    if let Some(centre) = centre {
                        key.iter_mut().zip(centre).for_each(|(x, c)| *x += c);
                    }
                    rotate::<L>(key, turn);
                    if let Some(centre) = centre {
                        subtract(key, centre);
                    }
                    SlotMut::of(&pages, k, to).round::<L>(pages.format, key);
                    SlotMut::of(&pages, v, to).copy(Slot::piece(&pages, v, from));
                }
            }
        }
    }
}
