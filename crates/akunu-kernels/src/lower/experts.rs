//! The mixture of experts: a kernel for each operation.

use std::mem::offset_of;

use akunu_program::{Count, ExpertMatrix, Gating, Slice, Weights, op};
use akunu_types::params::{ExpertParams, RouteParams, WeighParams};

use super::lowering::Lowering;
use crate::kernel::experts::{
    HAS_BIASES, HAS_SCALES, expert_down, expert_gate, gate_code, route_experts, weigh_rows,
};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::{BufferSet, KernelId};
use crate::weight::constants_of;

impl Lowering<'_> {
    pub(super) fn route(&mut self, route: &op::Route) {
        let routing = &route.routing;
        let [n_groups, n_groups_used] = routing.groups.unwrap_or([1, 1]);
        let params = RouteParams {
            n_experts: routing.n_experts,
            n_used: routing.n_used,
            gating: match routing.gating {
                Gating::Softmax => route_experts::SOFTMAX,
                Gating::Sigmoid => route_experts::SIGMOID,
                Gating::SoftmaxOfChosen => route_experts::SOFTMAX_OF_CHOSEN,
                Gating::SqrtSoftplus => route_experts::SQRT_SOFTPLUS,
            },
            n_groups,
            n_groups_used,
            normalise: u32::from(routing.normalise),
            has_bias: u32::from(route.bias.is_some()),
            scale: routing.scale,
            layer: route.layer,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(RouteParams, n_rows), Count::Rows);
        // A bias that is not there is not touched.
        let bias = route.bias.unwrap_or(route.logits);
        let buffers = route_experts::Buffers {
            logits: route.logits,
            bias,
            ids: route.ids,
            weights: route.weights,
            fault: route.fault,
        };
        let key = PipelineKey::plain(KernelId::RouteExperts);
        self.push(KernelCall::new(key, &params, buffers, "router").with_rows([field]));
    }

    pub(super) fn expert_gate(&mut self, gated: &op::ExpertGate) {
        let op::ExpertGate { gate, up, .. } = gated;
        let params = gate_params(gated);
        let [x, ids] = [gated.x, gated.ids];
        // What is not there is not touched.
        let [gate_bias, up_bias] = [gate, up].map(|matrix| matrix.bias.unwrap_or(x));
        let [gate_scale, up_scale] = [gate, up].map(|matrix| matrix.scale.unwrap_or(x));
        let buffers = expert_gate::Buffers {
            x,
            ids,
            gate: gate.matrix.place,
            up: up.matrix.place,
            gate_bias,
            up_bias,
            gate_scale,
            up_scale,
            y: gated.to,
        };
        let kernel = self.rules.expert_kernels(gate.matrix.dtype).gate;
        self.push_experts(kernel, gate, &params, buffers, "gate and up of experts");
    }

    pub(super) fn expert_down(&mut self, down: &op::ExpertDown) {
        let op::ExpertDown { weight, x, ids, .. } = down;
        let params = expert_params(weight, down.experts);
        let buffers = expert_down::Buffers {
            x: *x,
            ids: *ids,
            weight: weight.matrix.place,
            bias: weight.bias.unwrap_or(*x),
            scale: weight.scale.unwrap_or(*x),
            y: down.to,
        };
        let kernel = self.rules.expert_kernels(weight.matrix.dtype).down;
        self.push_experts(kernel, weight, &params, buffers, "down of experts");
    }

    fn push_experts(
        &mut self,
        kernel: KernelId,
        weight: &ExpertMatrix,
        params: &ExpertParams,
        buffers: impl BufferSet<Item = Slice>,
        label: &'static str,
    ) {
        let field = RowField::new(offset_of!(ExpertParams, n_rows), Count::Rows);
        let key = PipelineKey {
            kernel,
            constants: constants_of(weight.matrix.storage),
        };
        self.push(KernelCall::new(key, params, buffers, label).with_rows([field]));
    }

    pub(super) fn weigh(&mut self, weigh: &op::Weigh) {
        // One number for all needs no weights: what is bound in their place is not touched.
        let (weighed_by, weights, weight) = match weigh.weights {
            Weights::Numbers(weights) => (weigh_rows::NUMBERS, weights, 0.0),
            Weights::Sigmoids(weights) => (weigh_rows::SIGMOIDS, weights, 0.0),
            Weights::One(weight) => (weigh_rows::ONE_NUMBER, weigh.x, weight),
        };
        let params = WeighParams {
            cols: weigh.width,
            n_used: weigh.n_used,
            add: u32::from(weigh.add),
            weighed_by,
            weight,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(WeighParams, n_rows), weigh.rows.count());
        let buffers = weigh_rows::Buffers {
            x: weigh.x,
            weights,
            y: weigh.to,
        };
        let key = PipelineKey::plain(KernelId::WeighRows);
        self.push(KernelCall::new(key, &params, buffers, "sum of experts").with_rows([field]));
    }
}

/// The params of gate and up.
pub(super) fn gate_params(gated: &op::ExpertGate) -> ExpertParams {
    let second = gated.up.matrix.storage.mlx();
    ExpertParams {
        activation: gate_code(gated.activation),
        packed_1: second.packed_at,
        scales_1: second.scales_at,
        biases_1: second.biases_at,
        ..expert_params(&gated.gate, gated.experts)
    }
}

/// What the products of experts with one weight have in common.
pub(super) fn expert_params(weight: &ExpertMatrix, [n_experts, n_used]: [u32; 2]) -> ExpertParams {
    let mlx = weight.matrix.storage.mlx();
    let flag = |is_there: bool, flag: u32| if is_there { flag } else { 0 };
    ExpertParams {
        n_used,
        n_experts,
        N: weight.rows,
        K: weight.matrix.cols,
        stride: weight.stride,
        flags: flag(weight.bias.is_some(), HAS_BIASES) | flag(weight.scale.is_some(), HAS_SCALES),
        group_size: mlx.group_size,
        scale_type: mlx.scale_type.code(),
        packed_0: mlx.packed_at,
        scales_0: mlx.scales_at,
        biases_0: mlx.biases_at,
        ..Default::default()
    }
}
