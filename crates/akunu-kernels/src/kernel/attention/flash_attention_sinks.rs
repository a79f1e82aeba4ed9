//! `flash_attention_sinks_f16`: as [`flash_attention_decode`], with a *sink* for each head: a learnt
//! score without a value, which takes its share of the weights.
//!
//! ```text
//! O = Σ_s e^score_s V_s / (e^sink + Σ_s e^score_s)
//! ```
//!
//! It takes any rows, those of a prompt as well.

#[cfg(feature = "testing")]
use crate::kernel::attention::cases;
use akunu_types::params::{AttentionParams, Row};

use super::formula::Given;
use super::{flash_attention_decode, sizes};
use crate::table::{KernelRow, Pool, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| (p, pages, queries) = sizes(args), AttentionParams at 4) {
        Q: read f32 = queries,
        K: read Pool = pages.pool_bytes(),
        V: read Pool = pages.pool_bytes(),
        O: change f32 = queries,
        rows: read Row = [p.first_row.saturating_add(p.n_rows)],
        table: read u32 = pages.table_len(),
        sinks: read f32 = [p.n_heads],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_sinks_f16", ""),
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::sinks(),
    family: flash_attention_decode::ROW.family,
    source: flash_attention_decode::ROW.source,
    constants: flash_attention_decode::ROW.constants,
    launch: flash_attention_decode::ROW.launch,
    work: flash_attention_decode::ROW.work,
    ..KernelRow::of::<Buffers<()>>()
};

fn twin(t: &mut Twin) {
    let args = t.args();
    let b = Slices::of(t);
    let given = Given {
        args,
        q: b.Q,
        k: b.K,
        v: b.V,
        rows: b.rows,
        table: b.table,
    };
    let sink = |head: usize| Some(b.sinks[head]);
    given.whole_heads(|query, _| query, &sink, b.O);
}
