//! How long the kernels take that are no products, at the sizes of real models.
//!
//! `cargo bench -p akunu-cpu --bench kernels`. Attention counts the operations of visible keys and, when
//! decoding, the bytes of keys and values.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use std::hint::black_box;

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_kernels::plan::Slice;
use akunu_kernels::{Constants, Device, Dispatch, KernelId, PipelineKey, Plan};
use akunu_types::SharedStruct;
use akunu_types::params::{
    AttentionParams, ElementwiseParams, RMSNormParams, RoPEBatchKVWriteParams,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// A plan of one dispatch repeated `n` times, on buffers of its own.
fn plan<P: SharedStruct>(device: &mut CpuDevice, kernel: KernelId, params: &P, n: usize) -> Plan {
    let row = kernel.row();
    let constants = Constants::none();
    let required = (row.required)(&row.args(bytemuck::bytes_of(params), &constants));
    let slices: Vec<Slice> = required
        .iter()
        .map(|&bytes| {
            let buffer = device.allocate(bytes, "bench").expect("memory");
            // Small numbers: 0x2c is about 0.06 as a half and 2e-12 as a float.
            device.write(buffer, 0, &vec![0x2c; bytes]).expect("fits");
            buffer.into()
        })
        .collect();
    let dispatches = (0..n).map(|_| {
        let key = PipelineKey::plain(kernel);
        Dispatch::new(device, key, params, slices.clone(), "bench").expect("a kernel")
    });
    let plan = Plan::check(dispatches.collect(), 0).expect("sizes are right");
    device.prepare(&plan).expect("prepares");
    plan
}

/// Heads of a model: its name, query heads, KV heads, elements.
const MODELS: [(&str, u32, u32, u32); 2] = [("smollm2", 9, 3, 64), ("gemma3", 4, 1, 256)];

fn attention(criterion: &mut Criterion, device: &mut CpuDevice, name: &str) {
    let mut group = criterion.benchmark_group("attention");
    for (model, n_heads, n_kv_heads, head_dim) in MODELS {
        for (n_queries, n_keys) in [(1, 100), (1, 4000), (20, 20), (512, 512)] {
            let params = AttentionParams {
                seq_len: n_queries,
                kv_seq_len: n_keys,
                head_dim,
                n_heads,
                n_kv_heads,
                scale: 0.1,
                kv_stride: 0,
                q_stride: n_heads * head_dim,
            };
            let plan = plan(device, KernelId::FlashAttentionPrefill, &params, 1);
            let cost = plan.cost(0);
            group.throughput(if n_queries == 1 {
                Throughput::Bytes(cost.bytes_read)
            } else {
                Throughput::Elements(cost.flops)
            });
            let label = format!("{model}, {n_queries} queries, {n_keys} keys, {name}");
            group.bench_function(label, |bench| {
                bench.iter(|| device.run(black_box(&plan), 0).expect("runs"));
            });
        }
    }
    group.finish();
}

fn others(criterion: &mut Criterion, device: &mut CpuDevice, name: &str) {
    let mut group = criterion.benchmark_group("others");
    let mut bench = |label: &str, device: &mut CpuDevice, plan: Plan| {
        group.throughput(Throughput::Elements(plan.dispatches().len() as u64));
        group.bench_function(format!("{label}, {name}"), |bench| {
            bench.iter(|| device.run(black_box(&plan), 0).expect("runs"));
        });
    };
    for n_rows in [1, 512] {
        let params = RMSNormParams {
            dim: 576,
            eps: 1e-5,
            n_rows,
            ..Default::default()
        };
        let plan = plan(device, KernelId::RmsNorm, &params, 1);
        bench(&format!("rmsnorm of {n_rows} rows"), device, plan);
    }
    let params = ElementwiseParams {
        count: 512 * 1536,
        ..Default::default()
    };
    let gate = plan(device, KernelId::SiluGate, &params, 1);
    bench("silu gate of 512 rows", device, gate);
    let params = RoPEBatchKVWriteParams {
        seq_len: 512,
        n_heads: 9,
        n_kv_heads: 3,
        head_dim: 64,
        max_seq_len: 4096,
        theta: 1e4,
        freq_scale: 1.0,
        ..Default::default()
    };
    let rope = plan(device, KernelId::RopeBatchKvWrite, &params, 1);
    bench("rope of 512 rows", device, rope);
    // Each dispatch writes what the one before has written: a barrier between all of them.
    let params = ElementwiseParams {
        count: 16,
        ..Default::default()
    };
    let chain = plan(device, KernelId::ResidualAdd, &params, 1000);
    bench("1000 tiny dispatches", device, chain);
}

fn kernels(criterion: &mut Criterion) {
    let mut levels = Isa::available();
    levels.retain(|isa| matches!(isa, Isa::Avx2 | Isa::Avx512 | Isa::Neon));
    for isa in levels {
        for threads in [1, 2] {
            let options = CpuOptions {
                threads: Some(threads),
                isa: Some(isa),
            };
            let mut device = CpuDevice::new(options).expect("the machine has it");
            let name = format!("{isa} × {threads}");
            attention(criterion, &mut device, &name);
            others(criterion, &mut device, &name);
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(600));
    targets = kernels
}
criterion_main!(benches);
