//! What the table says that launches cost.

use akunu_kernels::cost::{Cost, Traffic, Work};
use akunu_kernels::table::{Access, Element};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{
    ChipConfig, Constant, Constants, Device, Dispatch, KernelId, Patch, PipelineKey, Plan,
};
use akunu_types::params::{AttentionParams, EmbeddingParams, GEMMParams, RoPEQKVWriteParams};
use akunu_types::{DType, SharedStruct};

fn work<P: SharedStruct>(kernel: KernelId, params: &P, constants: &Constants) -> Work {
    let row = kernel.row();
    row.work(&row.args(bytemuck::bytes_of(params), constants))
}

/// A traffic put at the wrong place reads what is only written, writes what is only read, or counts a
/// whole cache. Only weights and keys are read more than once, or less than bound.
#[test]
fn every_case_touches_only_what_its_bindings_allow() {
    for row in KernelId::all().into_iter().map(KernelId::row) {
        for case in (row.cases)(row.dtype) {
            let args = row.args(case.params.as_bytes(), &case.constants);
            let (work, required) = (row.work(&args), (row.required)(&args));
            assert_eq!(work.traffic.len(), row.bindings.len(), "{}", row.name());
            for ((binding, traffic), &bytes) in row.bindings.iter().zip(work.traffic).zip(&required)
            {
                let what = format!("{}, {}: {}", row.name(), case.label, binding.name);
                let is_weight = binding.element == Element::Weight || binding.name == "weight";
                assert!(traffic.written <= bytes, "{what}: {traffic:?} of {bytes}");
                assert!(
                    is_weight || traffic.read <= bytes,
                    "{what}: {traffic:?} of {bytes}"
                );
                match binding.access {
                    Access::Read => assert_eq!(traffic.written, 0, "{what}"),
                    Access::Write => assert_eq!(traffic, Traffic::written(bytes), "{what}"),
                    Access::ReadWrite => {}
                }
            }
        }
    }
}

fn product(rows: u32, beta: f32) -> GEMMParams {
    GEMMParams {
        M: rows,
        N: 10,
        K: 64,
        lda: 64,
        ldb: 64,
        ldc: 10,
        alpha: 1.0,
        beta,
    }
}

/// The weights are read as often as the kernels' documents say; y is read only to be added to.
#[test]
fn products_read_their_weights_once_for_each_group_of_rows() {
    let dtype = DType::Q4_0;
    let weight = 10 * 2 * 18;
    for (kernel, rows, passes) in [
        (KernelId::Gemv(dtype), 1, 1),
        (KernelId::Gemv(dtype), 3, 3),
        (KernelId::GemvWide(dtype), 3, 3),
        (KernelId::GemvBatched(dtype), 16, 1),
        (KernelId::GemvBatched(dtype), 17, 2),
        (KernelId::SimdGemmSmall(dtype), 8, 1),
        (KernelId::SimdGemmSmall(dtype), 9, 2),
        (KernelId::SimdGemm(dtype), 32, 1),
        (KernelId::SimdGemm(dtype), 33, 2),
    ] {
        let y = rows as usize * 10 * 4;
        let x = Traffic::read(rows as usize * 64 * 4);
        let added = work(kernel, &product(rows, 1.0), &Constants::none());
        let read = Traffic::read(passes * weight);
        assert_eq!(added.traffic, [x, read, Traffic::both(y)], "{kernel:?}");
        assert_eq!(added.flops, 2 * u64::from(rows) * 10 * 64, "{kernel:?}");
        let written = work(kernel, &product(rows, 0.0), &Constants::none());
        assert_eq!(written.traffic[2], Traffic::written(y), "{kernel:?}");
    }
    let gated = work(
        KernelId::GemvSilu(dtype),
        &product(1, 0.0),
        &Constants::none(),
    );
    let x = Traffic::read(64 * 4);
    let weight = Traffic::read(weight);
    assert_eq!(gated.traffic, [x, x, weight, Traffic::written(40)]);
}

const ATTENTION: AttentionParams = AttentionParams {
    seq_len: 1,
    kv_seq_len: 100,
    head_dim: 64,
    n_heads: 6,
    n_kv_heads: 2,
    scale: 0.125,
    kv_stride: 128 * 64,
    q_stride: 0,
};

