//! Attention: one kernel for all five rows of the table, which have one formula.
//!
//! [`few`] is for decoding: each key and value is read once for all query heads that share it, and
//! the arithmetic hides behind the reading. [`many`] is for prefills: blocks of queries and keys as
//! products of small matrices that stay in the cache.

mod few;
mod many;
mod product;

use akunu_kernels::kernel::attention::formula::query_offset;
use akunu_kernels::kernel::attention::mask::Mask;
use akunu_kernels::kernel::attention::{head_dim, n_slots};
use akunu_kernels::table::Args;
use akunu_kernels::{Constant, KernelId};
use akunu_types::params::AttentionParams;
use half::f16;

use crate::call::{Call, Place};
use crate::part::Part;
use crate::simd::{Body, Lanes, tanh};

/// The kernel.
pub(crate) struct Attention;

/// From as many queries on blocks pay.
const MANY: usize = 4;

impl Body for Attention {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let problem = Problem::of(call);
        // SAFETY: the CPU has the instructions.
        unsafe {
            let shared = few::shared_len(problem.n_queries, &problem.params, problem.n_slots);
            match call.panels.sums(shared) {
                Some(shared) if problem.is_few() && problem.head_dim.is_multiple_of(L::N) => {
                    few::run::<L>(&problem, part, shared);
                }
                _ => many::run::<L>(&problem, part, call.isa),
            }
        }
    }
}

/// Whether a kernel of the table is one of those that this one stands for.
pub(crate) fn is_attention(kernel: KernelId) -> bool {
    matches!(
        kernel,
        KernelId::FlashAttentionDecode
            | KernelId::FlashAttentionDecodeFast
            | KernelId::FlashAttentionDecodeParallel
            | KernelId::FlashAttentionPrefill
            | KernelId::FlashAttentionPrefillV2
    )
}

/// Floats that all parts share in the attention of a dispatch, whatever its position is.
pub(crate) fn shared_len(args: &Args) -> usize {
    let params: AttentionParams = args.params();
    match params.seq_len as usize {
        n_queries if n_queries < MANY => {
            few::shared_len(n_queries, &params, n_slots(args, &params) as usize)
        }
        _ => 0,
    }
}

/// Keys of a block: their scores stay in the fastest cache.
const BLOCK: usize = 64;

/// Where a largest score begins: below every real one, and still a number that can be subtracted.
const LOWEST: f32 = -1e30;

/// What is to be computed.
struct Problem<'a> {
    params: AttentionParams,
    n_queries: usize,
    n_kv_heads: usize,
    /// Query heads that share a KV head.
    group: usize,
    head_dim: usize,
    n_slots: usize,
    /// Soft cap of the scores.
    cap: Option<f32>,
    mask: Mask<'a>,
    q: &'a [f32],
    k: &'a [f16],
    v: &'a [f16],
    o: Place<'a>,
}

impl<'a> Problem<'a> {
    fn of(call: &Call<'a>) -> Problem<'a> {
        let params: AttentionParams = call.params();
        let [q, k, v, o, tree] = call.bindings();
        let head_dim = head_dim(&call.args, &params) as usize;
        let n_slots = n_slots(&call.args, &params) as usize;
        let (n_queries, n_kv_heads) = (params.seq_len as usize, params.n_kv_heads as usize);
        let has_tree = call.args.constants.bool(Constant::TreeMask);
        let tree = tree.read(if has_tree { n_queries } else { 0 });
        let row = params.n_heads as usize * head_dim;
        let stride = if params.q_stride == 0 {
            row
        } else {
            params.q_stride as usize
        };
        let used = n_slots.min(params.kv_seq_len as usize) * head_dim;
        let cache = (n_kv_heads - 1) * n_slots * head_dim + used;
        Problem {
            n_queries,
            n_kv_heads,
            group: params.n_heads as usize / n_kv_heads,
            head_dim,
            n_slots,
            cap: (call.args.constants.f32(Constant::Softcap)).filter(|&cap| cap > 0.0),
            mask: Mask::new(&call.args, tree),
            q: q.read((n_queries - 1) * stride + row),
            k: k.read(cache),
            v: v.read(cache),
            o,
            params,
        }
    }

    /// Whether there are so few queries that reading the keys takes longer than everything else.
    fn is_few(&self) -> bool {
        self.n_queries < MANY
    }

    /// Where a query of a head begins, and its output.
    fn query_at(&self, query: usize, head: usize) -> usize {
        query_offset(&self.params, query, head)
    }

    /// The first element of a key, and of its value.
    fn row_at(&self, kv_head: usize, key: usize) -> usize {
        (kv_head * self.n_slots + key % self.n_slots) * self.head_dim
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
    /// The query of this head belongs to this part.
    #[inline(always)]
    unsafe fn finish(&self, query: usize, head: usize, sum: &[f32], weight: f32) {
        let inverse = if weight > 0.0 { 1.0 / weight } else { 0.0 };
        let at = self.query_at(query, head);
        // SAFETY: by the caller's promise nobody else writes here.
        let out = unsafe { self.o.write::<f32>(at, self.head_dim) };
        for (out, sum) in out.iter_mut().zip(sum) {
            *out = sum * inverse;
        }
    }
}
