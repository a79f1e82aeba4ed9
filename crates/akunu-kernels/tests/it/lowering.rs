//! From operations to kernels: which ones, on a GPU and without one.

mod halves;
mod model;
mod parts;
mod single_row;

use std::mem::offset_of;

use akunu_kernels::plan::RowField;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{ChipConfig, KernelCall, KernelId, lower};
use akunu_program::{Choose, Count, Op, Slice, op};
use akunu_types::params::{AttentionParams, GEMMParams};

use crate::chips::{nvidia, rules};
use model::{F32, HEADS, Model, kernels, step_of};

/// One kernel an operation, and the same ones for any rows.
#[test]
fn plain_has_a_kernel_for_each_operation() {
    let model = Model::new(&mut TwinDevice::new());
    let gemv = KernelId::Gemv(F32);
    let attention = [KernelId::FlashAttentionDecode];
    let expected = step_of(gemv, &attention, &[KernelId::SiluGate, gemv], gemv);
    assert_eq!(expected.len(), model.ops.len() + 1);
    for room in [[2, 0, 2], [8, 0, 1], [0, 64, 1], [16, 64, 9]] {
        assert_eq!(kernels(&model.plain(room)), expected, "{room:?}");
    }
}

/// Biases come after the last product of the same vector: q, k and v run side by side, and a device that lays their
/// vector out does so once. Another vector's product comes after them.
#[test]
fn biases_come_after_the_products_of_one_vector() {
    let mut model = Model::new(&mut TwinDevice::new());
    let bias_of = model.buffers[0].into();
    for op in &mut model.ops[2..5] {
        if let Op::Product(op::Product { bias, .. }) = op {
            *bias = Some(bias_of);
        }
    }
    let (gemv, bias) = (KernelId::Gemv(F32), KernelId::BiasAdd);
    let program = model.program(&model.ops[2..5], [2, 0, 2]);
    let calls = lower::plain(&program);
    assert_eq!(kernels(&calls), [gemv, gemv, gemv, bias, bias, bias]);
    let written: Vec<Slice> = calls[..3].iter().map(|call| call.bindings[2]).collect();
    let biased: Vec<Slice> = calls[3..].iter().map(|call| call.bindings[0]).collect();
    assert_eq!(written, biased);
    let mixed = [model.ops[2], model.ops[7]];
    let calls = lower::plain(&model.program(&mixed, [2, 0, 2]));
    assert_eq!(kernels(&calls), [gemv, bias, gemv]);
}

/// Products follow the number of rows; the logits follow the number of outputs. Singles and run have their own
/// attention, and a program without one of them has none for it.
#[test]
fn a_gpu_chooses_by_the_number_of_rows() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let (few, tile, many) = (GemvBatched(F32), SimdGemmSmall(F32), SimdGemm(F32));
    let (decode, prefill) = (FlashAttentionDecodeFast, FlashAttentionPrefillV2);
    for (room, product, attention, logits) in [
        ([2, 0, 2], few, &[decode][..], few),
        ([4, 0, 1], few, &[decode], Gemv(F32)),
        ([8, 0, 8], tile, &[decode], tile),
        ([0, 8, 1], tile, &[FlashAttentionDecode], Gemv(F32)),
        ([0, 32, 1], many, &[FlashAttentionPrefill], Gemv(F32)),
        ([0, 64, 1], many, &[prefill], Gemv(F32)),
        ([3, 64, 4], many, &[decode, prefill], few),
        ([16, 64, 17], many, &[decode, prefill], many),
    ] {
        let expected = step_of(product, attention, &[SiluGate, product], logits);
        assert_eq!(kernels(&model.gpu(room)), expected, "{room:?}");
    }
}

