//! Experts of many rows: results are sorted by expert, and those of one expert are multiplied together. Where that is done on tensor
//! cores, what is multiplied becomes halves before.

use std::mem::offset_of;

use akunu_program::{Count, Op, Slice, op};
use akunu_types::DType;
use akunu_types::params::{ExpertParams, HalfRowsParams, SortExpertsParams};

use super::experts::{expert_params, gate_params};
use super::lowering::Lowering;
use super::nvidia::{half_stride, halved_bytes};
use crate::kernel::convert::half_rows::{self, Order};
use crate::kernel::experts::select::{GroupedKernel, Routed};
use crate::kernel::experts::sort_experts::{TILE_WORDS, n_tiles};
use crate::kernel::experts::{expert_gemm, sort_experts};
use crate::kernel::nvidia::tensor_experts;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::{BufferSet, KernelId};
use crate::weight::constants_of;

/// Where the sorted results lie, how many their tiles have, and where there is room for rows in halves and their factors.
struct Sorted {
    order: Slice,
    tiles: Slice,
    tile: u32,
    halves: Slice,
    factors: Slice,
}

/// Whether a kernel reads rows of halves.
fn reads_halves(kernel: KernelId) -> bool {
    kernel.row().bindings == tensor_experts::Buffers::<()>::BINDINGS
}

