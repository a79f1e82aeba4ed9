//! Experts of many rows: results are sorted by expert, and those of one expert are multiplied together.

use std::mem::offset_of;

use akunu_program::{Count, Op, Slice, op};
use akunu_types::DType;
use akunu_types::params::{ExpertParams, SortExpertsParams};

use super::experts::{expert_params, gate_params};
use super::lowering::Lowering;
use crate::kernel::experts::select::GroupedKernel;
use crate::kernel::experts::sort_experts::{TILE_WORDS, n_tiles};
use crate::kernel::experts::{expert_gemm, sort_experts};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;
use crate::weight::constants_of;

/// Where the sorted results lie, and the tiles of how many they have.
struct Sorted {
    order: Slice,
    tiles: Slice,
    tile: u32,
}

impl Lowering<'_> {
    /// Lowers the products of experts at the beginning of `ops` as grouped ones, where `kernel_of` has a kernel for a format and so
    /// many results of so many experts; how many operations.
    pub(super) fn grouped_experts(
        &mut self,
        ops: &[Op],
        kernel_of: impl Fn(DType, [u32; 2]) -> Option<GroupedKernel>,
    ) -> Option<usize> {
        let [Op::ExpertGate(gate), Op::ExpertDown(down), ..] = ops else {
            return None;
        };
        let [n_experts, n_used] = gate.experts;
        let n_results = self.program.room.rows().saturating_mul(n_used);
        let kernel_of = |dtype| kernel_of(dtype, [n_results, n_experts]);
        let first = kernel_of(gate.gate.matrix.dtype)?;
        let second = kernel_of(down.weight.matrix.dtype)?;
        let are_alike = (gate.ids, gate.experts) == (down.ids, down.experts);
        if !are_alike || first.tile != second.tile {
            return None;
        }
        let n_tiles = n_tiles(n_results, n_experts, first.tile) as usize;
        let bytes = [n_results as usize, n_tiles * TILE_WORDS as usize].map(|len| 4 * len);
        let [order, tiles] = self.scratch(bytes)?;
        let sorted = Sorted {
            order,
            tiles,
            tile: first.tile,
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
        self.push(KernelCall::new(key, &params, buffers, label).with_rows([field]));
    }
}