/// RoPE, the storing of a key and attention are one kernel on an NVIDIA GPU with tensor cores, for a single row, and for rows that
/// a program moves on, which are of different sequences. Breaks when rows that may see each other's keys, another chip, or heads
/// that the kernel does not take are lowered like this, and when the counters are part of what other kernels write to.
#[test]
fn the_attention_of_rows_of_their_own_is_one_kernel() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let chip = nvidia(90);
    let scratch = Some(model.activated);
    let at = model
        .ops
        .iter()
        .position(|op| matches!(op, Op::RopeStore(_)));
    let at = at.expect("keys are stored");
    let of_heads = |head_dim| {
        let mut ops = model.ops[at..at + 2].to_vec();
        for op in &mut ops {
            if let Op::RopeStore(op::RopeStore { heads, .. })
            | Op::Attend(op::Attend { heads, .. }) = op
            {
                heads.head_dim = head_dim;
            }
            if let Op::RopeStore(store) = op {
                store.rope.turned_dim = head_dim;
            }
        }
        ops
    };
    let ops = of_heads(64);
    let lowered = |ops: &[Op], room, chip: &ChipConfig, scratch| {
        lower::by_rules(&model.program(ops, room), &*rules(chip), scratch)
    };
    let calls = lowered(&ops, [1, 0, 1], &chip, scratch);
    assert_eq!(kernels(&calls), [DecodeAttentionNeox]);
    let [.., parts, weights, arrived, _, _, _] = calls[0].bindings[..] else {
        panic!("{:?}", calls[0].bindings)
    };
    assert_eq!(arrived.offset, 0);
    let counters = 4 * HEADS.n_kv_heads as usize;
    assert!(counters <= parts.offset && parts.offset < weights.offset);

    let is_one =
        |ops: &[Op], room, chip: &ChipConfig, scratch| lowered(ops, room, chip, scratch).len() == 1;
    assert!(!is_one(&ops, [2, 0, 2], &chip, scratch));
    assert!(!is_one(&ops, [1, 1, 1], &chip, scratch));
    let advancing = [ops.clone(), vec![Op::Advance]].concat();
    let of_two = kernels(&lowered(&advancing, [2, 0, 2], &chip, scratch));
    assert_eq!(of_two, [DecodeAttentionNeox, AdvanceRows]);
    assert!(!is_one(&ops, [1, 0, 1], &chip, None));
    assert!(!is_one(&ops, [1, 0, 1], &ChipConfig::m1(), scratch));
    let without_tensors = nvidia(75);
    assert!(!is_one(&ops, [1, 0, 1], &without_tensors, scratch));
    let mut other_queries = ops.clone();
    if let Op::Attend(op::Attend { q, .. }) = &mut other_queries[1] {
        *q = model.activated.into();
    }
    assert!(!is_one(&other_queries, [1, 0, 1], &chip, scratch));
    assert!(!is_one(&of_heads(80), [1, 0, 1], &chip, scratch));
    let turning = |head_dim, dim| {
        let mut ops = of_heads(head_dim);
        if let Op::RopeStore(store) = &mut ops[0] {
            store.rope.turned_dim = dim;
        }
        ops
    };
    assert!(is_one(&turning(128, 64), [1, 0, 1], &chip, scratch));
    assert!(!is_one(&turning(64, 32), [1, 0, 1], &chip, scratch));
}

/// The last layer of a model is lowered like the others: when the outputs are gathered, nobody needs its norm any more. Breaks when
/// the gathering itself reads it.
#[test]
fn nothing_but_the_gathering_reads_what_is_left_in_rows() {
    let model = Model::new(&mut TwinDevice::new());
    let at = model.ops.iter().position(|op| matches!(op, Op::Gather(_)));
    let at = at.expect("outputs are gathered");
    // A norm and three products, then the gathering.
    let ops = [&model.ops[1..5], &model.ops[at..]].concat();
    let Op::Norm(op::Norm { to: normed, .. }) = ops[0] else {
        panic!("{:?}", ops[0])
    };
    let first = |ops: &[Op]| {
        let program = model.program(ops, [1, 0, 1]);
        lower::by_rules(&program, &*rules(&ChipConfig::m1()), None)[0]
            .key
            .kernel
    };
    assert_eq!(first(&ops), KernelId::NormGemv(F32));
    let mut gathered = ops.clone();
    if let Op::Gather(op::Gather { from, .. }) = &mut gathered[4] {
        *from = normed;
    }
    assert_eq!(first(&gathered), KernelId::RmsNorm);
    assert_eq!(first(&ops[..4]), KernelId::RmsNorm, "nothing says so");
}

/// Which rows each kernel works on.
#[test]
fn the_number_of_rows_goes_where_it_is_read() {
    let model = Model::new(&mut TwinDevice::new());
    let attention = |calls: Vec<KernelCall>| {
        let of_attention = calls.into_iter().filter(|call| call.label == "attention");
        of_attention.map(|call| call.row_fields).collect::<Vec<_>>()
    };
    let n_rows = |count| RowField::new(offset_of!(AttentionParams, n_rows), count);
    let first_row = RowField::new(offset_of!(AttentionParams, first_row), Count::Singles);
    let room = [3, 64, 4];
    assert_eq!(attention(model.plain(room)), [[n_rows(Count::Rows)]]);
    let of_run = vec![n_rows(Count::Run), first_row];
    assert_eq!(
        attention(model.gpu(room)),
        [vec![n_rows(Count::Singles)], of_run]
    );
    let products = |calls: Vec<KernelCall>| {
        let products = calls.into_iter().filter(|call| call.label == "product");
        products.map(|call| call.row_fields).collect::<Vec<_>>()
    };
    let m = |count| vec![RowField::new(offset_of!(GEMMParams, M), count)];
    let expected = [vec![m(Count::Rows); 7], vec![m(Count::Outputs)]].concat();
    for calls in [model.plain(room), model.gpu(room)] {
        assert_eq!(products(calls), expected);
    }
}

/// What an operation may be asked for besides is a kernel more.
#[test]
fn scales_biases_and_rules_are_kernels_of_their_own() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let plain = |op: Op| kernels(&lower::plain(&model.program(&[op], [2, 0, 2])));
    let mut ops = model.ops.clone();
    for op in &mut ops {
        match op {
            Op::Embed(op::Embed { scale, .. }) => *scale = Some(8.0),
            Op::Product(op::Product { bias, x, .. }) => *bias = Some(*x),
            Op::Choose(op::Choose { how, .. }) => *how = Choose::ByRule,
            _ => {}
        }
    }
    assert_eq!(plain(ops.remove(0)), [EmbeddingLookup(F32), EmbeddingScale]);
    assert_eq!(plain(ops.remove(1)), [Gemv(F32), BiasAdd]);
    let choice = ops.iter().find(|op| matches!(op, Op::Choose(_)));
    let choice = choice.expect("there is a choice");
    assert_eq!(plain(*choice), [Penalties, Draw]);
}
