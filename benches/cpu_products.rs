//! How fast the matrix products are, in bytes of weights a second for one vector and in operations a second
//! for many, beside what the machine's memory gives.
//!
//! `cargo bench -p akunu-benches --bench cpu_products`. One vector reads 16 matrices of 1536 × 4096 in turn, so that
//! the weights come from memory and not from the caches of a core; `memory` reads as much and does nothing
//! with it: the share of a product is its figure over that one.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use std::hint::black_box;
use std::sync::Arc;

use akunu_cpu::{CpuDevice, CpuOptions, Isa, bandwidth};
use akunu_kernels::kernel::matmul::product;
use akunu_kernels::{KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{AlignedBytes, Device, PlanId, Room, Slice};
use akunu_types::DType;
use akunu_types::params::GEMMParams;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const N: u32 = 4096;
const K: u32 = 1536;
/// Matrices that one vector is multiplied with, one after the other.
const MATRICES: usize = 16;

/// The formats of the files that people have.
const FORMATS: [DType; 9] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q8_0,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::BF16,
    DType::F16,
];

/// `m` vectors times each of `n` matrices of a format, and the bytes of the matrices.
fn plan(device: &mut CpuDevice, dtype: DType, m: u32, n: usize) -> (PlanId, usize) {
    let params = GEMMParams {
        M: m,
        N,
        K,
        lda: K,
        ldb: K,
        ldc: N,
        alpha: 1.0,
        beta: 0.0,
    };
    let kernel = match m {
        1 => KernelId::Gemv(dtype),
        _ => KernelId::SimdGemm(dtype),
    };
    let bytes = dtype.bytes_of((N * K) as usize).expect("whole blocks");
    // Small numbers in every format: 0x2c is about 0.06 as a half.
    let weights = AlignedBytes::copy_of(&vec![0x2c; bytes * n]);
    let weights = device.share(Arc::new(weights), "weights").expect("memory");
    let x = device.allocate(4 * (m * K) as usize, "x").expect("memory");
    let y = device.allocate(4 * (m * N) as usize, "y").expect("memory");
    let calls = (0..n).map(|at| {
        let weight = Slice {
            buffer: weights,
            offset: at * bytes,
        };
        let buffers = product::Buffers {
            x: x.into(),
            weight,
            y: y.into(),
        };
        KernelCall::new(PipelineKey::plain(kernel), &params, buffers, "bench")
    });
    let plan = device.load_kernels(calls.collect(), Room::default());
    (plan.expect("sizes are right"), n * bytes)
}

/// Reads memory with as many threads as the products have.
fn memory(criterion: &mut Criterion, threads: usize) {
    let numbers = vec![1f32; MATRICES * (N * K) as usize / 4];
    let mut group = criterion.benchmark_group("memory");
    group.throughput(Throughput::Bytes(size_of_val(&*numbers) as u64));
    group.bench_function(format!("read × {threads}"), |bench| {
        bench.iter(|| black_box(bandwidth::read(black_box(&numbers), threads)));
    });
    group.finish();
}

fn products(criterion: &mut Criterion) {
    let mut levels = Isa::available();
    levels.retain(|isa| *isa != Isa::Scalar);
    for threads in [1, 2] {
        memory(criterion, threads);
        for &isa in &levels {
            let options = CpuOptions {
                threads: Some(threads),
                isa: Some(isa),
                ..CpuOptions::default()
            };
            let mut group = criterion.benchmark_group("products");
            for dtype in FORMATS {
                let mut device = CpuDevice::new(options).expect("the machine has it");
                for (m, n) in [(1, MATRICES), (16, 1), (512, 1)] {
                    let (plan, bytes) = plan(&mut device, dtype, m, n);
                    group.throughput(match m {
                        1 => Throughput::Bytes(bytes as u64),
                        _ => Throughput::Elements(2 * u64::from(m) * u64::from(N) * u64::from(K)),
                    });
                    let label = format!("{dtype}, {m} vectors, {isa} × {threads}");
                    group.bench_function(label, |bench| {
                        bench.iter(|| device.run(black_box(plan), None).expect("runs"));
                    });
                }
            }
            group.finish();
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(400));
    targets = products
}
criterion_main!(benches);
