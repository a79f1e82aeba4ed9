//! One attention over pages, as all of its forms see it.

use akunu_kernels::kernel::attention::mask::{Mask, Seen};
use akunu_kernels::kernel::attention::{self, flash_attention_sinks, head_dim};
use akunu_kernels::kernel::pages::{Pages, SlotAt};
use akunu_kernels::{Constant, KernelId};
use akunu_types::params::{AttentionParams, Row};

use crate::call::Call;
use crate::place::Place;
use crate::simd::{Lanes, tanh};

/// The largest exponent of a sink: what is divided by its exponential is next to nothing.
const MOST_SINK: f32 = 80.0;

/// What is to be computed.
pub(super) struct Problem<'a> {
    pub params: AttentionParams,
    pub n_kv_heads: usize,
    /// Query heads that share a KV head.
    pub group: usize,
    pub head_dim: usize,
    /// Elements between rows of q and of the output.
    pub q_stride: usize,
    /// Soft cap of the scores.
    pub cap: Option<f32>,
    pub mask: Mask,
    /// The rows of this dispatch; row 0 is the first of them.
    pub rows: &'a [Row],
    pub pages: Pages,
    pub table: &'a [u32],
    pub q: &'a [f32],
    pub k: &'a [u8],
    pub v: &'a [u8],
    pub o: Place<'a>,
    /// A score of each head that has no value; of none if there are no sinks.
    pub sinks: &'a [f32],
}

/// The buffers that all kernels have, and the sinks.
fn of_sinks<'a>(
    buffers: flash_attention_sinks::Buffers<Place<'a>>,
) -> (attention::Buffers<Place<'a>>, Option<Place<'a>>) {
    let flash_attention_sinks::Buffers {
        Q,
        K,
        V,
        O,
        rows,
        table,
        sinks,
    } = buffers;
    let others = attention::Buffers {
        Q,
        K,
        V,
        O,
        rows,
        table,
    };
    (others, Some(sinks))
}

impl<'a> Problem<'a> {
    pub fn of(call: &Call<'a>) -> Problem<'a> {
        let p: AttentionParams = call.params();
        let (buffers, sinks) = match call.kernel {
            KernelId::FlashAttentionSinks => of_sinks(call.buffers()),
            _ => (call.buffers(), None),
        };
        let attention::Buffers {
            Q: q,
            K: k,
            V: v,
            O: o,
            rows,
            table,
        } = buffers;
        let head_dim = head_dim(&call.args, &p) as usize;
        let (first, end) = (
            p.first_row as usize,
            p.first_row as usize + p.n_rows as usize,
        );
        let width = p.n_heads as usize * head_dim;
        let q_stride = match p.q_stride {
            0 => width,
            stride => stride as usize,
        };
        let pages = Pages::from((&p, call.args.constants));
        let pool = pages.pool_bytes();
        Problem {
            n_kv_heads: p.n_kv_heads as usize,
            group: (p.n_heads / p.n_kv_heads) as usize,
            head_dim,
            q_stride,
            cap: (call.args.constants.f32(Constant::Softcap)).filter(|&cap| cap > 0.0),
            mask: Mask::new(call.args.constants),
            rows: &rows.read(end)[first..],
            pages,
            table: table.read(pages.table_len()),
            q: q.read((end - 1) * q_stride + width),
            k: k.read(pool),
            v: v.read(pool),
            o,
            sinks: sinks.map_or(&[], |sinks: Place| sinks.read(p.n_heads as usize)),
            params: p,
        }
    }

    /// What a row sees. A row of a tree counts its keys as if no other branch were there: they are cut into the same
    /// blocks, and rounded alike, as in a text of its own.
    pub fn seen(&self, row: usize) -> Seen {
        self.mask.seen(&self.rows[row])
    }

    /// Where a query of a head begins, and its output.
    pub fn query_at(&self, row: usize, head: usize) -> usize {
        (self.params.first_row as usize + row) * self.q_stride + head * self.head_dim
    }

    /// Where the key of a slot lies, and its value.
    #[inline]
    pub fn key_at(&self, sequence: u32, kv_head: usize, slot: usize) -> SlotAt {
        self.pages.slot_at(self.table, sequence, slot, kv_head)
    }

    /// Applies the soft cap to scores; as many are there as fill whole vectors.
    #[inline(always)]
    pub fn cap<L: Lanes>(&self, scores: &mut [f32]) {
        let Some(cap) = self.cap else { return };
        for scores in scores.chunks_exact_mut(L::N) {
            // SAFETY: `reach`: there are `N` scores.
            unsafe {
                let ratio = L::load(scores.as_ptr()).mul(L::splat(1.0 / cap));
                tanh(ratio).mul(L::splat(cap)).store(scores.as_mut_ptr());
            }
        }
    }

    /// Stores one output: `sum / weight`, zeros where no key was seen. `weight` is the sum of `exp(score - peak)`; a sink is one
    /// more of these scores.
    ///
    /// # Safety
    /// `own`: this head of the row belongs to this part.
    #[inline(always)]
    pub unsafe fn finish(
        &self,
        (row, head): (usize, usize),
        sum: &[f32],
        (weight, peak): (f32, f32),
    ) {
        let weight = match self.sinks.get(head) {
            Some(&sink) if weight > 0.0 => weight + (sink - peak).min(MOST_SINK).exp(),
            _ => weight,
        };
        let inverse = match weight {
            0.0 => 0.0,
            // Weights are at most 1, and infinite if a score is not a number.
            _ if weight.is_finite() => 1.0 / weight,
            _ => f32::NAN,
        };
        let at = self.query_at(row, head);
        // SAFETY: passes on `own`: nobody else writes here.
        let out = unsafe { self.o.write::<f32>(at, self.head_dim) };
        for (out, sum) in out.iter_mut().zip(sum) {
            *out = sum * inverse;
        }
    }
}
