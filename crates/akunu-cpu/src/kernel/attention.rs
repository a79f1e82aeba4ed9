//! Attention: one kernel for all five rows of the table, which have one formula.
//!
//! [`few`] is for decoding: each key and value is read once for all query heads that share it, and
//! the arithmetic hides behind the reading. [`many`] is for prompts: blocks of queries and keys as
//! products of small matrices that stay in the cache. [`groups`] says which rows of a dispatch are of which kind.
//!
//! Keys are taken in blocks that end at multiples of [`BLOCK`], whatever the pages: what a row gives depends neither
//! on the size of a page nor on who is in its batch.

mod few;
mod groups;
mod many;
mod product;
mod rows;
mod work;

use std::ops::Range;

use akunu_kernels::kernel::attention::head_dim;
use akunu_kernels::kernel::attention::mask::{Mask, Seen};
use akunu_kernels::kernel::pages::{Pages, SlotAt};
use akunu_kernels::table::Args;
use akunu_kernels::{Constant, KernelId};
use akunu_types::KvFormat;
use akunu_types::params::{AttentionParams, Row};

use super::stored::{Eights, Halves};
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::place::Place;
use crate::simd::{Lanes, tanh};

use groups::Groups;

pub(crate) use rows::RowAttention;

/// The kernel.
pub(crate) struct Attention;

impl Body for Attention {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let problem = Problem::of(call);
        let shared = few::Shared::of(call, &problem);
        let shared = shared.filter(|_| problem.head_dim.is_multiple_of(L::N));
        let mut groups = std::mem::take(part.kept.get::<Groups>());
        groups.fill(&problem, shared.is_some());
        // SAFETY: the CPU has the instructions.
        unsafe {
            many::run::<L>(&problem, &groups, part, call.isa);
            if let Some(shared) = shared {
                let singles = &groups.singles;
                match problem.pages.format {
                    KvFormat::F16 => few::run::<L, Halves>(&problem, singles, part, shared),
                    KvFormat::Q8 => few::run::<L, Eights>(&problem, singles, part, shared),
                }
            }
        }
        *part.kept.get() = groups;
    }
}

/// Whether a kernel of the table is one of those that this one stands for.
pub(crate) fn is_attention(kernel: KernelId) -> bool {
    matches!(
        kernel,
        KernelId::FlashAttentionDecode
            | KernelId::FlashAttentionDecodeFast
            | KernelId::FlashAttentionPrefill
            | KernelId::FlashAttentionPrefillV2
    )
}

/// Floats that all parts share in the attention of a dispatch, whatever its rows are.
pub(crate) fn shared_len(args: &Args) -> usize {
    let p = args.params();
    few::shared_len(&p, &Pages::from((&p, args.constants)))
}

/// Keys of a block: their scores stay in the fastest cache.
const BLOCK: usize = 64;

/// Where a largest score begins: below every real one, and still a number that can be subtracted.
const LOWEST: f32 = -1e30;

/// Cuts keys into blocks. All but the first begin at a multiple of [`BLOCK`].
fn blocks(keys: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let cuts = keys.start / BLOCK..keys.end.div_ceil(BLOCK);
    cuts.map(move |at| keys.start.max(at * BLOCK)..keys.end.min((at + 1) * BLOCK))
}

/// What is to be computed.
struct Problem<'a> {
    params: AttentionParams,
    n_kv_heads: usize,
    /// Query heads that share a KV head.
    group: usize,
    head_dim: usize,
    /// Elements between rows of q and of the output.
    q_stride: usize,
    /// Soft cap of the scores.
    cap: Option<f32>,
    mask: Mask,
    /// The rows of this dispatch; row 0 is the first of them.
    rows: &'a [Row],
    pages: Pages,
    table: &'a [u32],
    /// Keys ahead of the present ones that are fetched for single rows.
    n_ahead: usize,
    q: &'a [f32],
    k: &'a [u8],
    v: &'a [u8],
    o: Place<'a>,
}

impl<'a> Problem<'a> {
    fn of(call: &Call<'a>) -> Problem<'a> {
        let p: AttentionParams = call.params();
        let [q, k, v, o, rows, table] = call.bindings();
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
            n_ahead: few::keys_ahead(pages.format.number_bytes(p.head_dim)),
            table: table.read(pages.table_bytes() / size_of::<u32>()),
            q: q.read((end - 1) * q_stride + width),
            k: k.read(pool),
            v: v.read(pool),
            o,
            params: p,
        }
    }

    /// What a row sees. A row of a tree counts its keys as if no other branch were there: they are cut into the same
    /// blocks, and rounded alike, as in a text of its own.
    fn seen(&self, row: usize) -> Seen {
        self.mask.seen(&self.rows[row])
    }

    /// Where a query of a head begins, and its output.
    fn query_at(&self, row: usize, head: usize) -> usize {
        (self.params.first_row as usize + row) * self.q_stride + head * self.head_dim
    }

    /// Where the key of a slot lies, and its value.
    #[inline]
    fn key_at(&self, sequence: u32, kv_head: usize, slot: usize) -> SlotAt {
        self.pages.slot_at(self.table, sequence, slot, kv_head)
    }

    /// Applies the soft cap to scores; as many are there as fill whole vectors.
    ///
    /// # Safety
    /// The CPU has the instructions.
    #[inline(always)]
    unsafe fn cap<L: Lanes>(&self, scores: &mut [f32]) {
        let Some(cap) = self.cap else { return };
        for scores in scores.chunks_exact_mut(L::N) {
            // SAFETY: there are `N` scores.
            unsafe {
                let ratio = L::load(scores.as_ptr()).mul(L::splat(1.0 / cap));
                tanh(ratio).mul(L::splat(cap)).store(scores.as_mut_ptr());
            }
        }
    }

    /// Stores one output: `sum / weight`, zeros where no key was seen.
    ///
    /// # Safety
    /// This head of the row belongs to this part.
    #[inline(always)]
    unsafe fn finish(&self, row: usize, head: usize, sum: &[f32], weight: f32) {
        let inverse = if weight > 0.0 { 1.0 / weight } else { 0.0 };
        let at = self.query_at(row, head);
        // SAFETY: by the caller's promise nobody else writes here.
        let out = unsafe { self.o.write::<f32>(at, self.head_dim) };
        for (out, sum) in out.iter_mut().zip(sum) {
            *out = sum * inverse;
        }
    }
}
