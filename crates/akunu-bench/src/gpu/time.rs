//! `cargo measure gpu --time`: how fast products and attention run, alone, at the shapes of an 8B model.
//!
//! A program has a kernel many times, each with weights of its own that are not in the GPU's cache, and is launched as one
//! graph. Bytes and operations are those of the kernel's row (docs/kernels.md); the time is the shortest of a few runs.

use akunu_cuda::CudaDevice;
use akunu_kernels::kernel::attention::{self, flash_attention_decode_split, flash_attention_join};
use akunu_kernels::kernel::matmul::product;
use akunu_kernels::kernel::nvidia::{decode_attention, decode_gemm, shared_gemm, tensor_gemm};
use akunu_kernels::lower::nvidia::select::n_parts;
use akunu_kernels::table::BufferSet;
use akunu_kernels::{Constant, Constants, KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{Buffer, Device, DeviceError, Room, Slice};
use akunu_repo::Failure;
use akunu_types::DType;
use akunu_types::params::{
    AttentionParams, DecodeAttentionParams, DecodeGemmParams, GEMMParams, Row,
};
use std::time::Instant;

/// Bytes that weights and keys are taken from: several times what an NVIDIA GPU caches.
const MEMORY: usize = 1 << 30;
/// Bytes of inputs and outputs.
const ACTIVATIONS: usize = 288 << 20;
/// Bytes of the largest output.
const OUTPUTS: usize = 208 << 20;
/// Launches of a program.
const N_CALLS: usize = 64;
/// Runs of it.
const N_RUNS: usize = 5;

const FORMATS: [DType; 7] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q8_0,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::F16,
];
/// (outputs, K)
const SHAPES: [(u32, u32); 7] = [
    (6144, 4096),
    (28_672, 4096),
    (2048, 2048),
    (4096, 4096),
    (14_336, 4096),
    (4096, 14_336),
    (128_256, 4096),
];

/// Where everything lies.
struct Bench<'a> {
    device: &'a mut CudaDevice,
    memory: Buffer,
    activations: Buffer,
}

/// Times every kernel whose name contains `part`.
pub fn run(device: &mut CudaDevice, part: &str) -> Result<(), Failure> {
    let mut time = || -> Result<(), DeviceError> {
        let memory = device.allocate(MEMORY, "weights and keys")?;
        // Neither zeros nor numbers that are not finite, in any format.
        let pattern: Vec<u8> = (0..16u32 << 20)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 & 0x3b)
            .collect();
        for at in (0..MEMORY).step_by(pattern.len()) {
            device.write(memory, at, &pattern)?;
        }
        let activations = device.allocate(ACTIVATIONS, "inputs and outputs")?;
        let mut bench = Bench {
            device,
            memory,
            activations,
        };
        bench.products(part)?;
        bench.attention(part)
    };
    time().map_err(|error| Failure::Found(error.to_string()))
}

