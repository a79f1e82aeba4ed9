//! Products.

use akunu_kernels::kernel::matmul::product;
use akunu_kernels::kernel::nvidia::{decode_gemm, shared_gemm, tensor_gemm};
use akunu_kernels::lower::nvidia::select::n_parts;
use akunu_kernels::table::BufferSet;
use akunu_kernels::{Constants, KernelCall, KernelId, PipelineKey};
use akunu_program::{DeviceError, Slice};
use akunu_types::params::{DecodeGemmParams, GEMMParams};

use super::bench::{Bench, Part, Timed};

impl Bench<'_> {
    fn decode_product(
        &mut self,
        kernel: KernelId,
        (m, n, k): (u32, u32, u32),
    ) -> Result<Timed, DeviceError> {
        let mut params = DecodeGemmParams {
            M: m,
            K: k,
            lda: k,
            N0: n,
            n_parts: 1,
            ..Default::default()
        };
        let row = kernel.row();
        params.n_parts = n_parts(kernel, &params, &self.chip);
        let counters = self.part(Part::Counters);
        self.device
            .write(counters.buffer, counters.offset, &[0; 4096])?;
        let none = Constants::none();
        let required = (row.required)(&row.args(bytemuck::bytes_of(&params), &none));
        let room = (self.effort.weights / required[1]).max(1);
        let calls = (0..self.effort.calls).map(|at| {
            let weight = Slice {
                buffer: self.memory,
                offset: (at % room) * required[1] / 256 * 256,
            };
            let [x, y, factors] = [Part::X, Part::Y, Part::Factors].map(|at| self.part(at));
            let parts = Slice {
                offset: y.offset + required[4].next_multiple_of(256),
                ..y
            };
            let own = decode_gemm::Buffers {
                x,
                weight_0: weight,
                weight_1: weight,
                weight_2: weight,
                y_0: y,
                y_1: y,
                y_2: y,
                scale: factors,
            };
            let key = PipelineKey::plain(kernel);
            if row.bindings == decode_gemm::Buffers::<()>::BINDINGS {
                return KernelCall::new(key, &params, own, "product");
            }
            let buffers = shared_gemm::Buffers::with_parts(own, parts, counters);
            KernelCall::new(key, &params, buffers, "product")
        });
        let calls: Vec<KernelCall> = calls.collect();
        self.time(calls, required[1])
    }

    /// Times a product of M rows with N outputs of K inputs: `(M, N, K)`.
    pub fn product(
        &mut self,
        kernel: KernelId,
        (m, n, k): (u32, u32, u32),
    ) -> Result<Timed, DeviceError> {
        if matches!(
            kernel,
            KernelId::DecodeGemm(_)
                | KernelId::DecodeGemmDouble(_)
                | KernelId::DecodeGemmWide(_)
                | KernelId::DecodeGemmWidest(_)
                | KernelId::AsyncGemm32(_)
                | KernelId::AsyncGemm64(_)
                | KernelId::AsyncGemm128(_)
        ) {
            return self.decode_product(kernel, (m, n, k));
        }
        let params = GEMMParams {
            M: m,
            N: n,
            K: k,
            lda: k,
            ldb: k,
            ldc: n,
            alpha: 1.0,
            beta: 0.0,
        };
        let row = kernel.row();
        let none = Constants::none();
        let required = (row.required)(&row.args(bytemuck::bytes_of(&params), &none));
        let room = (self.effort.weights / required[1]).max(1);
        let calls = (0..self.effort.calls).map(|at| {
            let weight = Slice {
                buffer: self.memory,
                offset: (at % room) * required[1] / 256 * 256,
            };
            let [x, y, scale] = [Part::X, Part::Y, Part::Factors].map(|at| self.part(at));
            let key = PipelineKey::plain(kernel);
            if row.bindings == product::Buffers::<()>::BINDINGS {
                return KernelCall::new(key, &params, product::Buffers { x, weight, y }, "product");
            }
            let buffers = tensor_gemm::Buffers {
                x,
                weight,
                y,
                scale,
            };
            KernelCall::new(key, &params, buffers, "product")
        });
        let calls: Vec<KernelCall> = calls.collect();
        self.time(calls, required[1])
    }
}
