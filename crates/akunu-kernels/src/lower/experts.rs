//! The mixture of experts: a kernel for each operation.

use std::mem::offset_of;

use akunu_program::{Count, ExpertMatrix, Gating, op};
use akunu_types::params::{ExpertParams, RouteParams, WeighParams};

use super::lowering::Lowering;
use crate::kernel::experts::{HAS_BIASES, HAS_SCALES, gate_code, route_experts};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;
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
        let bindings = vec![route.logits, bias, route.ids, route.weights, route.fault];
        let key = PipelineKey::plain(KernelId::RouteExperts);
        self.push(KernelCall::new(key, &params, bindings, "router").with_rows([field]));
    }

    pub(super) fn expert_gate(&mut self, gated: &op::ExpertGate) {
        let op::ExpertGate { gate, up, .. } = gated;
        let second = up.matrix.storage.mlx();
        let params = ExpertParams {
            activation: gate_code(gated.activation),
            packed_1: second.packed_at,
            scales_1: second.scales_at,
            biases_1: second.biases_at,
            ..expert_params(gate, gated.experts)
        };
        let [x, ids] = [gated.x, gated.ids];
        // What is not there is not touched.
        let [gate_bias, up_bias] = [gate, up].map(|matrix| matrix.bias.unwrap_or(x));
        let [gate_scale, up_scale] = [gate, up].map(|matrix| matrix.scale.unwrap_or(x));
        let weights = [gate.matrix.place, up.matrix.place];
        let others = [gate_bias, up_bias, gate_scale, up_scale, gated.to];
        let bindings = [&[x, ids], &weights[..], &others[..]].concat();
        let kernel = KernelId::ExpertGate(gate.matrix.dtype);
        self.push_experts(kernel, gate, &params, bindings, "gate and up of experts");
    }

    pub(super) fn expert_down(&mut self, down: &op::ExpertDown) {
        let op::ExpertDown { weight, x, ids, .. } = down;
        let params = expert_params(weight, down.experts);
        let (bias, scale) = (weight.bias.unwrap_or(*x), weight.scale.unwrap_or(*x));
        let bindings = vec![*x, *ids, weight.matrix.place, bias, scale, down.to];
        let kernel = KernelId::ExpertDown(weight.matrix.dtype);
        self.push_experts(kernel, weight, &params, bindings, "down of experts");
    }

    fn push_experts(
        &mut self,
        kernel: KernelId,
        weight: &ExpertMatrix,
        params: &ExpertParams,
        bindings: Vec<akunu_program::Slice>,
        label: &'static str,
    ) {
        let field = RowField::new(offset_of!(ExpertParams, n_rows), Count::Rows);
        let key = PipelineKey {
            kernel,
            constants: constants_of(weight.matrix.storage),
        };
        self.push(KernelCall::new(key, params, bindings, label).with_rows([field]));
    }

    pub(super) fn weigh(&mut self, weigh: &op::Weigh) {
        let params = WeighParams {
            cols: weigh.width,
            n_used: weigh.n_used,
            add: u32::from(weigh.add),
            sigmoid: u32::from(weigh.sigmoid),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(WeighParams, n_rows), Count::Rows);
        let bindings = vec![weigh.x, weigh.weights, weigh.to];
        let key = PipelineKey::plain(KernelId::WeighRows);
        self.push(KernelCall::new(key, &params, bindings, "sum of experts").with_rows([field]));
    }
}

/// What the products of experts with one weight have in common.
fn expert_params(weight: &ExpertMatrix, [n_experts, n_used]: [u32; 2]) -> ExpertParams {
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
