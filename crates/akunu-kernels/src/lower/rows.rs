//! Operations on rows that are one kernel on every device: norms, gates, outputs and their masks, the next positions.

use crate::kernel::activation::gate;
use crate::kernel::attention::logit_softcap;
use crate::kernel::common::{copy_pieces, gather_rows};
use crate::kernel::norm::{rmsnorm, rmsnorm_residual};
use crate::kernel::sampling::advance_rows;
use crate::kernel::sampling::grammar_bitmask;
use std::mem::offset_of;

use akunu_program::{Count, GateFunction, op};
use akunu_types::params::{
    AdvanceRowsParams, CopyPiecesParams, ElementwiseParams, GatherRowsParams, GrammarBitmaskParams,
    LogitSoftcapParams, RMSNormParams,
};

use super::lowering::Lowering;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

impl Lowering<'_> {
    pub(super) fn norm(&mut self, norm: &op::Norm) {
        let params = RMSNormParams {
            dim: norm.dim,
            eps: norm.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RMSNormParams, n_rows), norm.rows.count());
        let key = PipelineKey::plain(KernelId::RmsNorm);
        let buffers = rmsnorm::Buffers {
            x: norm.x,
            weight: norm.weight,
            y: norm.to,
        };
        self.push(KernelCall::new(key, &params, buffers, "norm").with_rows([field]));
    }

    /// A head is a row of its own.
    pub(super) fn head_norm(&mut self, norm: &op::HeadNorm) {
        let params = RMSNormParams {
            dim: norm.head_dim,
            eps: norm.eps,
            ..Default::default()
        };
        let n_rows = offset_of!(RMSNormParams, n_rows);
        let field = RowField::times(n_rows, Count::Rows, norm.n_heads);
        let key = PipelineKey::plain(KernelId::RmsNorm);
        let buffers = rmsnorm::Buffers {
            x: norm.x,
            weight: norm.weight,
            y: norm.to,
        };
        self.push(KernelCall::new(key, &params, buffers, "head norm").with_rows([field]));
    }

    pub(super) fn add_norm(&mut self, norm: &op::AddNorm) {
        let params = RMSNormParams {
            dim: norm.dim,
            eps: norm.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RMSNormParams, n_rows), Count::Rows);
        let key = PipelineKey::plain(KernelId::RmsNormResidual);
        let buffers = rmsnorm_residual::Buffers {
            x: norm.x,
            weight: norm.weight,
            h: norm.to,
        };
        self.push(KernelCall::new(key, &params, buffers, "norm").with_rows([field]));
    }

    pub(super) fn gate(&mut self, gate: &op::Gate) {
        let kernel = match gate.activation {
            GateFunction::Silu => KernelId::SiluGate,
            GateFunction::Gelu => KernelId::GeluGate,
            GateFunction::GeluErf => KernelId::GeluErfGate,
            GateFunction::Sigmoid => KernelId::SigmoidGate,
            GateFunction::SwigluOai => KernelId::SwigluOaiGate,
        };
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, Count::Rows, gate.width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(kernel);
        let buffers = gate::Buffers {
            gate: gate.gate,
            up: gate.up,
            y: gate.to,
        };
        self.push(KernelCall::new(key, &params, buffers, "activation").with_rows([field]));
    }

    pub(super) fn gather(&mut self, &op::Gather { from, to, dim }: &op::Gather) {
        let step = self.step();
        let params = GatherRowsParams {
            dim,
            row_capacity: self.program.room.rows(),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GatherRowsParams, n_rows), Count::Outputs);
        let buffers = gather_rows::Buffers {
            from,
            outputs: step.outputs.into(),
            to,
        };
        let key = PipelineKey::plain(KernelId::GatherRows);
        self.push(KernelCall::new(key, &params, buffers, "outputs").with_rows([field]));
    }

    pub(super) fn copy_pieces(&mut self, copy: &op::CopyPieces) {
        let params = CopyPiecesParams {
            pieces: copy.pieces,
            width: copy.width,
            x_row: copy.x_strides[0],
            x_piece: copy.x_strides[1],
            y_row: copy.to_strides[0],
            y_piece: copy.to_strides[1],
            ..Default::default()
        };
        let field = RowField::new(offset_of!(CopyPiecesParams, n_rows), Count::Rows);
        let buffers = copy_pieces::Buffers {
            x: copy.x,
            y: copy.to,
        };
        let key = PipelineKey::plain(KernelId::CopyPieces);
        self.push(KernelCall::new(key, &params, buffers, "copy pieces").with_rows([field]));
    }

    pub(super) fn softcap(&mut self, &op::Softcap { x, width, cap }: &op::Softcap) {
        let params = LogitSoftcapParams {
            cap,
            ..Default::default()
        };
        let count = offset_of!(LogitSoftcapParams, count);
        let field = RowField::times(count, Count::Outputs, width);
        let key = PipelineKey::plain(KernelId::LogitSoftcap);
        self.push(
            KernelCall::new(
                key,
                &params,
                logit_softcap::Buffers { logits: x },
                "logit cap",
            )
            .with_rows([field]),
        );
    }

    pub(super) fn mask(&mut self, mask: &op::Mask) {
        let masks = &mask.masks;
        let params = GrammarBitmaskParams {
            vocab_size: mask.vocab_size,
            n_masks: masks.capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GrammarBitmaskParams, n_rows), Count::Outputs);
        let buffers = grammar_bitmask::Buffers {
            logits: mask.logits,
            masks: masks.bits.into(),
            mask_rows: masks.rows.into(),
        };
        let key = PipelineKey::plain(KernelId::GrammarBitmask);
        self.push(KernelCall::new(key, &params, buffers, "grammar mask").with_rows([field]));
    }

    pub(super) fn advance(&mut self) {
        let step = self.step();
        let params = AdvanceRowsParams {
            chosen_stride: step.row_capacity,
            max_steps: step.max_steps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(AdvanceRowsParams, n_rows), Count::Singles);
        let buffers = advance_rows::Buffers {
            rows: step.rows.into(),
            tokens: step.tokens.into(),
            chosen: step.chosen.into(),
        };
        let key = PipelineKey::plain(KernelId::AdvanceRows);
        self.push(KernelCall::new(key, &params, buffers, "advance").with_rows([field]));
    }
}
