//! `head_norm_rope_neox_store_f16`: for models that normalise each head of q and k (Qwen 3, Gemma 3).
//!
//! As [`super::rope_store`], with `q / rms(q) * q_norm` and `k / rms(k) * k_norm` before they turn. With [`Constant::TurnFirst`]
//! `q / rms(q)` turns before it is multiplied by q_norm, and `k / rms(k)` turns as it is.

use akunu_program::Pairing;
use akunu_types::params::{RopeStoreParams, Row};

use super::rope_store::{self, kv_len, n_rows, q_len, sizes};
use super::{HeadNorm, head_launch, table_len};
use crate::chip::ChipConfig;
use crate::constant::Constant;
use crate::table::{Args, KernelRow, Launch, Pool, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| (p, pages) = sizes(args), RopeStoreParams at 5) {
        q: change f32 = q_len(&p),
        k: read f32 = kv_len(&p),
        v: read f32 = kv_len(&p),
        k_pages: change Pool = pages.pool_bytes(),
        v_pages: change Pool = pages.pool_bytes(),
        rows: read Row = [p.n_rows],
        table: read u32 = pages.table_len(),
        freqs: read f32 = table_len(args, p.head_dim),
        q_norm: read f32 = [p.head_dim],
        k_norm: read f32 = [p.head_dim],
    }
}

impl<T: Copy> Buffers<T> {
    /// The buffers of the kernel without norms. It has a centre, which is not read here: any buffer can stand in its place.
    pub fn without_norms(self) -> rope_store::Buffers<T> {
        rope_store::Buffers {
            q: self.q,
            k: self.k,
            v: self.v,
            k_pages: self.k_pages,
            v_pages: self.v_pages,
            rows: self.rows,
            table: self.table,
            freqs: self.freqs,
            centre: self.freqs,
        }
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("head_norm_rope_neox_store_f16", ""),
    source: "head_norm_rope_neox_store",
    constants: &[
        Constant::FreqTable,
        Constant::TurnedDim,
        Constant::TurnFirst,
        Constant::KvQ8,
    ],
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..rope_store::row::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: RopeStoreParams = args.params();
    let n_heads = p.n_heads.max(p.n_kv_heads);
    head_launch(n_heads, p.head_dim, n_rows(args), chip.max_threads)
}

fn twin(t: &mut Twin) {
    let (p, constants): (RopeStoreParams, _) = (t.params(), t.constants());
    let b = Slices::of(t);
    let norm = HeadNorm {
        weights: [b.q_norm, b.k_norm],
        eps: p.eps,
        turn_first: constants.bool(Constant::TurnFirst),
    };
    let own = rope_store::Slices {
        q: b.q,
        k: b.k,
        v: b.v,
        k_pages: b.k_pages,
        v_pages: b.v_pages,
        rows: b.rows,
        table: b.table,
        freqs: b.freqs,
        centre: &[],
    };
    rope_store::store(&p, constants, own, Pairing::Halves, Some(&norm));
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        let both = [false, true].into_iter();
        both.flat_map(|turn_first| {
            rope_store::cases::all_settings(|s, format| {
                let mut rng = Rng::new(u64::from(s.head_dim));
                let case = rope_store::cases::case(s, format, &mut rng)
                    .bind(&rng.floats(s.head_dim as usize, 1.0))
                    .bind(&rng.floats(s.head_dim as usize, 1.0));
                match turn_first {
                    true => Case {
                        constants: case.constants.with_bool(Constant::TurnFirst, true),
                        label: format!("{}, weights after the turn", case.label),
                        ..case
                    },
                    false => case,
                }
            })
        })
        .collect()
    }
}
