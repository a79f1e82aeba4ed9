//! Which operations of a single row are one kernel.

use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{ChipConfig, Constant, KernelCall, KernelId, lower};
use akunu_program::{Op, Rows, op};
use akunu_types::DType;

use super::model::{F32, Model, kernels, step_of};
use crate::chips::{nvidia, rules};

/// A single row has no use for an activation that all can read. On a GPU it is part of the products that it gates, where
/// those come with a norm.
#[test]
fn a_single_row_fuses_gate_and_product() {
    let model = Model::new(&mut TwinDevice::new());
    let (gemv, fused) = (KernelId::Gemv(F32), KernelId::GemvSilu(F32));
    let plain = step_of(gemv, &[KernelId::FlashAttentionDecode], &[fused], gemv);
    let apart = [KernelId::SiluGate, gemv];
    let gpu = step_of(gemv, &[KernelId::FlashAttentionDecodeFast], &apart, gemv);
    let gpu = [&gpu[..1], &[KernelId::NormGemv(F32)], &gpu[5..]].concat();
    for room in [[1, 0, 1], [0, 1, 1]] {
        let calls = model.plain(room);
        assert_eq!(kernels(&calls), plain, "{room:?}");
        let is_bound = |call: &KernelCall| {
            let buffers = call.bindings.iter().map(|slice| slice.buffer);
            buffers.into_iter().any(|buffer| buffer == model.activated)
        };
        assert!(!calls.iter().any(is_bound));
        assert_eq!(kernels(&model.gpu(room)), gpu, "{room:?}");
    }
    // Not when something else than the next operation reads it, or when a bias follows.
    let at = model.ops.iter().position(|op| matches!(op, Op::Gate(_)));
    let at = at.expect("there is a gate");
    let gate = &model.ops[at];
    let mut with_bias = model.ops[at + 1];
    if let Op::Product(op::Product { bias, to, .. }) = &mut with_bias {
        *bias = Some(*to);
    }
    let plain = |ops: &[Op]| kernels(&lower::plain(&model.program(ops, [1, 0, 1])));
    let other = &model.ops[at - 1];
    assert_eq!(plain(&[*gate, *other]), [KernelId::SiluGate, gemv]);
    let biased = [KernelId::SiluGate, gemv, KernelId::BiasAdd];
    assert_eq!(plain(&[*gate, with_bias]), biased);
}

/// A single row gets a norm and the products that read it as one kernel, but not where something else
/// reads the norm too, where the formats differ, or where there are several rows.
#[test]
fn a_norm_and_its_products_are_one_kernel() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let chip = nvidia(90);
    let lowered = |ops: &[Op], room| {
        kernels(&lower::by_rules(
            &model.program(ops, room),
            &*rules(&chip),
            None,
        ))
    };
    let split = DecodeGemv(F32);
    let apart = step_of(
        split,
        &[FlashAttentionDecodeFast],
        &[SiluGate, split],
        split,
    );
    let normed = [DecodeNormGemv(F32)];
    let together = [&apart[..1], &normed, &apart[5..13], &normed, &apart[16..]].concat();
    assert_eq!(lowered(&model.ops, [1, 0, 1]), together);
    assert_eq!(lowered(&model.ops, [2, 0, 1])[1], RmsNorm);

    let is_fused = |change: fn(&mut Vec<Op>)| {
        let mut ops = model.ops.clone();
        change(&mut ops);
        lowered(&ops, [1, 0, 1])[1] == DecodeNormGemv(F32)
    };
    assert!(is_fused(|_| {}));
    assert!(!is_fused(|ops| {
        let Op::Norm(op::Norm { to, .. }) = ops[1] else {
            panic!("{:?}", ops[1])
        };
        let Op::Gate(op::Gate { gate, .. }) = &mut ops[11] else {
            panic!("{:?}", ops[11])
        };
        *gate = to;
        // Nothing overwrites it before.
        ops.remove(7);
    }));
    assert!(!is_fused(|ops| {
        let Op::Product(op::Product { weight, .. }) = &mut ops[3] else {
            panic!("{:?}", ops[3])
        };
        weight.dtype = DType::F16;
    }));
}