impl Lowering<'_> {
    /// Lowers the products of experts at the beginning of `ops` as grouped ones, where `kernel_of` has a kernel for their format and so
    /// many rows and experts; how many operations.
    pub(super) fn grouped_experts(
        &mut self,
        ops: &[Op],
        kernel_of: impl Fn(DType, &Routed) -> Option<GroupedKernel>,
    ) -> Option<usize> {
        let [Op::ExpertGate(gate), Op::ExpertDown(down), ..] = ops else {
            return None;
        };
        let [n_experts, n_used] = gate.experts;
        let routed = Routed {
            n_rows: self.program.room.rows(),
            n_used,
            n_experts,
        };
        let n_results = routed.n_results();
        let kernel_of = |dtype| kernel_of(dtype, &routed);
        let first = kernel_of(gate.gate.matrix.dtype)?;
        let second = kernel_of(down.weight.matrix.dtype)?;
        let are_alike = (gate.ids, gate.experts) == (down.ids, down.experts);
        if !are_alike || first.tile != second.tile {
            return None;
        }
        let n_tiles = n_tiles(n_results, n_experts, first.tile) as usize;
        let bytes = [n_results as usize, n_tiles * TILE_WORDS as usize].map(|len| 4 * len);
        let halved = |kernel, n_rows, cols| match reads_halves(kernel) {
            true => halved_bytes(n_rows, half_stride(cols, Order::Rows), Order::Rows),
            false => [0; 2],
        };
        let of_gate = halved(first.kernel, routed.n_rows, gate.gate.matrix.cols);
        let of_down = halved(second.kernel, n_results, down.weight.matrix.cols);
        let [order, tiles, factors, halves] = self.scratch([
            bytes[0],
            bytes[1],
            of_gate[0].max(of_down[0]),
            of_gate[1].max(of_down[1]),
        ])?;
        let sorted = Sorted {
            order,
            tiles,
            tile: first.tile,
            halves,
            factors,
        };
        self.halved = None;
        self.sort(gate.ids, gate.experts, &sorted);
        self.grouped_gate(first.kernel, gate, &sorted);
        self.grouped_down(second.kernel, down, &sorted);
        Some(2)
    }

    fn sort(&mut self, ids: Slice, [n_experts, n_used]: [u32; 2], sorted: &Sorted) {
        let params = SortExpertsParams {
            n_experts,
            tile: sorted.tile,
            ..Default::default()
        };
        let buffers = sort_experts::Buffers {
            ids,
            order: sorted.order,
            tiles: sorted.tiles,
        };
        let n_results = offset_of!(SortExpertsParams, n_results);
        let field = RowField::times(n_results, Count::Rows, n_used);
        let key = PipelineKey::plain(KernelId::SortExperts);
        self.push(KernelCall::new(key, &params, buffers, "sort by expert").with_rows([field]));
    }

    fn grouped_gate(&mut self, kernel: KernelId, gated: &op::ExpertGate, sorted: &Sorted) {
        let op::ExpertGate { gate, up, x, .. } = gated;
        let params = ExpertParams {
            is_gated: 1,
            ..gate_params(gated)
        };
        let buffers = expert_gemm::Buffers {
            x: *x,
            order: sorted.order,
            tiles: sorted.tiles,
            weight: gate.matrix.place,
            up: up.matrix.place,
            // What is not there is not touched.
            bias: gate.bias.unwrap_or(*x),
            up_bias: up.bias.unwrap_or(*x),
            scale: gate.scale.unwrap_or(*x),
            up_scale: up.scale.unwrap_or(*x),
            y: gated.to,
        };
        let constants = constants_of(gate.matrix.storage);
        let key = PipelineKey { kernel, constants };
        self.push_grouped(key, params, buffers, sorted, "gate and up of experts");
    }

    fn grouped_down(&mut self, kernel: KernelId, down: &op::ExpertDown, sorted: &Sorted) {
        let op::ExpertDown { weight, x, .. } = down;
        let buffers = expert_gemm::Buffers {
            x: *x,
            order: sorted.order,
            tiles: sorted.tiles,
            weight: weight.matrix.place,
            up: *x,
            bias: weight.bias.unwrap_or(*x),
            up_bias: *x,
            scale: weight.scale.unwrap_or(*x),
            up_scale: *x,
            y: down.to,
        };
        let constants = constants_of(weight.matrix.storage);
        let key = PipelineKey { kernel, constants };
        let params = expert_params(weight, down.experts);
        self.push_grouped(key, params, buffers, sorted, "down of experts");
    }

    fn push_grouped(
        &mut self,
        key: PipelineKey,
        params: ExpertParams,
        buffers: expert_gemm::Buffers<Slice>,
        sorted: &Sorted,
        label: &'static str,
    ) {
        let params = ExpertParams {
            tile: sorted.tile,
            ..params
        };
        let field = RowField::new(offset_of!(ExpertParams, n_rows), Count::Rows);
        let call = match reads_halves(key.kernel) {
            true => {
                let params = ExpertParams {
                    lda: half_stride(params.K, Order::Rows),
                    ..params
                };
                let of_a_row = if params.is_gated != 0 {
                    1
                } else {
                    params.n_used
                };
                self.halve(buffers.x, of_a_row, &params, sorted);
                let buffers = tensor_experts::Buffers {
                    x: sorted.halves,
                    order: buffers.order,
                    tiles: buffers.tiles,
                    weight: buffers.weight,
                    up: buffers.up,
                    bias: buffers.bias,
                    up_bias: buffers.up_bias,
                    scale: buffers.scale,
                    up_scale: buffers.up_scale,
                    y: buffers.y,
                    factor: sorted.factors,
                };
                KernelCall::new(key, &params, buffers, label)
            }
            false => KernelCall::new(key, &params, buffers, label),
        };
        self.push(call.with_rows([field]));
    }

    /// Makes x halves, of which each row of the step has so many rows.
    fn halve(&mut self, x: Slice, of_a_row: u32, params: &ExpertParams, sorted: &Sorted) {
        let buffers = half_rows::Buffers {
            x,
            y: sorted.halves,
            factor: sorted.factors,
        };
        let params = HalfRowsParams {
            cols: params.K,
            stride: params.lda,
            order: Order::Rows.code(),
            ..Default::default()
        };
        let field = RowField::times(offset_of!(HalfRowsParams, rows), Count::Rows, of_a_row);
        let key = PipelineKey::plain(KernelId::HalfRows);
        self.push(KernelCall::new(key, &params, buffers, "to halves").with_rows([field]));
    }
}
