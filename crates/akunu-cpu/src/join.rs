//! Barriers that a plan has and this device does without.
//!
//! A norm of one row takes less time than a barrier. So every part computes it for itself, and the products that read
//! it go on at once with their own copy. q, k and v, or gate and up, then follow without anybody waiting.

use akunu_kernels::{Dispatch, KernelId, Plan};
use akunu_types::params::RMSNormParams;

use crate::isa::Isa;

/// Whether dispatch `index` is a norm of one row that only products read before the next barrier but one: they need no
/// barrier between, if every part computes the norm for itself.
pub(crate) fn joins_next(plan: &Plan, index: usize, isa: Isa) -> bool {
    let dispatches = plan.dispatches();
    let norm = &dispatches[index];
    if isa == Isa::Scalar || norm.kernel != KernelId::RmsNorm || n_rows(norm) != 1 {
        return false;
    }
    let first = index + 1;
    let is_start = first < dispatches.len() && plan.barrier_before(first);
    let mut group = (first..dispatches.len())
        .take_while(|&at| at == first || !plan.barrier_before(at))
        .map(|at| &dispatches[at]);
    is_start && group.all(|dispatch| reads_only(dispatch, norm))
}

fn n_rows(norm: &Dispatch) -> u32 {
    let params: RMSNormParams = bytemuck::pod_read_unaligned(norm.params.as_bytes());
    params.n_rows
}

/// Whether a dispatch is a product of what the norm gives, and writes neither that nor what the norm reads.
fn reads_only(dispatch: &Dispatch, norm: &Dispatch) -> bool {
    let is_product = matches!(
        dispatch.kernel,
        KernelId::Gemv(_) | KernelId::GemvWide(_) | KernelId::GemvBatched(_)
    );
    let (x, y) = (norm.bindings[0], norm.bindings[2]);
    let is_elsewhere = |at: usize| {
        let buffer = dispatch.bindings[at].buffer;
        buffer != x.buffer && buffer != y.buffer
    };
    is_product && dispatch.bindings[0] == y && is_elsewhere(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuDevice, CpuOptions};
    use akunu_kernels::plan::Slice;
    use akunu_kernels::{Buffer, Device, PipelineKey};
    use akunu_types::DType;
    use akunu_types::params::{GEMMParams, MatrixParams};

    const DIM: u32 = 32;

    fn device() -> CpuDevice {
        CpuDevice::new(CpuOptions::default()).unwrap()
    }

    fn vector(device: &mut CpuDevice, rows: u32) -> Buffer {
        let bytes = (4 * DIM * rows) as usize;
        device.allocate(bytes, "vectors").unwrap()
    }

    fn norm(device: &mut CpuDevice, n_rows: u32, bindings: [Buffer; 3]) -> Dispatch {
        let params = RMSNormParams {
            dim: DIM,
            n_rows,
            eps: 1e-5,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::RmsNorm);
        let bindings = bindings.map(Slice::from).to_vec();
        Dispatch::new(device, key, &params, bindings, "norm").unwrap()
    }

    fn product(device: &mut CpuDevice, bindings: [Buffer; 3]) -> Dispatch {
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
        let bindings = bindings.map(Slice::from).to_vec();
        Dispatch::new(device, key, &params, bindings, "product").unwrap()
    }

    fn joins(dispatches: Vec<Dispatch>) -> bool {
        let plan = Plan::check(dispatches, 0).unwrap();
        joins_next(&plan, 0, Isa::detect())
    }

    /// Fails if a norm is shared that others than products read, or that a product changes under the hands of a part
    /// that still reads it.
    #[test]
    fn only_products_of_a_single_row_go_on_without_a_barrier() {
        let mut d = device();
        let [h, w, x, q, k] = [1; 5].map(|rows| vector(&mut d, rows));
        let weight = vector(&mut d, DIM);
        let one = norm(&mut d, 1, [h, w, x]);
        let to_q = product(&mut d, [x, weight, q]);
        let to_k = product(&mut d, [x, weight, k]);
        assert!(joins(vec![one.clone(), to_q.clone(), to_k.clone()]));
        assert!(!joins(vec![one.clone()]), "nobody reads it");
        let to_h = product(&mut d, [x, weight, h]);
        assert!(
            !joins(vec![one.clone(), to_h]),
            "it overwrites what the norm reads"
        );
        let of_h = product(&mut d, [h, weight, k]);
        assert!(
            !joins(vec![one.clone(), to_q.clone(), of_h]),
            "it reads something else"
        );
        let params = MatrixParams {
            rows: 1,
            cols: DIM,
            ..Default::default()
        };
        let key = PipelineKey::plain(KernelId::BiasAdd);
        let bias = Dispatch::new(&mut d, key, &params, vec![x.into(), w.into()], "bias").unwrap();
        assert!(!joins(vec![one, bias]), "no product");
        let [h2, x2] = [2; 2].map(|rows| vector(&mut d, rows));
        let two = norm(&mut d, 2, [h2, w, x2]);
        let to_q = product(&mut d, [x2, weight, q]);
        assert!(!joins(vec![two, to_q]), "two rows are worth sharing");
    }
}
