//! Attention: five kernels of one formula, the softmax alone, and the soft cap of logits.
//!
//! `O[q][h] = Σ_k softmax_k(score(Q[q][h] · K[h / group][k])) V[h / group][k]` over the keys that query q
//! sees ([`mask`]), with `score(x) = scale * x`, or `cap * tanh(scale * x / cap)`. A query that sees no
//! key gives zeros.
//!
//! [`formula`] is the twin of all five; `cases` has their inputs; [`selection`] chooses among them.

mod cases;
pub mod flash_attention_decode;
pub mod flash_attention_decode_fast;
pub mod flash_attention_decode_parallel;
pub mod flash_attention_prefill;
pub mod flash_attention_prefill_v2;
pub mod formula;
pub mod logit_softcap;
pub mod mask;
pub mod selection;
pub mod softmax;

use akunu_types::params::AttentionParams;

use self::mask::Mask;
use crate::constant::Constant;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, strided};
use crate::table::{Args, Binding, Element, read, read_write};

/// The largest head that the decode and the first prefill kernel hold.
pub const MAX_HEAD_DIM: u32 = 256;

/// The bindings of all five; the params are at 4. Between rows of O that are further apart than their
/// elements nothing is written. Without the constant the tree mask is not read.
const BINDINGS: &[Binding] = &[
    read(0, "Q", Element::F32),
    read(1, "K", Element::F16),
    read(2, "V", Element::F16),
    read_write(3, "O", Element::F32),
    read(5, "tree_mask", Element::U16),
];

/// The function constants of all five but the number of query rows.
const CONSTANTS: &[Constant] = &[
    Constant::HeadDim,
    Constant::NonCausal,
    Constant::Window,
    Constant::Softcap,
    Constant::TreeMask,
];

/// Elements of a head: the constant, or the params.
pub fn head_dim(args: &Args, p: &AttentionParams) -> u32 {
    args.constants.u32(Constant::HeadDim).unwrap_or(p.head_dim)
}

/// Slots that each KV head has.
pub fn n_slots(args: &Args, p: &AttentionParams) -> u32 {
    match p.kv_stride {
        0 => p.kv_seq_len,
        stride => stride / head_dim(args, p).max(1),
    }
}

/// Whether the kernels can read this shape: heads of whole vectors of 8 that fit, query heads that
/// share KV heads evenly, whole slots, and no more drafts than the tree mask has bits. Other shapes get
/// an empty grid, which the plan check refuses.
fn is_supported(args: &Args, p: &AttentionParams, max_head_dim: u32) -> bool {
    let head_dim = head_dim(args, p);
    let has_tree = args.constants.bool(Constant::TreeMask);
    (8..=max_head_dim).contains(&head_dim)
        && head_dim.is_multiple_of(8)
        && head_dim == p.head_dim
        && p.n_kv_heads != 0
        && p.n_heads.is_multiple_of(p.n_kv_heads)
        && p.kv_stride.is_multiple_of(head_dim)
        && (!has_tree || p.seq_len <= mask::MAX_DRAFTS)
}

/// The grid: blocks of queries in x, heads in y.
fn grid(args: &Args, p: &AttentionParams, rows: u32, max_head_dim: u32) -> [u32; 3] {
    let n_heads = if is_supported(args, p, max_head_dim) {
        p.n_heads
    } else {
        0
    };
    [p.seq_len.div_ceil(rows), n_heads, 1]
}

/// Bytes of each binding.
fn required(args: &Args) -> Vec<usize> {
    let p: AttentionParams = args.params();
    let head = head_dim(args, &p);
    let n_slots = n_slots(args, &p);
    let used = p.kv_seq_len.min(n_slots).saturating_mul(head);
    let kv = strided::<half::f16>(p.n_kv_heads, n_slots.saturating_mul(head), used);
    let row = p.n_heads.saturating_mul(head);
    let stride = if p.q_stride == 0 { row } else { p.q_stride };
    let queries = strided::<f32>(p.seq_len, stride, row);
    let tree = args.constants.bool(Constant::TreeMask);
    vec![
        queries,
        kv,
        kv,
        queries,
        if tree { p.seq_len as usize * 2 } else { 0 },
    ]
}

