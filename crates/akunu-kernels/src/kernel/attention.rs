//! Attention: four kernels of one formula over pages, two that share the work of a fifth, one over the rows of matrices
//! ([`row_attention`]), and the soft cap of logits.
//!
//! `O[r][h] = Σ_s softmax_s(score(Q[r][h] · K[h / group][s])) V[h / group][s]` over the slots s that row r
//! sees ([`mask`]), with `score(x) = scale * x`, or `cap * tanh(scale * x / cap)`. A row that sees no slot
//! gives zeros. Keys and values lie in the pages of the row's sequence ([`super::pages`]).
//!
//! The decode kernels take any rows, the prefill kernels those of one sequence.
//!
//! [`formula`] is the twin of all four; `cases` has their inputs; [`selection`] chooses among them.

#[cfg(feature = "testing")]
pub(super) mod cases;
pub mod flash_attention_decode;
pub mod flash_attention_decode_fast;
pub mod flash_attention_decode_split;
pub mod flash_attention_join;
pub mod flash_attention_prefill;
pub mod flash_attention_prefill_v2;
pub mod flash_attention_sinks;
pub mod formula;
pub mod logit_softcap;
pub mod mask;
pub mod row_attention;
pub mod selection;
mod shape;

use akunu_types::params::{AttentionParams, Row};

use self::mask::Mask;
pub use self::shape::head_dim;
use super::pages::Pages;
use crate::constant::Constant;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, strided};
use crate::table::{Args, Pool, buffers};

/// The largest head that kernels hold in registers.
pub const MAX_HEAD_DIM: u32 = 256;
/// The largest head of the first decode kernel, which has a thread for each element.
pub const MAX_DECODE_HEAD_DIM: u32 = 576;

buffers! {
    /// Of all four. Before the first row, and between rows of O that are further apart than their elements, nothing is written.
    pub struct Buffers, Slices(|args| (p, pages, queries) = sizes(args), AttentionParams at 4) {
        Q: read f32 = queries,
        K: read Pool = pages.pool_bytes(),
        V: read Pool = pages.pool_bytes(),
        O: change f32 = queries,
        rows: read Row = [p.first_row.saturating_add(p.n_rows)],
        table: read u32 = pages.table_len(),
    }
}

/// The function constants of all four but the number of query rows.
const CONSTANTS: &[Constant] = &[
    Constant::HeadDim,
    Constant::Window,
    Constant::Softcap,
    Constant::KvQ8,
];

/// Whether the kernels can read this shape: heads of whole vectors of 8 that fit, query heads that
/// share KV heads evenly, and pages of whole tiles. Other shapes get an empty grid, which the plan check
/// refuses.
fn is_supported(args: &Args, p: &AttentionParams, max_head_dim: u32) -> bool {
    let head_dim = head_dim(args, p);
    (8..=max_head_dim).contains(&head_dim)
        && head_dim.is_multiple_of(8)
        && head_dim == p.head_dim
        && p.n_kv_heads != 0
        && p.n_heads.is_multiple_of(p.n_kv_heads)
        && Pages::from((p, args.constants)).are_usable()
}

/// The grid: blocks of rows in x, heads in y.
pub(super) fn grid(args: &Args, p: &AttentionParams, rows: u32, max_head_dim: u32) -> [u32; 3] {
    let n_heads = if is_supported(args, p, max_head_dim) {
        p.n_heads
    } else {
        0
    };
    [p.n_rows.div_ceil(rows), n_heads, 1]
}

/// The params, the pages, and the elements of Q and of O.
fn sizes(args: &Args) -> (AttentionParams, Pages, usize) {
    let p: AttentionParams = args.params();
    let end_row = p.first_row.saturating_add(p.n_rows);
    let elements = p.n_heads.saturating_mul(p.head_dim);
    let queries = strided(end_row, formula::query_stride(&p), elements);
    (p, Pages::from((&p, args.constants)), queries)
}

/// The work of rows that may each have a sequence of its own. See [`work_of`].
fn work(args: &Args, once: Work) -> Work {
    let p: AttentionParams = args.params();
    work_of(args, once, p.n_rows.min(p.n_sequences))
}

