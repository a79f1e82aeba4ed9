//! `cargo measure gpu --time`: how fast products and attention run, alone, at the shapes of an 8B model.

use crate::timing::{Bench, Effort, Timed};
use akunu_cuda::CudaDevice;
use akunu_kernels::KernelId;
use akunu_program::DeviceError;
use akunu_repo::Failure;
use akunu_types::DType;

/// Weights are several times what an NVIDIA GPU caches; y of 512 rows and a vocabulary is the largest output.
const EFFORT: Effort = Effort {
    weights: 1 << 30,
    inputs: 64 << 20,
    outputs: 208 << 20,
    calls: 64,
    runs: 5,
};

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

/// A kernel of every format.
type Of = fn(DType) -> KernelId;

/// The kernels of products on NVIDIA GPUs, with the rows that they are timed with.
pub const PRODUCTS: [(Of, u32); 16] = [
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

/// Times every kernel whose name contains `part`.
pub fn run(device: &mut CudaDevice, part: &str) -> Result<(), Failure> {
    let mut time = || -> Result<(), DeviceError> {
        let chip = device.chip().clone();
        let mut bench = Bench::new(device, chip, EFFORT)?;
        products(&mut bench, part)?;
        attention(&mut bench, part)
    };
    time().map_err(|error| Failure::Found(error.to_string()))
}

fn products(bench: &mut Bench, part: &str) -> Result<(), DeviceError> {
    let all = KernelId::all();
    for (kernel, m) in PRODUCTS {
        for dtype in FORMATS {
            let name = kernel(dtype).row().name();
            let is_slow = matches!(kernel(dtype), KernelId::SimdGemm(_));
            let exists = all.contains(&kernel(dtype));
            if !exists || !name.contains(part) || (is_slow && dtype != DType::Q4_0) {
                continue;
            }
            for (n, k) in SHAPES {
                if m as usize * n as usize * 4 > EFFORT.outputs {
                    continue;
                }
                let timed = bench.product(kernel(dtype), (m, n, k));
                let label = format!("{m:>4} × {n} × {k}");
                report(kernel(dtype), &label, timed)?;
            }
        }
    }
    Ok(())
}

/// Decoding over 4096 keys, and a prompt of 512 after as many.
fn attention(bench: &mut Bench, part: &str) -> Result<(), DeviceError> {
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
            let timed = bench.attend(kernel, (n_rows, n_parts, length));
            report(kernel, &format!("{n_rows:>4} rows, {length} keys"), timed)?;
        }
    }
    if KernelId::DecodeAttentionNeox.row().name().contains(part) {
        for length in [1, 128, 512, 4096] {
            let timed = bench.attend_one(length);
            let kernel = KernelId::DecodeAttentionNeox;
            report(kernel, &format!("   1 row,  {length} keys"), timed)?;
        }
    }
    Ok(())
}

/// Prints a time or the error; fails only when the GPU has failed.
fn report(
    kernel: KernelId,
    label: &str,
    timed: Result<Timed, DeviceError>,
) -> Result<(), DeviceError> {
    let name = kernel.row().name();
    match timed {
        Ok(Timed {
            seconds,
            bytes,
            flops,
        }) => println!(
            "{name:36} {label:24} {:>8.2} µs {:>7.0} GB/s {:>7.1} TFLOP/s",
            seconds * 1e6,
            bytes as f64 / seconds / 1e9,
            flops as f64 / seconds / 1e12
        ),
        Err(lost @ DeviceError::Lost { .. }) => return Err(lost),
        Err(error) => println!("{name:36} {label:24} {error}"),
    }
    Ok(())
}