/// Of the cache the keys and values that some query sees are read, once for all heads that share them;
/// a query and a key make two products of a head's length.
fn work(args: &Args, once: Work) -> Work {
    let p: AttentionParams = args.params();
    let head = head_dim(args, &p);
    let (mut n_pairs, mut first, mut end) = (0u64, i64::MAX, 0);
    for seen in Mask::new(args, &[])
        .ranges()
        .filter(|seen| !seen.is_empty())
    {
        n_pairs += (seen.end - seen.start) as u64;
        (first, end) = (first.min(seen.start), end.max(seen.end));
    }
    let n_keys = end.saturating_sub(first).max(0) as u32;
    let kv = Traffic::read(bytes::<half::f16>(&[p.n_kv_heads, n_keys, head]));
    let queries = bytes::<f32>(&[p.seq_len, p.n_heads, head]);
    once.with(0, Traffic::read(queries))
        .with(1, kv)
        .with(2, kv)
        .with(3, Traffic::written(queries))
        .with_flops(n_pairs.saturating_mul(2 * multiply_adds(&[p.n_heads, head])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constants;

    const GOOD: AttentionParams = AttentionParams {
        seq_len: 3,
        kv_seq_len: 9,
        head_dim: 64,
        n_heads: 6,
        n_kv_heads: 2,
        scale: 0.125,
        kv_stride: 16 * 64,
        q_stride: 0,
    };

    fn is_launched(p: AttentionParams, constants: &Constants) -> bool {
        let args = Args {
            dtype: None,
            params: bytemuck::bytes_of(&p),
            constants,
        };
        !grid(&args, &p, 1, MAX_HEAD_DIM).contains(&0)
    }

    /// Each of these would divide by zero, read out of bounds or misaligned in the kernels.
    #[test]
    fn shapes_that_the_kernels_cannot_read_get_an_empty_grid() {
        let none = Constants::none();
        assert!(is_launched(GOOD, &none));
        let change = |change: fn(&mut AttentionParams)| {
            let mut p = GOOD;
            change(&mut p);
            p
        };
        let bad = [
            change(|p| p.head_dim = 0),
            change(|p| p.head_dim = 60),
            change(|p| p.head_dim = 264),
            change(|p| p.n_kv_heads = 0),
            change(|p| p.n_kv_heads = 4),
            change(|p| p.kv_stride = 1000),
            change(|p| p.seq_len = 0),
            change(|p| p.n_heads = 0),
        ];
        for p in bad {
            assert!(!is_launched(p, &none), "{p:?}");
        }
        assert!(!is_launched(GOOD, &none.with_u32(Constant::HeadDim, 128)));
    }

    #[test]
    fn a_tree_has_at_most_16_drafts() {
        let tree = Constants::none().with_bool(Constant::TreeMask, true);
        for (seq_len, launched) in [(16, true), (17, false)] {
            assert_eq!(
                is_launched(AttentionParams { seq_len, ..GOOD }, &tree),
                launched
            );
        }
    }

    /// The last row of the last head ends where the buffer must: no more, no less.
    #[test]
    fn required_bytes_follow_the_strides() {
        let p = AttentionParams {
            q_stride: 6 * 64 + 8,
            ..GOOD
        };
        let constants = Constants::none().with_bool(Constant::TreeMask, true);
        let args = Args {
            dtype: None,
            params: bytemuck::bytes_of(&p),
            constants: &constants,
        };
        let queries = (2 * (6 * 64 + 8) + 6 * 64) * 4;
        let keys = (16 * 64 + 9 * 64) * 2;
        assert_eq!(required(&args), [queries, keys, keys, queries, 3 * 2]);
    }
}
