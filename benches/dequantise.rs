//! How fast the reference codecs are, in bytes of `f32` values.
#![allow(missing_docs, reason = "criterion_group makes a public function")]

use akunu_gguf::quant::{dequantise, quantise, supported};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// 1 MiB of values, which stays in the second-level cache.
const N: usize = 1 << 18;

fn values() -> Vec<f32> {
    (0..N)
        .map(|i| ((i * 7919) % 4093) as f32 / 2048.0 - 1.0)
        .collect()
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("dequantise");
    group.throughput(Throughput::Bytes((N * size_of::<f32>()) as u64));
    for dtype in supported() {
        let mut bytes = vec![0; dtype.bytes_of(N).expect("whole blocks")];
        quantise(dtype, &values(), &mut bytes).expect("finite values");
        let mut out = vec![0.0; N];
        group.bench_function(dtype.name(), |b| {
            b.iter(|| dequantise(dtype, black_box(&bytes), &mut out).expect("sizes agree"));
        });
    }
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("quantise");
    group.throughput(Throughput::Bytes((N * size_of::<f32>()) as u64));
    group.sample_size(10);
    for dtype in supported() {
        let mut bytes = vec![0; dtype.bytes_of(N).expect("whole blocks")];
        let values = values();
        group.bench_function(dtype.name(), |b| {
            b.iter(|| quantise(dtype, black_box(&values), &mut bytes).expect("finite values"));
        });
    }
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
