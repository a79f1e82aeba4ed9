//! Attention over pages: one kernel for the singles and one for the run, as a GPU chooses them.

use crate::kernel::attention::{
    self, flash_attention_decode_split, flash_attention_join, flash_attention_sinks,
};
use std::mem::offset_of;

use akunu_program::{Count, Slice, op};
use akunu_types::params::AttentionParams;

use super::lowering::Lowering;
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::kernel::attention::selection::{self, AttentionShape, with_limits};
use crate::kernel::pages::with_format;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

const N_ROWS: usize = offset_of!(AttentionParams, n_rows);
const FIRST_ROW: usize = offset_of!(AttentionParams, first_row);

/// What the kernels of one attention have in common.
pub(super) struct Attention<'a> {
    attend: &'a op::Attend,
    params: AttentionParams,
    buffers: attention::Buffers<Slice>,
}

impl Attention<'_> {
    pub fn of<'a>(lowering: &Lowering, attend: &'a op::Attend) -> Attention<'a> {
        let op::Attend { heads, cache, .. } = attend;
        let pages = &cache.pages;
        let params = AttentionParams {
            n_heads: heads.n_heads,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            scale: attend.scale,
            ..Default::default()
        };
        let buffers = attention::Buffers {
            Q: attend.q,
            K: cache.k.into(),
            V: cache.v.into(),
            O: attend.to,
            rows: lowering.step().rows.into(),
            table: pages.table.into(),
        };
        Attention {
            attend,
            params,
            buffers,
        }
    }

    /// The kernel that does it alone.
    pub fn call(&self, key: PipelineKey, fields: &[RowField]) -> KernelCall {
        let key = PipelineKey {
            constants: with_format(key.constants, self.attend.cache.format),
            ..key
        };
        KernelCall::new(key, &self.params, self.buffers, "attention").with_rows(fields)
    }

    /// One kernel for all rows, whatever their sequences.
    pub fn by_rows(&self) -> KernelCall {
        let attend = self.attend;
        let rows = RowField::new(N_ROWS, Count::Rows);
        let key = |kernel| PipelineKey {
            kernel,
            constants: with_limits(Constants::none(), attend.cache.pages.window, attend.softcap),
        };
        let Some(sinks) = attend.sinks else {
            return self.call(key(KernelId::FlashAttentionDecode), &[rows]);
        };
        let attention::Buffers {
            Q,
            K,
            V,
            O,
            rows: table_of_rows,
            table,
        } = self.buffers;
        let buffers = flash_attention_sinks::Buffers {
            Q,
            K,
            V,
            O,
            rows: table_of_rows,
            table,
            sinks,
        };
        let PipelineKey { kernel, constants } = key(KernelId::FlashAttentionSinks);
        let constants = with_format(constants, attend.cache.format);
        let key = PipelineKey { kernel, constants };
        KernelCall::new(key, &self.params, buffers, "attention").with_rows([rows])
    }

    fn shape(&self, n_queries: u32, n_rows: u32) -> AttentionShape {
        let (heads, pages) = (&self.attend.heads, &self.attend.cache.pages);
        AttentionShape {
            n_queries,
            n_row_heads: n_rows * heads.n_heads,
            n_shared: heads.n_heads / heads.n_kv_heads.max(1),
            n_keys: u32::try_from(pages.capacity()).unwrap_or(u32::MAX),
            head_dim: heads.head_dim,
            window: pages.window,
            softcap: self.attend.softcap,
        }
    }
}

impl Lowering<'_> {
    /// Attention of the singles, in parts where they do not fill the chip, and of the run. `select` chooses the kernel that does it
    /// alone.
    pub(super) fn attend_by(
        &mut self,
        attend: &op::Attend,
        chip: &ChipConfig,
        select: impl Fn(&AttentionShape) -> PipelineKey,
    ) {
        let attention = Attention::of(self, attend);
        if attend.sinks.is_some() || attend.heads.head_dim > attention::MAX_HEAD_DIM {
            return self.push(attention.by_rows());
        }
        let room = self.program.room;
        if room.singles > 0 {
            let shape = attention.shape(1, room.singles);
            let n_parts = selection::parts(&shape, chip);
            let split = AttentionParams {
                n_rows: room.singles,
                n_parts,
                ..attention.params
            };
            let key = selection::split(&shape);
            let key = PipelineKey {
                constants: with_format(key.constants, attend.cache.format),
                ..key
            };
            let row = key.kernel.row();
            let args = row.args(bytemuck::bytes_of(&split), &key.constants);
            let bytes = flash_attention_decode_split::Buffers::bytes(&args);
            if n_parts > 1
                && let Some(places) = self.scratch([bytes.parts, bytes.weights])
            {
                self.push_split((key, split), &attention.buffers, places);
            } else {
                let rows = RowField::new(N_ROWS, Count::Singles);
                self.push(attention.call(select(&shape), &[rows]));
            }
        }
        if room.run > 0 {
            let key = select(&attention.shape(room.run, room.run));
            let fields = [
                RowField::new(N_ROWS, Count::Run),
                RowField::new(FIRST_ROW, Count::Singles),
            ];
            self.push(attention.call(key, &fields));
        }
    }

    /// The parts of the keys, then the kernel that joins them. `buffers` are those of a kernel that does it alone.
    fn push_split(
        &mut self,
        (key, params): (PipelineKey, AttentionParams),
        buffers: &attention::Buffers<Slice>,
        [parts, weights]: [Slice; 2],
    ) {
        let &attention::Buffers {
            Q,
            K,
            V,
            O,
            rows,
            table,
        } = buffers;
        let field = RowField::new(N_ROWS, Count::Singles);
        let buffers = flash_attention_decode_split::Buffers {
            Q,
            K,
            V,
            parts,
            rows,
            table,
            weights,
        };
        self.push(KernelCall::new(key, &params, buffers, "attention").with_rows([field]));
        let key = PipelineKey {
            kernel: KernelId::FlashAttentionJoin,
            constants: Constants::none().with_u32(Constant::HeadDim, params.head_dim),
        };
        let buffers = flash_attention_join::Buffers { parts, weights, O };
        self.push(KernelCall::new(key, &params, buffers, "attention").with_rows([field]));
    }
}
