//! What goes to tensor cores as halves, and where it lies.

use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{ChipConfig, KernelId, lower};
use akunu_program::{Buffer, Op, Program, op};
use akunu_types::DType;
use akunu_types::params::DecodeAttentionParams;

use super::model::{F32, Model, kernels};
use crate::chips::{nvidia, rules};

/// The scratch memory that a program asks for. Nobody reads it.
fn scratch(program: &Program, chip: &ChipConfig) -> Buffer {
    Buffer {
        id: 1000,
        generation: 0,
        len: lower::scratch_bytes(program, &*rules(chip)),
        writable: true,
    }
}

/// With memory for what kernels leave for each other, keys are split and joined, and several rows of weights that are not
/// in f32 go to tensor cores: x in halves once for all products that read it. Breaks when a product reads what another
/// one's x has left there, and when the memory that is asked for is not the memory that is used.
#[test]
fn scratch_memory_lets_kernels_share_an_operation() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let chip = nvidia(90);
    let mut ops = model.ops.clone();
    for op in &mut ops {
        if let Op::Product(op::Product { weight, .. }) = op {
            weight.dtype = DType::F16;
        }
    }
    let program = model.program(&ops, [2, 0, 2]);
    let scratch = scratch(&program, &chip);
    let bytes = scratch.len;
    let calls = lower::by_rules(&program, &*rules(&chip), Some(scratch));
    let product = DecodeGemm(DType::F16);
    let expected = [
        &[EmbeddingLookup(F32), NormHalfRows, product, RopeNeoxStore][..],
        &[FlashAttentionDecodeSplit, FlashAttentionJoin],
        &[HalfRows, product, RmsNormResidual],
        &[HalfRows, product, SiluHalfRows],
        &[product, GatherRows, NormHalfRows],
        &[product, LogitSoftcap],
        &[ArgmaxPartial, Argmax, AdvanceRows],
    ];
    assert_eq!(kernels(&calls), expected.concat());
    let ends = calls.iter().flat_map(|call| {
        let row = call.key.kernel.row();
        let mut params = call.params.as_bytes().to_vec();
        for field in &call.row_fields {
            let value = program.room.of(field.count) * field.times;
            params[field.offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
        }
        let required = (row.required)(&row.args(&params, &call.key.constants));
        let places = call.bindings.clone().into_iter().zip(required);
        places.filter(|(place, _)| place.buffer == scratch)
    });
    let end = ends.map(|(place, bytes)| place.offset + bytes).max();
    assert!(
        end.is_some_and(|end| end <= bytes && bytes < end + 256),
        "{end:?} of {bytes}"
    );
    // Without it, and on a chip that has no such cores, nothing of the kind.
    let without = kernels(&lower::by_rules(&program, &*rules(&chip), None));
    assert!(!without.contains(&HalfRows) && !without.contains(&FlashAttentionJoin));
    let apple = kernels(&lower::by_rules(
        &program,
        &*rules(&ChipConfig::m1()),
        Some(scratch),
    ));
    assert!(!apple.contains(&HalfRows) && apple.contains(&FlashAttentionJoin));
}

/// Where only products on tensor cores read a norm or a gate, it leaves halves for them and nothing else. Breaks when another
/// operation would read what was never written, when weights of two formats are given to one kernel, and when a small weight that
/// is in the launch of a large one is taken for one of a kernel of its own.
#[test]
fn what_only_products_read_is_left_in_halves() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let chip = nvidia(90);
    let layer = || {
        let mut ops = model.ops[1..13].to_vec();
        for op in &mut ops {
            if let Op::Product(op::Product { weight, .. }) = op {
                weight.dtype = DType::F16;
            }
        }
        ops
    };
    let lowered_rows = |ops: &[Op], n_rows| {
        let program = model.program(ops, [n_rows, 0, 4]);
        let scratch = scratch(&program, &chip);
        kernels(&lower::by_rules(&program, &*rules(&chip), Some(scratch)))
    };
    let lowered = |ops: &[Op]| lowered_rows(ops, 4);
    let product = DecodeGemm(DType::F16);
    let attention = [RopeNeoxStore, FlashAttentionDecodeSplit, FlashAttentionJoin];
    let of_layer = |gate: &[KernelId]| {
        let before = [NormHalfRows, product];
        let between = [HalfRows, product, RmsNormResidual, HalfRows, product];
        [&before, &attention[..], &between, gate, &[product]].concat()
    };
    let (first, last) = (of_layer(&[SiluHalfRows]), of_layer(&[SiluGate, HalfRows]));
    let two_layers = [layer(), layer()].concat();
    assert_eq!(lowered(&two_layers), [first.clone(), last.clone()].concat());

    let mut read_later = two_layers.clone();
    let Op::Gate(op::Gate { to, .. }) = read_later[10] else {
        panic!("{:?}", read_later[10])
    };
    let Op::Norm(op::Norm { x, .. }) = &mut read_later[12] else {
        panic!("{:?}", read_later[12])
    };
    *x = to;
    assert_eq!(lowered(&read_later), [last.clone(), last.clone()].concat());

    // Of the outputs: nothing has to come after the logits, but nothing may read what they have read.
    let mut logits = model.ops[13..].to_vec();
    let Op::Product(op::Product {
        weight, x: normed, ..
    }) = &mut logits[2]
    else {
        panic!("{:?}", logits[2])
    };
    weight.dtype = DType::F16;
    let normed = *normed;
    assert_eq!(lowered(&logits)[..3], [GatherRows, NormHalfRows, product]);
    let Op::Softcap(op::Softcap { x, .. }) = &mut logits[3] else {
        panic!("{:?}", logits[3])
    };
    *x = normed;
    assert_eq!(lowered(&logits)[1..3], [RmsNorm, HalfRows]);

    let mut mixed = layer();
    let Op::Product(op::Product { weight, .. }) = &mut mixed[2] else {
        panic!("{:?}", mixed[2])
    };
    weight.dtype = DType::BF16;
    let three = [product, DecodeGemm(DType::BF16), product];
    assert_eq!(lowered(&mixed), [&last[..1], &three, &last[2..]].concat());

    let mut of_two_sizes = layer();
    let Op::Product(op::Product { weight, .. }) = &mut of_two_sizes[1] else {
        panic!("{:?}", of_two_sizes[1])
    };
    weight.rows = 1 << 20;
    let found = lowered_rows(&of_two_sizes, 40);
    assert_eq!(found[..2], [NormHalfRows, AsyncGemm64(DType::F16)]);
    assert_ne!(found[2], DecodeGemm(DType::F16));

    // All outputs of a launch count, not those of its first product alone.
    let mut of_many_outputs = layer();
    let Op::Product(op::Product { weight, .. }) = &mut of_many_outputs[2] else {
        panic!("{:?}", of_many_outputs[2])
    };
    weight.rows = 4096;
    let found = lowered_rows(&of_many_outputs, 40);
    assert_eq!(found[..2], [NormHalfRows, DecodeGemmDouble(DType::F16)]);
    assert_eq!(lowered_rows(&layer(), 40)[..2], [NormHalfRows, product]);
}

