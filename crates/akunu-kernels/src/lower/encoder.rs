//! What encoders have besides: layer norms, learned positions, attention over rows, convolutions, means.

use crate::kernel::activation::activate;
use crate::kernel::attention::row_attention;
use crate::kernel::common::{bias_add, mean_rows};
use crate::kernel::convert::halves;
use crate::kernel::embedding::pos_embed_add;
use crate::kernel::matmul::product;
use crate::kernel::norm::layernorm;
use crate::kernel::rope::{rope, turn_heads};
use std::mem::offset_of;

use akunu_program::{ActivationFunction, Count, LearnedBy, Pairing, RowKeys, op};
use akunu_types::params::{
    ElementwiseParams, GEMMParams, GatherRowsParams, LayerNormParams, MatrixParams, PosEmbedParams,
    RoPEParams, RowAttentionParams, TurnHeadsParams,
};

use super::cache::rope_constants;
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
        let buffers = layernorm::Buffers {
            x: norm.x,
            weight: norm.weight,
            bias: norm.bias,
            y: norm.to,
        };
        self.push(KernelCall::new(key, &params, buffers, "norm").with_rows([field]));
    }

    pub(super) fn add_learned(&mut self, learned: &op::AddLearned) {
        let params = PosEmbedParams {
            dim: learned.dim,
            n_positions: learned.n_entries,
            by_kind: u32::from(learned.by == LearnedBy::Kind),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(PosEmbedParams, n_rows), Count::Rows);
        let buffers = pos_embed_add::Buffers {
            x: learned.x,
            table: learned.table,
            rows: self.step().rows.into(),
        };
        let key = PipelineKey::plain(KernelId::PosEmbedAdd);
        self.push(KernelCall::new(key, &params, buffers, "positions").with_rows([field]));
    }

    pub(super) fn activate(&mut self, activate: &op::Activate) {
        let &op::Activate {
            function,
            rows,
            x,
            width,
        } = activate;
        let kernel = match function {
            ActivationFunction::GeluErf => KernelId::GeluErf,
            ActivationFunction::Gelu => KernelId::Gelu,
            ActivationFunction::ReluSquared => KernelId::ReluSquared,
        };
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, rows.count(), width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(kernel);
        self.push(
            KernelCall::new(key, &params, activate::Buffers { x }, "activation").with_rows([field]),
        );
    }

    pub(super) fn halves(&mut self, halves: &op::Halves) {
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, halves.rows.count(), halves.width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(KernelId::Halves);
        let buffers = halves::Buffers {
            x: halves.x,
            y: halves.to,
        };
        self.push(KernelCall::new(key, &params, buffers, "halves").with_rows([field]));
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
        let buffers = product::Buffers {
            x,
            weight: weight.place,
            y: to,
        };
        self.push(KernelCall::new(key, &params, buffers, "convolution"));
        let params = MatrixParams {
            rows: windows.count,
            cols: weight.rows,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::BiasAdd);
        self.push(KernelCall::new(
            key,
            &params,
            bias_add::Buffers { x: to, bias },
            "bias",
        ));
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
            constants: rope_constants(rope, op.head_dim),
        };
        let field = RowField::new(offset_of!(RoPEParams, n_rows), Count::Rows);
        let buffers = rope::Buffers {
            x: op.x,
            rows: self.step().rows.into(),
            freqs: rope.divisors,
        };
        self.push(KernelCall::new(key, &params, buffers, "rope").with_rows([field]));
    }

    pub(super) fn turn_heads(&mut self, turn: &op::TurnHeads) {
        let params = TurnHeadsParams {
            n_heads: turn.n_heads,
            head_dim: turn.head_dim,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(TurnHeadsParams, n_rows), Count::Rows);
        let buffers = turn_heads::Buffers {
            x: turn.x,
            turns: turn.turns,
        };
        let key = PipelineKey::plain(KernelId::TurnHeads);
        self.push(KernelCall::new(key, &params, buffers, "rope").with_rows([field]));
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
        let key = PipelineKey::plain(kernel);
        let (q, k, v, to) = (attend.q, attend.k, attend.v, attend.to);
        let rows = step.rows.into();
        let label = "attention";
        let call = match (attend.keys, bias) {
            (RowKeys::Across { .. }, _) => {
                let buffers = row_attention::CrossBuffers {
                    Q: q,
                    K: k,
                    V: v,
                    O: to,
                    rows,
                };
                KernelCall::new(key, &params, buffers, label)
            }
            (_, Some(bias)) => {
                let bias = bias.table;
                let buffers = row_attention::BiasedBuffers {
                    Q: q,
                    K: k,
                    V: v,
                    O: to,
                    rows,
                    bias,
                };
                KernelCall::new(key, &params, buffers, label)
            }
            (_, None) => {
                let buffers = row_attention::Buffers {
                    Q: q,
                    K: k,
                    V: v,
                    O: to,
                    rows,
                };
                KernelCall::new(key, &params, buffers, label)
            }
        };
        self.push(call.with_rows([field]));
    }

    pub(super) fn mean(&mut self, &op::Mean { from, to, dim }: &op::Mean) {
        let step = self.step();
        let params = GatherRowsParams {
            dim,
            row_capacity: self.program.room.rows(),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GatherRowsParams, n_rows), Count::Outputs);
        let buffers = mean_rows::Buffers {
            from,
            outputs: step.outputs.into(),
            to,
            rows: step.rows.into(),
        };
        let key = PipelineKey::plain(KernelId::MeanRows);
        self.push(KernelCall::new(key, &params, buffers, "mean of texts").with_rows([field]));
    }
}
