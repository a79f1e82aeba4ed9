//! Attention: one kernel for all rows, or on a GPU one for the singles and one for the run.

use std::mem::offset_of;

use akunu_program::{Count, Slice, op};
use akunu_types::params::AttentionParams;

use super::Lowering;
use crate::constant::{Constant, Constants};
use crate::kernel::attention::flash_attention_decode_split::part_bytes;
use crate::kernel::attention::selection::{self, AttentionShape, with_limits};
use crate::kernel::pages::with_format;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

const N_ROWS: usize = offset_of!(AttentionParams, n_rows);
const FIRST_ROW: usize = offset_of!(AttentionParams, first_row);

impl Lowering<'_> {
    pub(super) fn attend(&mut self, attend: &op::Attend) {
        let &op::Attend {
            q,
            to,
            heads,
            ref cache,
            scale,
            softcap,
        } = attend;
        let pages = &cache.pages;
        let params = AttentionParams {
            n_heads: heads.n_heads,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            scale,
            ..Default::default()
        };
        let (k, v) = (cache.k.into(), cache.v.into());
        let (rows, table) = (self.step().rows.into(), pages.table.into());
        let bindings = vec![q, k, v, to, rows, table];
        let call = |key: PipelineKey, fields: &[RowField]| {
            let key = PipelineKey {
                constants: with_format(key.constants, cache.format),
                ..key
            };
            KernelCall::new(key, &params, bindings.clone(), "attention").with_rows(fields)
        };
        let Some(chip) = self.chip else {
            let key = PipelineKey {
                kernel: KernelId::FlashAttentionDecode,
                constants: with_limits(Constants::none(), pages.window, softcap),
            };
            return self.push(call(key, &[RowField::new(N_ROWS, Count::Rows)]));
        };
        let room = self.program.room;
        let shape = |n_queries: u32, n_rows: u32| AttentionShape {
            n_queries,
            n_row_heads: n_rows * heads.n_heads,
            n_shared: heads.n_heads / heads.n_kv_heads.max(1),
            n_keys: u32::try_from(pages.capacity()).unwrap_or(u32::MAX),
            head_dim: heads.head_dim,
            window: pages.window,
            softcap,
        };
        if room.singles > 0 {
            let shape = shape(1, room.singles);
            let single = call(
                selection::select(&shape, chip),
                &[RowField::new(N_ROWS, Count::Singles)],
            );
            let n_parts = selection::parts(&shape, chip);
            let split = AttentionParams {
                n_rows: room.singles,
                n_parts,
                ..params
            };
            if n_parts > 1
                && let Some(places) = self.scratch(part_bytes(&split))
            {
                let key = PipelineKey {
                    constants: with_format(selection::split(&shape).constants, cache.format),
                    ..selection::split(&shape)
                };
                self.push_split((key, split), single.bindings, places);
            } else {
                self.push(single);
            }
        }
        if room.run > 0 {
            let key = selection::select(&shape(room.run, room.run), chip);
            let fields = [
                RowField::new(N_ROWS, Count::Run),
                RowField::new(FIRST_ROW, Count::Singles),
            ];
            self.push(call(key, &fields));
        }
    }

    /// The parts of the keys, then the kernel that joins them. `bindings` are those of a kernel that does it alone.
    fn push_split(
        &mut self,
        (key, params): (PipelineKey, AttentionParams),
        bindings: Vec<Slice>,
        [parts, weights]: [Slice; 2],
    ) {
        let [q, k, v, to, rows, table] = bindings[..] else {
            unreachable!("the bindings of attention")
        };
        let field = RowField::new(N_ROWS, Count::Singles);
        let bindings = vec![q, k, v, parts, rows, table, weights];
        self.push(KernelCall::new(key, &params, bindings, "attention").with_rows([field]));
        let key = PipelineKey {
            kernel: KernelId::FlashAttentionJoin,
            constants: Constants::none().with_u32(Constant::HeadDim, params.head_dim),
        };
        let bindings = vec![parts, weights, to];
        self.push(KernelCall::new(key, &params, bindings, "attention").with_rows([field]));
    }
}