/// How many keys a row sees stands in its row, not in the params. This counts the most that it can be:
/// each row sees as many keys as a sequence has slots, or as the window lets it. Of each sequence they
/// are read once for all its rows and the heads that share them; a row and a key make two products of a
/// head's length.
fn work_of(args: &Args, once: Work, n_sequences: u32) -> Work {
    let p: AttentionParams = args.params();
    let pages = Pages::from((&p, args.constants));
    let n_slots = pages.max_slots();
    let n_keys = (Mask::new(args.constants).window).map_or(n_slots, |window| window.min(n_slots));
    let keys = pages.slot_bytes(&[n_sequences, n_keys]);
    let keys = Traffic::read(keys.min(pages.pool_bytes()));
    let queries = bytes::<f32>(&[p.n_rows, p.n_heads, p.head_dim]);
    let entries = bytes::<u32>(&[n_sequences, p.table_stride]);
    let entries = entries.min(bytes::<u32>(&[p.n_sequences, p.table_stride]));
    once.with(Buffers::PLACES.Q, Traffic::read(queries))
        .with(Buffers::PLACES.K, keys)
        .with(Buffers::PLACES.V, keys)
        .with(Buffers::PLACES.O, Traffic::written(queries))
        .with(
            Buffers::PLACES.rows,
            Traffic::read(bytes::<Row>(&[p.n_rows])),
        )
        .with(Buffers::PLACES.table, Traffic::read(entries))
        .with_flops(2 * multiply_adds(&[p.n_rows, n_keys, p.n_heads, p.head_dim]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constants;
    use crate::table::BufferSet;

    const GOOD: AttentionParams = AttentionParams {
        n_rows: 3,
        first_row: 0,
        n_heads: 6,
        n_kv_heads: 2,
        head_dim: 64,
        q_stride: 0,
        page_shift: 5,
        table_stride: 4,
        n_pages: 9,
        n_sequences: 2,
        scale: 0.125,
        n_parts: 0,
    };

    fn is_launched(p: AttentionParams, constants: &Constants) -> bool {
        let args = Args {
            dtype: None,
            params: bytemuck::bytes_of(&p),
            constants,
        };
        !grid(&args, &p, 1, MAX_DECODE_HEAD_DIM).contains(&0)
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
            change(|p| p.head_dim = 584),
            change(|p| p.n_kv_heads = 0),
            change(|p| p.n_kv_heads = 4),
            change(|p| p.page_shift = 4),
            change(|p| p.page_shift = 32),
            change(|p| p.n_rows = 0),
            change(|p| p.n_heads = 0),
        ];
        for p in bad {
            assert!(!is_launched(p, &none), "{p:?}");
        }
        let other_head = Constants::none().with_u32(Constant::HeadDim, 128);
        assert!(!is_launched(GOOD, &other_head));
        let q8 = Constants::none().with_bool(Constant::KvQ8, true);
        assert!(is_launched(GOOD, &q8) && is_launched(change(|p| p.head_dim = 80), &none));
        assert!(!is_launched(change(|p| p.head_dim = 80), &q8));
    }

    /// The last head of the last row ends where the buffer must: no more, no less.
    #[test]
    fn required_bytes_follow_the_strides() {
        let p = AttentionParams {
            q_stride: 6 * 64 + 8,
            first_row: 5,
            ..GOOD
        };
        let args = Args {
            dtype: None,
            params: bytemuck::bytes_of(&p),
            constants: &Constants::none(),
        };
        let queries = (7 * (6 * 64 + 8) + 6 * 64) * 4;
        let pool = 9 * 2 * 32 * 64 * 2;
        let (rows, table) = (8 * 32, 2 * 4 * 4);
        assert_eq!(
            Buffers::bytes(&args).in_order(),
            [queries, pool, pool, queries, rows, table]
        );
        let q8 = Constants::none().with_bool(Constant::KvQ8, true);
        let pool = 9 * 2 * 32 * (64 + 2 * 2);
        let args = Args {
            constants: &q8,
            ..args
        };
        assert_eq!(Buffers::bytes(&args).in_order()[1..3], [pool, pool]);
    }
}
