//! `rmsnorm_gemma_f32`: `y[r][i] = x[r][i] / sqrt(mean(x[r]²) + eps) * (1 + weight[i])`.
//!
//! For weights as Gemma's safetensors hold them. GGUF files have the 1 added already and take
//! [`super::rmsnorm`].

use akunu_types::SharedStruct;
use akunu_types::params::RMSNormParams;

use super::{launch_rmsnorm, rmsnorm};
use crate::cost::once;
use crate::table::{Family, KernelRow};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("rmsnorm_gemma_f32", ""),
    dtype: None,
    family: Family::Norm,
    source: "rmsnorm",
    bindings: rmsnorm::BINDINGS,
    params_index: 3,
    params: RMSNormParams::LAYOUT,
    constants: &[],
    launch: launch_rmsnorm,
    required: rmsnorm::required,
    work: once,
    twin,
    cases: |_| rmsnorm::cases(),
};

fn twin(t: &mut Twin) {
    let p: RMSNormParams = t.params();
    let (x, weight) = (t.read::<f32>(0), t.read::<f32>(1));
    let one_more: Vec<f32> = weight.iter().map(|w| 1.0 + w).collect();
    let dim = p.dim as usize;
    let rows = t.write::<f32>(2).chunks_exact_mut(dim);
    for (y, x) in rows.zip(x.chunks_exact(dim)) {
        rmsnorm::rmsnorm(x, &one_more, p.eps, y);
    }
}