/// Where only products on tensor cores read what attention of several decoding rows gives, it leaves halves for them, and no kernel
/// makes them. Breaks when another operation, or a product that reads floats, would read what was never written, when the product
/// looks for halves elsewhere or in another order, and when the parts of attention lie over them.
#[test]
fn attention_of_several_rows_leaves_halves_for_its_product() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let chip = nvidia(90);
    let layer = || {
        let mut ops = model.ops[1..13].to_vec();
        for op in &mut ops {
            match op {
                Op::RopeStore(op::RopeStore { heads, rope, .. }) => {
                    (heads.head_dim, rope.turned_dim) = (64, 64);
                }
                Op::Attend(op::Attend { heads, .. }) => heads.head_dim = 64,
                Op::Product(op::Product { weight, .. }) => weight.dtype = DType::F16,
                _ => {}
            }
        }
        let Op::Product(op::Product { weight, .. }) = &mut ops[6] else {
            panic!("{:?}", ops[6])
        };
        weight.cols = 128;
        ops
    };
    let lowered = |ops: &[Op], n_rows| {
        let ops = [ops, &[Op::Advance]].concat();
        let program = model.program(&ops, [n_rows, 0, n_rows]);
        let scratch = scratch(&program, &chip);
        lower::by_rules(&program, &*rules(&chip), Some(scratch))
    };
    // What stands between attention and the norm after its product.
    let after_attention = |ops: &[Op], n_rows| {
        let calls = lowered(ops, n_rows);
        let found = kernels(&calls);
        let layers = found.split(|&kernel| kernel == DecodeAttentionNeox);
        let until_norm = |layer: &[KernelId]| {
            let is_norm = |&kernel: &KernelId| kernel == RmsNormResidual;
            layer.split(is_norm).next().map(<[_]>::to_vec)
        };
        layers.skip(1).filter_map(until_norm).collect::<Vec<_>>()
    };
    let product = DecodeGemm(DType::F16);
    let (alone, halved) = (vec![product], vec![HalfRows, product]);
    // Nothing overwrites what the last layer leaves.
    let two_layers = [layer(), layer()].concat();
    assert_eq!(
        after_attention(&two_layers, 4),
        [alone.clone(), halved.clone()]
    );
    let one_row = after_attention(&two_layers, 1);
    assert_eq!(one_row, vec![vec![DecodeGemv(DType::F16)]; 2]);

    let mut read_later = two_layers.clone();
    let Op::Attend(op::Attend { to: attended, .. }) = read_later[5] else {
        panic!("{:?}", read_later[5])
    };
    let Op::Norm(op::Norm { x, .. }) = &mut read_later[12] else {
        panic!("{:?}", read_later[12])
    };
    *x = attended;
    assert_eq!(after_attention(&read_later, 4), [halved.clone(), halved]);

    let in_columns = {
        let mut ops = two_layers.clone();
        let Op::Product(op::Product { weight, .. }) = &mut ops[6] else {
            panic!("{:?}", ops[6])
        };
        weight.rows = 1 << 20;
        ops
    };
    for (ops, n_rows, order) in [
        (&two_layers, 4, 1),
        (&two_layers, 20, 1),
        (&in_columns, 40, 2),
    ] {
        let calls = lowered(ops, n_rows);
        let at = kernels(&calls)
            .iter()
            .position(|&kernel| kernel == DecodeAttentionNeox);
        let at = at.expect("there is attention");
        let [attention, product] = [&calls[at], &calls[at + 1]];
        let params: DecodeAttentionParams =
            bytemuck::pod_read_unaligned(attention.params.as_bytes());
        assert_eq!((params.order, params.half_stride), (order, 128));
        let [.., parts, _weights, _arrived, halves, factors, _centre] = attention.bindings[..]
        else {
            panic!("{:?}", attention.bindings)
        };
        assert_eq!(product.bindings[0], halves);
        assert!(product.bindings.contains(&factors));
        let n_halves = n_rows.next_multiple_of(8) as usize * 128;
        assert!(factors.offset + 4 * n_rows as usize <= halves.offset);
        assert!(halves.offset + 2 * n_halves <= parts.offset);
    }
}
