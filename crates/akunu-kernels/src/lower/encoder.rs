//! What encoders have besides: layer norms, learned positions, attention over rows, convolutions, means.

use std::mem::offset_of;

use akunu_program::{Count, LearnedBy, Pairing, RowKeys, op};
use akunu_types::params::{
    ElementwiseParams, GEMMParams, GatherRowsParams, LayerNormParams, MatrixParams, PosEmbedParams,
    RoPEParams, RowAttentionParams,
};

use super::cache::freq_table;
use super::lowering::{Lowering, ProductShape};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

impl Lowering<'_> {
    pub(super) fn layer_norm(&mut self, norm: &op::LayerNorm) {
        let params = LayerNormParams {
            dim: norm.dim,
            eps: norm.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(LayerNormParams, n_rows), norm.rows.count());
        let key = PipelineKey::plain(KernelId::LayerNorm);
        let bindings = vec![norm.x, norm.weight, norm.bias, norm.to];
        self.push(KernelCall::new(key, &params, bindings, "norm").with_rows([field]));
    }

    pub(super) fn add_learned(&mut self, learned: &op::AddLearned) {
        let params = PosEmbedParams {
            dim: learned.dim,
            n_positions: learned.n_entries,
            by_kind: u32::from(learned.by == LearnedBy::Kind),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(PosEmbedParams, n_rows), Count::Rows);
        let bindings = vec![learned.x, learned.table, self.step().rows.into()];
        let key = PipelineKey::plain(KernelId::PosEmbedAdd);
        self.push(KernelCall::new(key, &params, bindings, "positions").with_rows([field]));
    }

    pub(super) fn gelu(&mut self, &op::Gelu { rows, x, width }: &op::Gelu) {
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, rows.count(), width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(KernelId::GeluErf);
        self.push(KernelCall::new(key, &params, vec![x], "activation").with_rows([field]));
    }

    pub(super) fn halves(&mut self, halves: &op::Halves) {
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, halves.rows.count(), halves.width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(KernelId::Halves);
        let bindings = vec![halves.x, halves.to];
        self.push(KernelCall::new(key, &params, bindings, "halves").with_rows([field]));
    }

    /// A product whose vectors are windows of one signal, and overlap.
    pub(super) fn convolve(&mut self, convolve: &op::Convolve) {
        let &op::Convolve {
            ref weight,
            bias,
            x,
            windows,
            to,
        } = convolve;
        let kernel = self.rules.product_kernel(&ProductShape {
            dtype: weight.dtype,
            rows: windows.count,
            outputs: weight.rows,
            x_offset: x.offset,
        });
        let params = GEMMParams {
            M: windows.count,
            N: weight.rows,
            K: weight.cols,
            lda: windows.stride,
            ldb: weight.cols,
            ldc: weight.rows,
            alpha: 1.0,
            beta: 0.0,
        };
        let key = PipelineKey::plain(kernel);
        let bindings = vec![x, weight.place, to];
        self.push(KernelCall::new(key, &params, bindings, "convolution"));
        let params = MatrixParams {
            rows: windows.count,
            cols: weight.rows,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::BiasAdd);
        self.push(KernelCall::new(key, &params, vec![to, bias], "bias"));
    }

    pub(super) fn rope(&mut self, op: &op::Rope) {
        let rope = &op.rope;
        let params = RoPEParams {
            n_heads: op.n_heads,
            head_dim: op.head_dim,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            ..Default::default()
        };
        let kernel = match rope.pairing {
            Pairing::Interleaved => KernelId::Rope,
            Pairing::Halves => KernelId::RopeNeox,
        };
        let key = PipelineKey {
            kernel,
            constants: freq_table(),
        };
        let field = RowField::new(offset_of!(RoPEParams, n_rows), Count::Rows);
        let bindings = vec![op.x, self.step().rows.into(), rope.divisors];
        self.push(KernelCall::new(key, &params, bindings, "rope").with_rows([field]));
    }

    pub(super) fn attend_rows(&mut self, attend: &op::AttendRows) {
        let step = self.step();
        let op::AttendRows { heads, bias, .. } = attend;
        let (n_keys, n_sequences, reach) = match attend.keys {
            RowKeys::OwnText => (0, 0, 0),
            RowKeys::Nearby { reach } => (0, 0, reach),
            RowKeys::Across { n_keys } => (n_keys, step.n_sequences, 0),
        };
        let kernel = match (n_keys, bias) {
            (0, None) => KernelId::RowAttention,
            (0, Some(_)) => KernelId::RowAttentionBias,
            (_, None) => KernelId::CrossAttention,
            (_, Some(_)) => unreachable!("keys across have no distance"),
        };
        let params = RowAttentionParams {
            n_heads: heads.n_heads,
            n_kv_heads: heads.n_kv_heads,
            head_dim: heads.head_dim,
            n_keys,
            n_sequences,
            scale: attend.scale,
            reach,
            bias_reach: bias.map_or(0, |bias| bias.reach),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RowAttentionParams, n_rows), Count::Rows);
        let mut bindings = vec![attend.q, attend.k, attend.v, attend.to, step.rows.into()];
        bindings.extend(bias.map(|bias| bias.table));
        let key = PipelineKey::plain(kernel);
        self.push(KernelCall::new(key, &params, bindings, "attention").with_rows([field]));
    }

    pub(super) fn mean(&mut self, &op::Mean { from, to, dim }: &op::Mean) {
        let step = self.step();
        let params = GatherRowsParams {
            dim,
            row_capacity: self.program.room.rows(),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GatherRowsParams, n_rows), Count::Outputs);
        let bindings = vec![from, step.outputs.into(), to, step.rows.into()];
        let key = PipelineKey::plain(KernelId::MeanRows);
        self.push(KernelCall::new(key, &params, bindings, "mean of texts").with_rows([field]));
    }
}
