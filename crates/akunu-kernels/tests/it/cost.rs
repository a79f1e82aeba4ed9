//! What the table says that launches cost.

use akunu_kernels::cost::{Cost, Traffic, Work};
use akunu_kernels::kernel::attention;
use akunu_kernels::pipeline::HostPipelines;
use akunu_kernels::table::{Access, Element};
use akunu_kernels::twin::ShortBinding;
use akunu_kernels::{Constant, Constants, KernelCall, KernelId, PipelineKey, Plan};
use akunu_program::{Buffer, Room, Slice};
use akunu_types::params::{AttentionParams, EmbeddingParams, GEMMParams, RopeStoreParams, Row};
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
        (KernelId::DecodeGemv(dtype), 3, 3),
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
    n_rows: 1,
    first_row: 0,
    n_heads: 6,
    n_kv_heads: 2,
    head_dim: 64,
    q_stride: 0,
    page_shift: 5,
    table_stride: 4,
    n_pages: 16,
    n_sequences: 3,
    scale: 0.125,
    n_parts: 0,
};

/// Keys, and pairs of a row and a key.
fn keys_and_pairs(kernel: KernelId, n_rows: u32, constants: &Constants) -> (usize, u64) {
    let p = AttentionParams {
        n_rows,
        ..ATTENTION
    };
    let work = work(kernel, &p, constants);
    assert_eq!(work.traffic[1], work.traffic[2]);
    let head = u64::from(p.n_heads * p.head_dim);
    (work.traffic[1].read / (2 * 64 * 2), work.flops / (4 * head))
}

/// Lengths are in the rows: what counts is all that a sequence can have, or the window, and never more than
/// the pool.
#[test]
fn attention_reads_the_keys_that_can_be_seen() {
    use KernelId::{FlashAttentionDecode, FlashAttentionPrefill};
    let none = Constants::none();
    let window = Constants::none().with_u32(Constant::Window, 10);
    assert_eq!(keys_and_pairs(FlashAttentionDecode, 1, &none), (128, 128));
    assert_eq!(keys_and_pairs(FlashAttentionDecode, 1, &window), (10, 10));
    assert_eq!(keys_and_pairs(FlashAttentionDecode, 2, &none), (256, 256));
    assert_eq!(
        keys_and_pairs(FlashAttentionDecode, 9, &none),
        (384, 9 * 128)
    );
    assert_eq!(
        keys_and_pairs(FlashAttentionPrefill, 9, &none),
        (128, 9 * 128)
    );
    assert_eq!(keys_and_pairs(FlashAttentionPrefill, 9, &window), (10, 90));
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
fn a_row_writes_one_slot_of_the_pool() {
    let params = RopeStoreParams {
        n_rows: 3,
        n_heads: 6,
        n_kv_heads: 2,
        head_dim: 64,
        page_shift: 5,
        table_stride: 40,
        n_pages: 100,
        n_sequences: 7,
        ..Default::default()
    };
    let work = work(KernelId::RopeStore, &params, &Constants::none());
    let kv = Traffic::read(3 * 2 * 64 * 4);
    let slots = Traffic::written(3 * 2 * 64 * 2);
    let rows = Traffic::read(3 * size_of::<Row>());
    let (entries, [freqs, centre]) = (Traffic::read(3 * 4), [Traffic::read(0); 2]);
    let q = Traffic::both(3 * 6 * 64 * 4);
    assert_eq!(
        work.traffic,
        [q, kv, kv, slots, slots, rows, entries, freqs, centre]
    );
}

/// A plan's cost is that of its dispatches.
#[test]
fn a_plan_sums_its_dispatches() {
    let mut ids = 0..;
    let mut buffer = |len| {
        let id = ids.next().expect("no end");
        Buffer {
            id,
            generation: 0,
            len,
            writable: true,
        }
        .into()
    };
    let (query, pool) = (6 * 64 * 4, 16 * 2 * 32 * 64 * 2);
    let buffers: attention::Buffers<Slice> = attention::Buffers {
        Q: buffer(query),
        K: buffer(pool),
        V: buffer(pool),
        O: buffer(query),
        rows: buffer(size_of::<Row>()),
        table: buffer(3 * 4 * 4),
    };
    let key = PipelineKey::plain(KernelId::FlashAttentionDecode);
    let call = KernelCall::new(key, &ATTENTION, buffers, "attention");
    let mut pipelines = HostPipelines::default();
    let plan = Plan::make(vec![call.clone(), call], Room::default(), &mut pipelines);
    let keys = 2 * 2 * 128 * 64 * 2;
    let cost = Cost {
        bytes_read: 2 * (6 * 64 * 4 + keys + 32 + 4 * 4),
        bytes_written: 2 * 6 * 64 * 4,
        flops: 2 * 4 * 6 * 64 * 128,
        dispatches: 2,
    };
    assert_eq!(plan.expect("a good plan").cost(), cost);
}

/// Breaks when a twin panics for a buffer that is too short, or for one that is missing, instead of saying which.
#[test]
fn a_short_binding_is_an_error() {
    for row in KernelId::all().into_iter().map(KernelId::row) {
        let case = (row.cases)(row.dtype).remove(0);
        let args = row.args(case.params.as_bytes(), &case.constants);
        let required = (row.required)(&args);
        let bytes: Vec<Vec<u8>> = required.iter().map(|&len| vec![0; len]).collect();
        let whole: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let Some(place) = required.iter().position(|&len| len > 0) else {
            continue;
        };
        let mut short = whole.clone();
        short[place] = &whole[place][1..];
        let wanted = |found| ShortBinding {
            index: row.bindings[place].index,
            found,
            required: required[place],
        };
        let error = row.run_twin(args, &short).err();
        assert_eq!(error, Some(wanted(required[place] - 1)), "{}", row.name());
        let error = row.run_twin(args, &whole[..place]).err();
        assert_eq!(error, Some(wanted(0)), "{}", row.name());
    }
}
