//! Barriers that a plan has and this device does without.
//!
//! A norm of one row takes less time than a barrier. So every part computes it for itself, and the products that read
//! it continue at once with their own copy. q, k and v, or gate and up, then follow without a barrier.

use akunu_kernels::kernel::matmul::product;
use akunu_kernels::kernel::norm::rmsnorm;
use akunu_kernels::{Dispatch, KernelId, Plan};
use akunu_program::Counts;
use akunu_types::params::RMSNormParams;

use crate::isa::Isa;

/// Whether each dispatch is a norm that only products read before the next barrier but one: in a step with one row they need no
/// barrier between, if every part computes the norm for itself.
pub(crate) fn joins(plan: &Plan, isa: Isa) -> Vec<bool> {
    let indices = 0..plan.dispatches().len();
    indices
        .map(|index| isa != Isa::Scalar && can_join(plan, index))
        .collect()
}

fn can_join(plan: &Plan, index: usize) -> bool {
    let dispatches = plan.dispatches();
    let norm = &dispatches[index];
    let first = index + 1;
    let is_start = first < dispatches.len() && plan.barrier_before(first);
    if norm.kernel != KernelId::RmsNorm || !is_start {
        return false;
    }
    let mut group = (first..dispatches.len())
        .take_while(|&at| at == first || !plan.barrier_before(at))
        .map(|at| &dispatches[at]);
    group.all(|dispatch| reads_only(dispatch, norm))
}

/// Whether a norm has one row in such a step.
pub(crate) fn has_one_row(norm: &Dispatch, counts: &Counts) -> bool {
    let params: RMSNormParams = bytemuck::pod_read_unaligned(norm.params_for(counts).as_bytes());
    params.n_rows == 1
}

/// Whether a dispatch is a product of what the norm gives, and writes neither that nor what the norm reads.
fn reads_only(dispatch: &Dispatch, norm: &Dispatch) -> bool {
    let is_product = matches!(dispatch.kernel, KernelId::Gemv(_));
    const NORM: rmsnorm::Buffers<usize> = rmsnorm::Buffers::PLACES;
    const PRODUCT: product::Buffers<usize> = product::Buffers::PLACES;
    let y = norm.bindings[NORM.y];
    let place = |dispatch: &Dispatch, at: usize| {
        (dispatch.bindings[at].buffer, dispatch.extents()[at].clone())
    };
    let is_elsewhere = || {
        let (buffer, written) = place(dispatch, PRODUCT.y);
        [NORM.x, NORM.y].into_iter().all(|at| {
            let (other, bytes) = place(norm, at);
            buffer != other || written.end <= bytes.start || bytes.end <= written.start
        })
    };
    is_product && dispatch.bindings[PRODUCT.x] == y && is_elsewhere()
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_kernels::kernel::common::bias_add;
    use akunu_kernels::pipeline::HostPipelines;
    use akunu_kernels::plan::RowField;
    use akunu_kernels::{KernelCall, PipelineKey};
    use akunu_program::{Buffer, Count, Room, Slice};
    use akunu_types::DType;
    use akunu_types::params::{GEMMParams, MatrixParams};
    use std::mem::offset_of;

    const DIM: u32 = 32;

    /// Buffers of so many rows.
    fn vectors<const N: usize>(first_id: u32, rows: u32) -> [Slice; N] {
        std::array::from_fn(|at| {
            let buffer = Buffer {
                id: first_id + at as u32,
                generation: 0,
                len: (4 * DIM * rows) as usize,
                writable: true,
            };
            buffer.into()
        })
    }

    fn norm(n_rows: u32, [x, weight, y]: [Slice; 3]) -> KernelCall {
        let params = RMSNormParams {
            dim: DIM,
            n_rows,
            eps: 1e-5,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::RmsNorm);
        KernelCall::new(key, &params, rmsnorm::Buffers { x, weight, y }, "norm")
    }

    fn product([x, weight, y]: [Slice; 3]) -> KernelCall {
        let params = GEMMParams {
            M: 1,
            N: DIM,
            K: DIM,
            lda: DIM,
            ldb: DIM,
            ldc: DIM,
            alpha: 1.0,
            beta: 0.0,
        };
        let key = PipelineKey::plain(KernelId::Gemv(DType::F32));
        KernelCall::new(key, &params, product::Buffers { x, weight, y }, "product")
    }

    /// Whether the first call joins the next in a step of these rows.
    fn joins_with(calls: &[&KernelCall], room: Counts, counts: Counts) -> bool {
        let room = Room {
            counts: room,
            ..Default::default()
        };
        let calls = calls.iter().copied().cloned().collect();
        let plan = Plan::make(calls, room, &mut HostPipelines::default()).unwrap();
        super::joins(&plan, Isa::detect())[0] && has_one_row(&plan.dispatches()[0], &counts)
    }

    fn joins(calls: &[&KernelCall]) -> bool {
        joins_with(calls, Counts::default(), Counts::default())
    }

    /// Fails if a norm is shared that others than products read, or that a product changes under the hands of a part
    /// that still reads it.
    #[test]
    fn only_products_of_a_single_row_go_on_without_a_barrier() {
        let [h, w, x, q, k] = vectors(0, 1);
        let [weight] = vectors(5, DIM);
        let one = norm(1, [h, w, x]);
        let to_q = product([x, weight, q]);
        let to_k = product([x, weight, k]);
        assert!(joins(&[&one, &to_q, &to_k]));
        assert!(!joins(&[&one]), "nobody reads it");
        let to_h = product([x, weight, h]);
        assert!(!joins(&[&one, &to_h]), "it overwrites what the norm reads");
        let of_h = product([h, weight, k]);
        assert!(!joins(&[&one, &to_q, &of_h]), "it reads something else");
        let params = MatrixParams {
            rows: 1,
            cols: DIM,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::BiasAdd);
        let bias = KernelCall::new(key, &params, bias_add::Buffers { x, bias: w }, "bias");
        assert!(!joins(&[&one, &bias]), "no product");
    }

    /// A program with room for two rows, run with one and with two.
    #[test]
    fn the_rows_of_the_step_decide() {
        let [h, x] = vectors(0, 2);
        let [w, q] = vectors(2, 1);
        let [weight] = vectors(4, DIM);
        let field = RowField::new(offset_of!(RMSNormParams, n_rows), Count::Rows);
        let some = norm(0, [h, w, x]).with_rows([field]);
        let to_q = product([x, weight, q]);
        let singles = |singles| Counts {
            singles,
            ..Default::default()
        };
        assert!(joins_with(&[&some, &to_q], singles(2), singles(1)));
        let both = joins_with(&[&some, &to_q], singles(2), singles(2));
        assert!(!both, "two rows are worth sharing");
    }
}
