//! Operations on rows that are one kernel on every device: norms, gates, outputs and their masks, the next positions.

use std::mem::offset_of;

use akunu_program::{Count, GateFunction, op};
use akunu_types::params::{
    AdvanceRowsParams, ElementwiseParams, GatherRowsParams, GrammarBitmaskParams,
    LogitSoftcapParams, RMSNormParams,
};

use super::lowering::Lowering;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

impl Lowering<'_> {
    pub(super) fn norm(&mut self, kernel: KernelId, norm: &op::Norm) {
        let params = RMSNormParams {
            dim: norm.dim,
            eps: norm.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RMSNormParams, n_rows), norm.rows.count());
        let key = PipelineKey::plain(kernel);
        let bindings = vec![norm.x, norm.weight, norm.to];
        self.push(KernelCall::new(key, &params, bindings, "norm").with_rows([field]));
    }

    pub(super) fn gate(&mut self, gate: &op::Gate) {
        let kernel = match gate.activation {
            GateFunction::Silu => KernelId::SiluGate,
            GateFunction::Gelu => KernelId::GeluGate,
            GateFunction::GeluErf => KernelId::GeluErfGate,
            GateFunction::SwigluOai => KernelId::SwigluOaiGate,
        };
        let count = offset_of!(ElementwiseParams, count);
        let field = RowField::times(count, Count::Rows, gate.width);
        let params = ElementwiseParams::default();
        let key = PipelineKey::plain(kernel);
        let bindings = vec![gate.gate, gate.up, gate.to];
        self.push(KernelCall::new(key, &params, bindings, "activation").with_rows([field]));
    }

    pub(super) fn gather(&mut self, &op::Gather { from, to, dim }: &op::Gather) {
        let step = self.step();
        let params = GatherRowsParams {
            dim,
            row_capacity: self.program.room.rows(),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GatherRowsParams, n_rows), Count::Outputs);
        let bindings = vec![from, step.outputs.into(), to];
        let key = PipelineKey::plain(KernelId::GatherRows);
        self.push(KernelCall::new(key, &params, bindings, "outputs").with_rows([field]));
    }

    pub(super) fn softcap(&mut self, &op::Softcap { x, width, cap }: &op::Softcap) {
        let params = LogitSoftcapParams {
            cap,
            ..Default::default()
        };
        let count = offset_of!(LogitSoftcapParams, count);
        let field = RowField::times(count, Count::Outputs, width);
        let key = PipelineKey::plain(KernelId::LogitSoftcap);
        self.push(KernelCall::new(key, &params, vec![x], "logit cap").with_rows([field]));
    }

    pub(super) fn mask(&mut self, mask: &op::Mask) {
        let masks = &mask.masks;
        let params = GrammarBitmaskParams {
            vocab_size: mask.vocab_size,
            n_masks: masks.capacity,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(GrammarBitmaskParams, n_rows), Count::Outputs);
        let bindings = vec![mask.logits, masks.bits.into(), masks.rows.into()];
        let key = PipelineKey::plain(KernelId::GrammarBitmask);
        self.push(KernelCall::new(key, &params, bindings, "grammar mask").with_rows([field]));
    }

    pub(super) fn advance(&mut self) {
        let step = self.step();
        let params = AdvanceRowsParams {
            chosen_stride: step.row_capacity,
            max_steps: step.max_steps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(AdvanceRowsParams, n_rows), Count::Singles);
        let bindings = vec![step.rows.into(), step.tokens.into(), step.chosen.into()];
        let key = PipelineKey::plain(KernelId::AdvanceRows);
        self.push(KernelCall::new(key, &params, bindings, "advance").with_rows([field]));
    }
}