/// A norm, the two products that read it and the gate between them are one kernel for a single row on a GPU. Breaks when a bias, or
/// another order, is taken for a gate, or when several rows are.
#[test]
fn a_norm_its_products_and_their_gate_are_one_kernel() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let nvidia = nvidia(90);
    let at = model.ops.iter().position(|op| matches!(op, Op::Gate(_)));
    let at = at.expect("there is a gate");
    // The norm of attention before the feed-forward, whose products read it.
    let mut ops = vec![model.ops[1]];
    ops.extend_from_slice(&model.ops[at - 2..=at + 1]);
    ops.push(model.ops[1]);
    let Op::Norm(op::Norm { to: normed, .. }) = ops[0] else {
        panic!("{:?}", ops[0])
    };
    for op in &mut ops[1..3] {
        if let Op::Product(op::Product { x, .. }) = op {
            *x = normed;
        }
    }
    let lowered = |ops: &[Op], rows, chip: &ChipConfig| {
        lower::by_rules(&model.program(ops, [rows, 0, 1]), &*rules(chip), None)
    };
    let m1 = ChipConfig::m1();
    let calls = lowered(&ops, 1, &m1);
    assert_eq!(kernels(&calls), [NormGemv(F32), Gemv(F32), RmsNorm]);
    assert_eq!(calls[0].key.constants.u32(Constant::Gate), Some(1));
    assert_eq!(calls[0].bindings[5].buffer, model.activated);
    let calls = lowered(&ops, 1, &nvidia);
    let gated = [DecodeNormGemv(F32), DecodeGemv(F32), RmsNorm];
    assert_eq!(kernels(&calls), gated);
    assert_eq!(calls[0].key.constants.u32(Constant::Gate), Some(1));
    let is_gated = |change: fn(&mut [Op]), rows| {
        let mut ops = ops.clone();
        change(&mut ops);
        let calls = lowered(&ops, rows, &m1);
        !kernels(&calls).contains(&SiluGate)
    };
    assert!(is_gated(|_| {}, 1));
    assert!(!is_gated(|_| {}, 2));
    assert!(!is_gated(|ops| ops.swap(1, 2), 1), "up comes first");
    assert!(!is_gated(
        |ops| {
            if let Op::Product(op::Product { bias, to, .. }) = &mut ops[1] {
                *bias = Some(*to);
            }
        },
        1
    ));
}

/// The gathering of the only row, its norm and its logits are one kernel on an NVIDIA GPU. Breaks when another chip, several rows or
/// outputs, or a program in which something else reads the norm are lowered like this.
#[test]
fn the_logits_of_a_single_row_are_one_kernel() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let nvidia = nvidia(75);
    let lowered = |ops: &[Op], room, chip: &ChipConfig| {
        lower::by_rules(&model.program(ops, room), &*rules(chip), None)
    };
    let calls = lowered(&model.ops, [1, 0, 1], &nvidia);
    let choice = [LogitSoftcap, ArgmaxPartial, Argmax, AdvanceRows];
    let end = [&[DecodeNormGemv(F32)][..], &choice].concat();
    assert!(kernels(&calls).ends_with(&end), "{:?}", kernels(&calls));
    let output = &calls[calls.len() - end.len()];
    let Some(Op::Gather(op::Gather { from, .. })) =
        model.ops.iter().find(|op| matches!(op, Op::Gather(_)))
    else {
        panic!("outputs are gathered")
    };
    assert_eq!(output.bindings[0], *from);

    let is_apart = |ops: &[Op], room, chip: &ChipConfig| {
        kernels(&lowered(ops, room, chip)).contains(&GatherRows)
    };
    assert!(!is_apart(&model.ops, [1, 0, 1], &nvidia));
    assert!(is_apart(&model.ops, [1, 0, 1], &ChipConfig::m1()));
    assert!(is_apart(&model.ops, [2, 0, 1], &nvidia));
    assert!(is_apart(&model.ops, [1, 0, 2], &nvidia));
    let mut read_again = model.ops.clone();
    let normal = model.ops.iter().find_map(|op| match op {
        Op::Norm(op::Norm {
            rows: Rows::Outputs,
            to,
            ..
        }) => Some(*to),
        _ => None,
    });
    for op in &mut read_again {
        if let Op::Softcap(op::Softcap { x, .. }) = op {
            *x = normal.expect("outputs are normalised");
        }
    }
    assert!(is_apart(&read_again, [1, 0, 1], &nvidia));
}