/// Keys and pairs of a query and a key.
fn keys_and_pairs(p: AttentionParams, constants: &Constants) -> (usize, u64) {
    let work = work(KernelId::FlashAttentionDecode, &p, constants);
    assert_eq!(work.traffic[1], work.traffic[2]);
    let head = u64::from(p.n_heads * p.head_dim);
    (work.traffic[1].read / (2 * 64 * 2), work.flops / (4 * head))
}

#[test]
fn attention_reads_the_keys_that_are_seen() {
    let none = Constants::none();
    let window = Constants::none().with_u32(Constant::Window, 10);
    assert_eq!(keys_and_pairs(ATTENTION, &none), (100, 100));
    assert_eq!(keys_and_pairs(ATTENTION, &window), (10, 10));
    let ring = AttentionParams {
        kv_seq_len: 1000,
        ..ATTENTION
    };
    assert_eq!(keys_and_pairs(ring, &none), (128, 128));
    let prefill = AttentionParams {
        seq_len: 3,
        ..ATTENTION
    };
    assert_eq!(keys_and_pairs(prefill, &none), (100, 98 + 99 + 100));
    assert_eq!(keys_and_pairs(prefill, &window), (12, 30));
    let all = Constants::none().with_bool(Constant::NonCausal, true);
    assert_eq!(keys_and_pairs(prefill, &all), (100, 300));
}

#[test]
fn an_embedding_reads_the_rows_that_are_looked_up() {
    let params = EmbeddingParams {
        num_tokens: 2,
        dim: 64,
        vocab_size: 1000,
        ..Default::default()
    };
    let kernel = KernelId::EmbeddingLookup(DType::Q8_0);
    let work = work(kernel, &params, &Constants::none());
    let (ids, rows) = (Traffic::read(8), Traffic::read(2 * 2 * 34));
    assert_eq!(work.traffic, [ids, rows, Traffic::written(2 * 64 * 4)]);
}

#[test]
fn a_token_writes_one_slot_of_the_cache() {
    let params = RoPEQKVWriteParams {
        n_kv_heads: 2,
        head_dim: 64,
        max_seq_len: 4096,
        n_heads: 6,
        k_elem_offset: 6 * 64,
        v_elem_offset: 8 * 64,
        ..Default::default()
    };
    let work = work(KernelId::RopeQkvWrite, &params, &Constants::none());
    let qkv = Traffic {
        read: 10 * 64 * 4,
        written: 6 * 64 * 4,
    };
    let slot = Traffic::written(2 * 64 * 2);
    assert_eq!(work.traffic, [qkv, slot, slot, Traffic::read(0)]);
}

/// A plan's cost is that of its dispatches, and follows the position.
#[test]
fn a_plan_sums_its_dispatches_at_a_position() {
    let mut device = TwinDevice::new(ChipConfig::m1());
    let mut buffer = |bytes| device.allocate(bytes, "test").expect("memory").into();
    let (query, cache) = (6 * 64 * 4, 2 * 128 * 64 * 2);
    let bindings = vec![
        buffer(query),
        buffer(cache),
        buffer(cache),
        buffer(query),
        buffer(4),
    ];
    let key = PipelineKey {
        kernel: KernelId::FlashAttentionDecode,
        constants: Constants::none(),
    };
    let patch = Patch::length(std::mem::offset_of!(AttentionParams, kv_seq_len), 1);
    let dispatch = Dispatch::new(&mut device, key, &ATTENTION, bindings, "attention");
    let dispatch = dispatch.expect("a good dispatch").patched(patch);
    let plan = Plan::check(vec![dispatch.clone(), dispatch], 127).expect("a good plan");
    let cost = |n_keys: u64| Cost {
        bytes_read: 2 * (6 * 64 * 4 + 2 * 2 * n_keys * 64 * 2),
        bytes_written: 2 * 6 * 64 * 4,
        flops: 2 * 4 * 6 * 64 * n_keys,
        dispatches: 2,
    };
    assert_eq!(plan.cost(0), cost(1));
    assert_eq!(plan.cost(99), cost(100));
}
