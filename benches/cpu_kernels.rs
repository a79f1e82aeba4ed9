//! How long the kernels take that are no products, at the sizes of real models.
//!
//! `cargo bench -p akunu-benches --bench cpu_kernels`. Attention counts the operations of visible keys and, when
//! decoding, the bytes of keys and values.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use std::hint::black_box;

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_kernels::plan::Params;
use akunu_kernels::{Constants, KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{Device, PlanId, Room, Slice};
use akunu_types::SharedStruct;
use akunu_types::params::{
    AttentionParams, ElementwiseParams, MatrixParams, RMSNormParams, RopeStoreParams, Row,
    RowAttentionParams,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// A plan of one dispatch repeated `n` times, on buffers of its own. Those that rows and the page table are bound to
/// hold these.
fn plan<P: SharedStruct>(
    device: &mut CpuDevice,
    kernel: KernelId,
    params: &P,
    tables: Option<&Tables>,
    n: usize,
) -> PlanId {
    let row = kernel.row();
    let constants = Constants::none();
    let required = (row.required)(&row.args(bytemuck::bytes_of(params), &constants));
    let bindings = required.iter().zip(row.bindings);
    let slices: Vec<Slice> = bindings
        .map(|(&bytes, binding)| {
            let buffer = device.allocate(bytes, "bench").expect("memory");
            // Small numbers: 0x2c is about 0.06 as a half and 2e-12 as a float.
            let numbers = vec![0x2c; bytes];
            let contents: &[u8] = match (binding.name, tables) {
                ("rows", Some(tables)) => bytemuck::cast_slice(&tables.rows),
                ("table", Some(tables)) => bytemuck::cast_slice(&tables.table),
                _ => &numbers,
            };
            device.write(buffer, 0, contents).expect("fits");
            buffer.into()
        })
        .collect();
    let call = KernelCall {
        key: PipelineKey::plain(kernel),
        params: Params::of(params),
        bindings: slices,
        row_fields: Vec::new(),
        label: "bench",
    };
    let plan = device.load_kernels(vec![call; n], Room::default());
    plan.expect("sizes are right")
}

/// Slots of a page, as a power of two.
const PAGE_SHIFT: u32 = 7;

/// The rows of a step, and the pages of their sequences.
struct Tables {
    rows: Vec<Row>,
    table: Vec<u32>,
    n_sequences: u32,
    /// Pages of a sequence.
    n_pages: u32,
}

impl Tables {
    /// The last `n_queries` positions of `n_sequences` sequences of `n_keys` tokens.
    fn new(n_sequences: u32, n_queries: u32, n_keys: u32) -> Tables {
        let n_pages = n_keys.div_ceil(1 << PAGE_SHIFT);
        let sequences = 0..n_sequences;
        let of = |sequence: u32| (n_keys - n_queries..n_keys).map(move |at| Row::at(sequence, at));
        Tables {
            rows: sequences.flat_map(of).collect(),
            // The pages of several sequences lie between each other.
            table: (0..n_sequences * n_pages)
                .map(|at| at % n_pages * n_sequences + at / n_pages)
                .collect(),
            n_sequences,
            n_pages,
        }
    }
}

/// Heads of a model: its name, query heads, KV heads, elements.
const MODELS: [(&str, u32, u32, u32); 2] = [("smollm2", 9, 3, 64), ("gemma3", 4, 1, 256)];

/// Sequences, rows of each, and keys.
const STEPS: [(u32, u32, u32); 5] = [
    (1, 1, 100),
    (1, 1, 4000),
    (1, 20, 20),
    (1, 512, 512),
    (16, 1, 1000),
];

fn attention(criterion: &mut Criterion, device: &mut CpuDevice, name: &str) {
    let mut group = criterion.benchmark_group("attention");
    for (model, n_heads, n_kv_heads, head_dim) in MODELS {
        for (n_sequences, n_queries, n_keys) in STEPS {
            let tables = Tables::new(n_sequences, n_queries, n_keys);
            let params = AttentionParams {
                n_rows: n_sequences * n_queries,
                n_heads,
                n_kv_heads,
                head_dim,
                page_shift: PAGE_SHIFT,
                table_stride: tables.n_pages,
                n_pages: n_sequences * tables.n_pages,
                n_sequences,
                scale: 0.1,
                ..Default::default()
            };
            let kernel = KernelId::FlashAttentionDecode;
            let plan = plan(device, kernel, &params, Some(&tables), 1);
            // A key and a value of each KV head; two products of each query and key that it sees.
            let seen: u64 = tables.rows.iter().map(|row| u64::from(row.length)).sum();
            group.throughput(match n_queries {
                1 => Throughput::Bytes(seen * u64::from(4 * n_kv_heads * head_dim)),
                _ => Throughput::Elements(seen * u64::from(4 * n_heads * head_dim)),
            });
            let of = match n_sequences {
                1 => model.to_string(),
                _ => format!("{model}, {n_sequences} sequences"),
            };
            let label = format!("{of}, {n_queries} queries, {n_keys} keys, {name}");
            group.bench_function(label, |bench| {
                bench.iter(|| device.run(black_box(plan), None).expect("runs"));
            });
        }
    }
    group.finish();
}

/// Heads of an encoder, their elements, and how many rows ask how many keys: a window of Whisper base and the rows of a
/// text of MiniLM; a token of Whisper's decoder that looks at the window.
const ROWS: [(&str, KernelId, u32, u32, u32, u32); 3] = [
    ("whisper", KernelId::RowAttention, 8, 64, 1500, 1500),
    ("minilm", KernelId::RowAttention, 12, 32, 60, 60),
    ("across", KernelId::CrossAttention, 8, 64, 1, 1500),
];

fn row_attention(criterion: &mut Criterion, device: &mut CpuDevice, name: &str) {
    let mut group = criterion.benchmark_group("row attention");
    for (label, kernel, n_heads, head_dim, n_rows, n_keys) in ROWS {
        let across = n_rows != n_keys;
        let params = RowAttentionParams {
            n_rows,
            n_heads,
            n_kv_heads: n_heads,
            head_dim,
            n_keys: if across { n_keys } else { 0 },
            n_sequences: u32::from(across),
            scale: 0.1,
            ..Default::default()
        };
        let row = |at| Row::of_text(0, at, n_rows);
        let tables = Tables {
            rows: (0..n_rows).map(row).collect(),
            table: Vec::new(),
            n_sequences: 1,
            n_pages: 0,
        };
        let plan = plan(device, kernel, &params, Some(&tables), 1);
        let numbers = u64::from(n_heads * head_dim * n_keys);
        group.throughput(match n_rows {
            1 => Throughput::Bytes(4 * numbers),
            _ => Throughput::Elements(4 * numbers * u64::from(n_rows)),
        });
        group.bench_function(format!("{label}, {name}"), |bench| {
            bench.iter(|| device.run(black_box(plan), None).expect("runs"));
        });
    }
    group.finish();
}

fn others(criterion: &mut Criterion, device: &mut CpuDevice, name: &str) {
    let mut group = criterion.benchmark_group("others");
    let mut bench = |label: &str, device: &mut CpuDevice, plan: PlanId, n: u64| {
        group.throughput(Throughput::Elements(n));
        group.bench_function(format!("{label}, {name}"), |bench| {
            bench.iter(|| device.run(black_box(plan), None).expect("runs"));
        });
    };
    for n_rows in [1, 512] {
        let params = RMSNormParams {
            dim: 576,
            eps: 1e-5,
            n_rows,
            ..Default::default()
        };
        let plan = plan(device, KernelId::RmsNorm, &params, None, 1);
        bench(&format!("rmsnorm of {n_rows} rows"), device, plan, 1);
    }
    let params = ElementwiseParams {
        count: 512 * 1536,
        ..Default::default()
    };
    let gate = plan(device, KernelId::SiluGate, &params, None, 1);
    bench("silu gate of 512 rows", device, gate, 1);
    let tables = Tables::new(1, 512, 512);
    let params = RopeStoreParams {
        n_rows: 512,
        n_heads: 9,
        n_kv_heads: 3,
        head_dim: 64,
        page_shift: PAGE_SHIFT,
        table_stride: tables.n_pages,
        n_pages: tables.n_pages,
        n_sequences: tables.n_sequences,
        theta: 1e4,
        freq_scale: 1.0,
        ..Default::default()
    };
    let rope = plan(device, KernelId::RopeStore, &params, Some(&tables), 1);
    bench("rope of 512 rows", device, rope, 1);
    // Each dispatch writes what the one before has written: a barrier between all of them.
    let params = MatrixParams {
        rows: 1,
        cols: 16,
        ..Default::default()
    };
    let chain = plan(device, KernelId::BiasAdd, &params, None, 1000);
    bench("1000 tiny dispatches", device, chain, 1000);
}

fn kernels(criterion: &mut Criterion) {
    let mut levels = Isa::available();
    levels.retain(|isa| matches!(isa, Isa::Avx2 | Isa::Avx512 | Isa::Neon));
    for isa in levels {
        for threads in [1, 2] {
            let options = CpuOptions {
                threads: Some(threads),
                isa: Some(isa),
                ..CpuOptions::default()
            };
            let mut device = CpuDevice::new(options).expect("the machine has it");
            let name = format!("{isa} × {threads}");
            attention(criterion, &mut device, &name);
            row_attention(criterion, &mut device, &name);
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