impl Bench<'_> {
    fn products(&mut self, part: &str) -> Result<(), DeviceError> {
        /// A kernel of every format.
        type Of = fn(DType) -> KernelId;
        let kernels: [(Of, u32); 16] = [
            (KernelId::DecodeGemv, 1),
            (KernelId::DecodeGemm, 4),
            (KernelId::DecodeGemm, 16),
            (KernelId::DecodeGemmDouble, 64),
            (KernelId::DecodeGemmWide, 32),
            (KernelId::DecodeGemmWidest, 64),
            (KernelId::TensorGemmSmall, 16),
            (KernelId::TensorGemmMedium, 64),
            (KernelId::TensorGemmMedium, 512),
            (KernelId::TensorGemm, 512),
            (KernelId::TensorGemm, 2048),
            (KernelId::AsyncGemm32, 32),
            (KernelId::AsyncGemm64, 64),
            (KernelId::AsyncGemm128, 512),
            (KernelId::AsyncGemm128, 2048),
            (KernelId::SimdGemm, 512),
        ];
        let all = KernelId::all();
        for (kernel, m) in kernels {
            for dtype in FORMATS {
                let name = kernel(dtype).row().name();
                let is_slow = matches!(kernel(dtype), KernelId::SimdGemm(_));
                let exists = all.contains(&kernel(dtype));
                if !exists || !name.contains(part) || (is_slow && dtype != DType::Q4_0) {
                    continue;
                }
                for (n, k) in SHAPES {
                    if m as usize * n as usize * 4 > OUTPUTS {
                        continue;
                    }
                    self.product(kernel(dtype), (m, n, k))?;
                }
            }
        }
        Ok(())
    }

    fn decode_product(
        &mut self,
        kernel: KernelId,
        (m, n, k): (u32, u32, u32),
    ) -> Result<(), DeviceError> {
        let mut params = DecodeGemmParams {
            M: m,
            K: k,
            lda: k,
            N0: n,
            n_parts: 1,
            ..Default::default()
        };
        let row = kernel.row();
        params.n_parts = n_parts(kernel, &params, self.device.chip());
        let counters = self.part(5);
        self.device
            .write(counters.buffer, counters.offset, &[0; 4096])?;
        let none = Constants::none();
        let required = (row.required)(&row.args(bytemuck::bytes_of(&params), &none));
        let room = (MEMORY / required[1]).max(1);
        let calls = (0..N_CALLS).map(|at| {
            let weight = Slice {
                buffer: self.memory,
                offset: (at % room) * required[1] / 256 * 256,
            };
            let [x, y, factors] = [0, 1, 2].map(|at| self.part(at));
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
        self.report(&format!("{m:>4} × {n} × {k}"), calls, required[1])
    }

    fn product(&mut self, kernel: KernelId, (m, n, k): (u32, u32, u32)) -> Result<(), DeviceError> {
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
        let room = (MEMORY / required[1]).max(1);
        let calls = (0..N_CALLS).map(|at| {
            let weight = Slice {
                buffer: self.memory,
                offset: (at % room) * required[1] / 256 * 256,
            };
            let [x, y, scale] = [0, 1, 2].map(|at| self.part(at));
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
        self.report(&format!("{m:>4} × {n} × {k}"), calls, required[1])
    }

    /// Decoding over 4096 keys, and a prompt of 512 after as many.
    fn attention(&mut self, part: &str) -> Result<(), DeviceError> {
        for (kernel, n_rows, n_parts) in [
            (KernelId::FlashAttentionDecodeSplit, 1, 64),
            (KernelId::FlashAttentionJoin, 1, 64),
            (KernelId::FlashAttentionDecodeFast, 64, 0),
            (KernelId::FlashAttentionPrefillV2, 512, 0),
            (KernelId::TensorAttention, 512, 0),
        ] {
            if !kernel.row().name().contains(part) {
                continue;
            }
            for length in [512, 4096].into_iter().filter(|&length| length >= n_rows) {
                self.attend(kernel, (n_rows, n_parts, length))?;
            }
        }
        if KernelId::DecodeAttentionNeox.row().name().contains(part) {
            for length in [1, 128, 512, 4096] {
                self.attend_one(length)?;
            }
        }
        Ok(())
    }

    /// RoPE, the storing of a key and attention of one row.
    fn attend_one(&mut self, length: u32) -> Result<(), DeviceError> {
        let n_pages = length.div_ceil(64);
        let params = DecodeAttentionParams {
            n_heads: 32,
            n_kv_heads: 8,
            head_dim: 128,
            page_shift: 6,
            table_stride: n_pages,
            n_pages,
            n_sequences: 1,
            // What an H200 gets for 8192 keys.
            n_groups: 33,
            theta: 10000.0,
            freq_scale: 1.0,
            eps: 0.0,
            scale: 0.09,
            n_rows: 1,
            n_simd_groups: 8,
            ..Default::default()
        };
        let table: Vec<u32> = (0..n_pages).collect();
        let [rows_at, table_at, counters] = [3, 4, 5].map(|at| self.part(at));
        for (at, bytes) in [
            (rows_at, bytemuck::bytes_of(&Row::at(0, length - 1))),
            (table_at, bytemuck::cast_slice(&table)),
            (counters, &[0; 64]),
        ] {
            self.device.write(at.buffer, at.offset, bytes)?;
        }
        let pool = (n_pages * 64 * 8 * 128 * 2) as usize;
        let calls = (0..N_CALLS).map(|at| {
            let keys = |which: usize| Slice {
                buffer: self.memory,
                offset: (2 * at + which) * pool % (MEMORY / 2),
            };
            let [q, out, parts] = [0, 1, 2].map(|at| self.part(at));
            let weights = Slice {
                offset: parts.offset + (1 << 20),
                ..parts
            };
            let buffers = decode_attention::Buffers {
                q,
                k: q,
                v: q,
                K: keys(0),
                V: keys(1),
                rows: rows_at,
                table: table_at,
                freqs: q,
                q_norm: q,
                k_norm: q,
                O: out,
                parts,
                weights,
                arrived: counters,
                halves: out,
                factors: out,
                centre: q,
            };
            let key = PipelineKey {
                kernel: KernelId::DecodeAttentionNeox,
                constants: Constants::none().with_u32(Constant::HeadDim, 128),
            };
            KernelCall::new(key, &params, buffers, "attention")
        });
        let calls: Vec<KernelCall> = calls.collect();
        let moved = (2 * length * 8 * 128 * 2) as usize;
        self.report(&format!("   1 row,  {length} keys"), calls, moved)
    }

    fn attend(
        &mut self,
        kernel: KernelId,
        (n_rows, n_parts, length): (u32, u32, u32),
    ) -> Result<(), DeviceError> {
        let n_pages = length.div_ceil(64);
        let params = AttentionParams {
            n_rows,
            n_heads: 32,
            n_kv_heads: 8,
            head_dim: 128,
            page_shift: 6,
            table_stride: n_pages,
            n_pages,
            n_sequences: 1,
            scale: 0.09,
            n_parts,
            ..Default::default()
        };
        let is_prompt = n_rows >= 512;
        let rows: Vec<Row> = (0..n_rows)
            .map(|at| Row {
                length: if is_prompt {
                    length - n_rows + at + 1
                } else {
                    length
                },
                ..Row::at(0, 0)
            })
            .collect();
        let table: Vec<u32> = (0..n_pages).collect();
        let (rows_at, table_at) = (self.part(3), self.part(4));
        self.device
            .write(rows_at.buffer, rows_at.offset, bytemuck::cast_slice(&rows))?;
        self.device.write(
            table_at.buffer,
            table_at.offset,
            bytemuck::cast_slice(&table),
        )?;
        let constants = Constants::none().with_u32(Constant::HeadDim, 128);
        let row = kernel.row();
        let pool = (n_pages * 64 * 8 * 128 * 2) as usize;
        let calls = (0..N_CALLS).map(|at| {
            let keys = |which: usize| Slice {
                buffer: self.memory,
                offset: (2 * at + which) * pool % (MEMORY / 2),
            };
            let (q, out) = (self.part(0), self.part(1));
            let (rows, table, weights) = (rows_at, table_at, self.part(2));
            let key = PipelineKey {
                kernel,
                constants: constants.clone(),
            };
            match kernel {
                KernelId::FlashAttentionJoin => {
                    let buffers = flash_attention_join::Buffers {
                        parts: out,
                        weights,
                        O: q,
                    };
                    KernelCall::new(key, &params, buffers, "attention")
                }
                KernelId::FlashAttentionDecodeSplit => {
                    let buffers = flash_attention_decode_split::Buffers {
                        Q: q,
                        K: keys(0),
                        V: keys(1),
                        parts: out,
                        rows,
                        table,
                        weights,
                    };
                    KernelCall::new(key, &params, buffers, "attention")
                }
                _ => {
                    let buffers = attention::Buffers {
                        Q: q,
                        K: keys(0),
                        V: keys(1),
                        O: out,
                        rows,
                        table,
                    };
                    KernelCall::new(key, &params, buffers, "attention")
                }
            }
        });
        let calls: Vec<KernelCall> = calls.collect();
        let label = format!("{n_rows:>4} rows, {length} keys");
        let moved = if row.bindings.len() > 3 { 2 * pool } else { 0 };
        self.report(&label, calls, moved)
    }

    /// Part `at` of the activations.
    fn part(&self, at: usize) -> Slice {
        // x, y, factors, rows, a table and counters: y of 512 rows and a vocabulary is the largest.
        const ENDS: [usize; 6] = [0, 64 << 20, 272 << 20, 276 << 20, 280 << 20, 281 << 20];
        Slice {
            buffer: self.activations,
            offset: ENDS[at],
        }
    }

    fn report(
        &mut self,
        label: &str,
        calls: Vec<KernelCall>,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let row = calls[0].key.kernel.row();
        let args = row.args(calls[0].params.as_bytes(), &calls[0].key.constants);
        let (flops, name) = (row.work(&args).flops, row.name());
        let plan = match self.device.load_kernels(calls, Room::default()) {
            Ok(plan) => plan,
            Err(error) => {
                println!("{name:36} {label:24} {error}");
                return Ok(());
            }
        };
        let mut best = f64::INFINITY;
        for _ in 0..N_RUNS {
            let begin = Instant::now();
            self.device.run(plan, None)?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        self.device.unload(plan);
        let seconds = best / N_CALLS as f64;
        println!(
            "{name:36} {label:24} {:>8.2} µs {:>7.0} GB/s {:>7.1} TFLOP/s",
            seconds * 1e6,
            bytes as f64 / seconds / 1e9,
            flops as f64 / seconds / 1e12
        );
        Ok(())
    }
}
