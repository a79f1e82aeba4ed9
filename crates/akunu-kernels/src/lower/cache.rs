//! Keys and values: stored, and moved.

use crate::kernel::kv_cache::kv_shift;
use crate::kernel::rope::{head_norm_rope_neox_store, rope_axes, rope_store, scale_queries};
use std::mem::offset_of;

use akunu_program::{Count, Pairing, Rope, Slice, op};
use akunu_types::params::{KVShiftParams, RoPEAxesParams, RopeStoreParams, ScaleQueriesParams};

use super::lowering::Lowering;
use crate::constant::{Constant, Constants};
use crate::kernel::pages::with_format;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

impl Lowering<'_> {
    pub(super) fn scale_queries(&mut self, scale: &op::ScaleQueries) {
        let params = ScaleQueriesParams {
            n_heads: scale.n_heads,
            head_dim: scale.head_dim,
            turned_dim: scale.turned_dim,
            turned_factor: scale.turned_factor,
            temperature: scale.temperature,
            period: scale.period,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ScaleQueriesParams, n_rows), Count::Rows);
        let buffers = scale_queries::Buffers {
            q: scale.q,
            rows: self.step().rows.into(),
        };
        let key = PipelineKey::plain(KernelId::ScaleQueries);
        self.push(KernelCall::new(key, &params, buffers, "scale queries").with_rows([field]));
    }

    pub(super) fn rope_store(&mut self, store: &op::RopeStore) {
        let &op::RopeStore {
            q,
            k,
            v,
            heads,
            rope,
            norms,
            centre,
            ref cache,
        } = store;
        let pages = &cache.pages;
        let params = RopeStoreParams {
            n_heads: heads.n_heads,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            eps: norms.map_or(0.0, |norms| norms.eps),
            ..Default::default()
        };
        let rows = self.step().rows.into();
        let (k_pages, v_pages) = (cache.k.into(), cache.v.into());
        let kernel = match (norms, rope.pairing) {
            (Some(_), Pairing::Halves) => KernelId::HeadNormRopeNeoxStore,
            (Some(_), Pairing::Interleaved) => {
                unreachable!("heads that turn by neighbours are normalised before")
            }
            (None, Pairing::Interleaved) => KernelId::RopeStore,
            (None, Pairing::Halves) => KernelId::RopeNeoxStore,
        };
        let field = RowField::new(offset_of!(RopeStoreParams, n_rows), Count::Rows);
        let mut constants = with_format(rope_constants(&rope, heads.head_dim), cache.format);
        if norms.is_some_and(|norms| norms.turn_first) {
            constants = constants.with_bool(Constant::TurnFirst, true);
        }
        let key = PipelineKey {
            kernel,
            constants: with_centre(constants, centre),
        };
        let (table, freqs) = (pages.table.into(), rope.divisors);
        let label = "rope and store";
        let call = match norms {
            Some(norms) => {
                let buffers = head_norm_rope_neox_store::Buffers {
                    q,
                    k,
                    v,
                    k_pages,
                    v_pages,
                    rows,
                    table,
                    freqs,
                    q_norm: norms.q,
                    k_norm: norms.k,
                };
                KernelCall::new(key, &params, buffers, label)
            }
            None => {
                let buffers = rope_store::Buffers {
                    q,
                    k,
                    v,
                    k_pages,
                    v_pages,
                    rows,
                    table,
                    freqs,
                    centre: centre_or_any(centre, &rope),
                };
                KernelCall::new(key, &params, buffers, label)
            }
        };
        self.push(call.with_rows([field]));
    }

    pub(super) fn rope_axes(&mut self, op: &op::RopeAxes) {
        let rope = &op.rope;
        let [time_pairs, height_pairs, width_pairs] = op.axes.pairs;
        let params = RoPEAxesParams {
            n_heads: op.n_heads,
            head_dim: op.head_dim,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            time_pairs,
            height_pairs,
            width_pairs,
            is_interleaved: u32::from(op.axes.is_interleaved),
            ..Default::default()
        };
        let key = PipelineKey {
            kernel: KernelId::RopeAxes,
            constants: rope_constants(rope, op.head_dim),
        };
        let field = RowField::new(offset_of!(RoPEAxesParams, n_rows), Count::Rows);
        let buffers = rope_axes::Buffers {
            x: op.x,
            rows: self.step().rows.into(),
            freqs: rope.divisors,
            places: op.places,
        };
        self.push(KernelCall::new(key, &params, buffers, "rope").with_rows([field]));
    }

    pub(super) fn shift(&mut self, shift: &op::Shift) {
        let op::Shift {
            cache, rope, heads, ..
        } = shift;
        let pages = &cache.pages;
        let params = KVShiftParams {
            sequence: shift.sequence,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            keep: shift.keep,
            shift: shift.shift,
            new_len: shift.len,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
        };
        let kernel = match rope.pairing {
            Pairing::Interleaved => KernelId::KvShift,
            Pairing::Halves => KernelId::KvShiftNeox,
        };
        let buffers = kv_shift::Buffers {
            k: cache.k.into(),
            v: cache.v.into(),
            table: pages.table.into(),
            freqs: rope.divisors,
            centre: centre_or_any(shift.centre, rope),
        };
        let key = PipelineKey {
            kernel,
            constants: with_centre(
                with_format(rope_constants(rope, heads.head_dim), cache.format),
                shift.centre,
            ),
        };
        self.push(KernelCall::new(key, &params, buffers, "shift"));
    }
}

/// The constants of a turn of such heads.
pub(super) fn rope_constants(rope: &Rope, head_dim: u32) -> Constants {
    let constants = Constants::none().with_bool(Constant::FreqTable, true);
    match rope.turned_dim == head_dim {
        true => constants,
        false => constants.with_u32(Constant::TurnedDim, rope.turned_dim),
    }
}

/// The same constants for keys that are stored less a centre, if there is one.
pub(super) fn with_centre(constants: Constants, centre: Option<Slice>) -> Constants {
    match centre {
        Some(_) => constants.with_bool(Constant::KeyCentre, true),
        None => constants,
    }
}

/// What is bound as the centre. Without one it is not touched.
pub(super) fn centre_or_any(centre: Option<Slice>, rope: &Rope) -> Slice {
    centre.unwrap_or(rope.divisors)
}
