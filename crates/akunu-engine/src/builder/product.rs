//! Products with a weight, in whichever format it is.

use akunu_arch::Activation;
use akunu_kernels::kernel::matmul::select::product_kernel;
use akunu_kernels::plan::Slice;
use akunu_kernels::{Constant, Constants, KernelId};
use akunu_types::params::{ElementwiseParams, GEMMParams, MLXParams, MatrixParams};

use super::Builder;
use crate::error::EngineError;
use crate::weights::Matrix;

/// What a product does with the output it finds.
#[derive(Clone, Copy)]
pub(super) enum Output {
    Overwrite(Slice),
    AddTo(Slice),
}

impl Builder<'_> {
    /// `to = weight · x`, or `to += weight · x`, for every row.
    pub(super) fn product(
        &mut self,
        weight: &Matrix,
        x: Slice,
        to: Output,
        label: &'static str,
    ) -> Result<(), EngineError> {
        let kernel = product_kernel(weight.dtype, self.rows, weight.rows);
        self.push_product(kernel, weight, vec![x, weight.place], to, label)
    }

    /// `to (+)= weight · (act(gate) * up)`: fused for one row, in two steps for many.
    pub(super) fn gated_product(
        &mut self,
        weight: &Matrix,
        gate: Slice,
        up: Slice,
        to: Output,
    ) -> Result<(), EngineError> {
        let (fused, alone) = match self.config.arch.activation {
            Activation::SiluGate => (KernelId::GemvSilu(weight.dtype), KernelId::SiluGate),
            Activation::GeluGate | Activation::Gelu => {
                (KernelId::GemvGelu(weight.dtype), KernelId::GeluGate)
            }
        };
        if self.rows == 1 {
            return self.push_product(fused, weight, vec![gate, up, weight.place], to, "down");
        }
        let count = self.rows * self.config.ffn_dim;
        let params = ElementwiseParams {
            count,
            ..Default::default()
        };
        let activated = Slice::from(self.activations.activated);
        self.plain(alone, &params, vec![gate, up, activated], "activation")?;
        self.product(weight, activated, to, "down")
    }

    fn push_product(
        &mut self,
        kernel: KernelId,
        weight: &Matrix,
        mut bindings: Vec<Slice>,
        to: Output,
        label: &'static str,
    ) -> Result<(), EngineError> {
        let (place, beta) = match to {
            Output::Overwrite(place) => (place, 0.0),
            Output::AddTo(place) => (place, 1.0),
        };
        bindings.push(place);
        if weight.dtype.is_mlx() {
            let params = self.mlx_params(weight, beta);
            return self.push(kernel, group_size(weight), &params, bindings, label);
        }
        let params = GEMMParams {
            M: self.rows,
            N: weight.rows,
            K: weight.cols,
            lda: weight.cols,
            ldb: weight.cols,
            ldc: weight.rows,
            alpha: 1.0,
            beta,
        };
        self.plain(kernel, &params, bindings, label)
    }

    pub(super) fn mlx_params(&self, weight: &Matrix, beta: f32) -> MLXParams {
        let packed = weight.dtype.bytes_of((weight.rows * weight.cols) as usize);
        MLXParams {
            M: self.rows,
            N: weight.rows,
            K: weight.cols,
            group_size: weight.group_size,
            bits: (8 * weight.dtype.block_bytes() / weight.dtype.block_len()) as u32,
            weight_bytes: packed.unwrap_or(0) as u32,
            lda: weight.cols,
            ldc: weight.rows,
            alpha: 1.0,
            beta,
            ..Default::default()
        }
    }

    pub(super) fn bias(&mut self, to: Slice, bias: Slice, width: u32) -> Result<(), EngineError> {
        let params = MatrixParams {
            rows: self.rows,
            cols: width,
            ..Default::default()
        };
        self.plain(KernelId::BiasAdd, &params, vec![to, bias], "bias")
    }
}

pub(super) fn group_size(weight: &Matrix) -> Constants {
    Constants::none().with_u32(Constant::GroupSize, weight.group_size)
}
