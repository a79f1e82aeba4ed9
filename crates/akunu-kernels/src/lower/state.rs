//! Layers with a state: a kernel for each operation.

use std::mem::offset_of;

use akunu_program::{ConvForm, Count, GateOrder, HeadOrder, op};
use akunu_types::params::{
    DeltaRuleParams, GatedNormParams, ShortConvParams, SplitHeadsParams, SsdParams,
};

use super::lowering::Lowering;
use crate::constant::{Constant, Constants};
use crate::kernel::state::{delta_rule, gated_norm, short_conv, split_heads, ssd};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

impl Lowering<'_> {
    pub(super) fn short_conv(&mut self, conv: &op::ShortConv) {
        let params = ShortConvParams {
            stride: conv.stride,
            width: conv.width,
            taps: conv.taps,
            n_blocks: conv.state.n_blocks,
            form: match conv.form {
                ConvForm::Silu => short_conv::SILU,
                ConvForm::Gated => short_conv::GATED,
                ConvForm::Plain => short_conv::PLAIN,
            },
            has_bias: u32::from(conv.bias.is_some()),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ShortConvParams, n_rows), Count::Rows);
        let buffers = short_conv::Buffers {
            x: conv.x,
            weight: conv.weight,
            // A bias that is not there is not touched.
            bias: conv.bias.unwrap_or(conv.weight),
            rows: self.step().rows.into(),
            states: conv.state.blocks.into(),
            to: conv.to,
        };
        let key = PipelineKey::plain(KernelId::ShortConv);
        self.push(KernelCall::new(key, &params, buffers, "convolution").with_rows([field]));
    }

    pub(super) fn delta_rule(&mut self, rule: &op::DeltaRule) {
        let params = DeltaRuleParams {
            key_heads: rule.key_heads,
            value_heads: rule.value_heads,
            head_dim: rule.head_dim,
            n_blocks: rule.state.n_blocks,
            grouped: match rule.order {
                HeadOrder::Tiled => 0,
                HeadOrder::Grouped => 1,
            },
            eps: rule.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(DeltaRuleParams, n_rows), Count::Rows);
        let buffers = delta_rule::Buffers {
            qkv: rule.qkv,
            beta: rule.beta,
            alpha: rule.alpha,
            decay: rule.decay,
            dt_bias: rule.dt_bias,
            rows: self.step().rows.into(),
            states: rule.state.blocks.into(),
            to: rule.to,
        };
        let key = PipelineKey {
            kernel: KernelId::DeltaRule,
            constants: Constants::none().with_u32(Constant::HeadDim, rule.head_dim),
        };
        self.push(KernelCall::new(key, &params, buffers, "delta rule").with_rows([field]));
    }

    pub(super) fn ssd(&mut self, op: &op::Ssd) {
        let params = SsdParams {
            heads: op.heads,
            head_dim: op.head_dim,
            groups: op.groups,
            state_size: op.state_size,
            n_blocks: op.state.n_blocks,
            dt_stride: op.dt_stride,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(SsdParams, n_rows), Count::Rows);
        let buffers = ssd::Buffers {
            xbc: op.xbc,
            dt: op.dt,
            dt_bias: op.dt_bias,
            a: op.a,
            d: op.d,
            rows: self.step().rows.into(),
            states: op.state.blocks.into(),
            to: op.to,
        };
        let key = PipelineKey::plain(KernelId::Ssd);
        self.push(KernelCall::new(key, &params, buffers, "state of Mamba-2").with_rows([field]));
    }

    pub(super) fn gated_norm(&mut self, norm: &op::GatedNorm) {
        let params = GatedNormParams {
            pieces: norm.pieces,
            width: norm.width,
            gate_stride: norm.gate_stride,
            gate_first: match norm.order {
                GateOrder::AfterNorm => 0,
                GateOrder::BeforeNorm => 1,
            },
            own_weights: u32::from(norm.own_weights),
            eps: norm.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GatedNormParams, n_rows), Count::Rows);
        let buffers = gated_norm::Buffers {
            x: norm.x,
            gate: norm.gate,
            weight: norm.weight,
            to: norm.to,
        };
        let key = PipelineKey::plain(KernelId::GatedNorm);
        self.push(KernelCall::new(key, &params, buffers, "gated norm").with_rows([field]));
    }

    pub(super) fn split_heads(&mut self, split: &op::SplitHeads) {
        let params = SplitHeadsParams {
            n_heads: split.n_heads,
            head_dim: split.head_dim,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(SplitHeadsParams, n_rows), Count::Rows);
        let buffers = split_heads::Buffers {
            x: split.x,
            first: split.first,
            second: split.second,
        };
        let key = PipelineKey::plain(KernelId::SplitHeads);
        self.push(KernelCall::new(key, &params, buffers, "split heads").with_rows([field]));
    }
}
