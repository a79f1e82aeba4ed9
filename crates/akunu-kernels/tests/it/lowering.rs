//! From operations to kernels: which ones, on a GPU and without one, and that every operation can be run by itself.

use std::mem::offset_of;
use std::ops::Range;

use akunu_kernels::case::Rng;
use akunu_kernels::lower;
use akunu_kernels::plan::{RowField, Slice};
use akunu_kernels::program::{
    ChoiceMemory, Choose, GateFunction, Heads, LayerCache, Matrix, Pairing, Rope, Rows,
};
use akunu_kernels::step::Count;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::weight::MlxLayout;
use akunu_kernels::{
    Buffer, ChipConfig, Constant, Counts, Device, KernelCall, KernelId, Op, PageMap, Program,
    RowTable, StepMemory,
};
use akunu_types::params::{AttentionParams, DecodeAttentionParams, GEMMParams, Row, SamplingRule};
use akunu_types::{DType, KvFormat};

use crate::chips::nvidia;

const DIM: u32 = 64;
const WIDTH: u32 = 96;
const VOCAB: u32 = 50;
const HEADS: Heads = Heads {
    n_heads: 2,
    n_kv_heads: 1,
    head_dim: 32,
};
const KV_DIM: u32 = 32;
const N_SEQUENCES: u32 = 3;
const ROW_CAPACITY: u32 = 80;
const MAX_STEPS: u32 = 4;
/// Two pages of 64 slots for each sequence.
const PAGE_SHIFT: u32 = 6;
const TABLE_STRIDE: u32 = 2;
const F32: DType = DType::F32;

/// A model of one layer, its memory, and the operations of a step.
struct Model {
    ops: Vec<Op>,
    step: StepMemory,
    pages: PageMap,
    /// What an activation gives. A kernel may keep it to itself.
    activated: Buffer,
    /// All other memory.
    buffers: Vec<Buffer>,
}

/// Buffers with the same random numbers on every device.
struct Memory<'a> {
    device: &'a mut dyn Device,
    rng: Rng,
    buffers: Vec<Buffer>,
}

impl Memory<'_> {
    fn filled(&mut self, bytes: &[u8]) -> Buffer {
        let buffer = self.device.allocate(bytes.len(), "test");
        let buffer = buffer.expect("host memory");
        self.device.write(buffer, 0, bytes).expect("it fits");
        self.buffers.push(buffer);
        buffer
    }

    fn words(&mut self, n: u32) -> Buffer {
        self.filled(&vec![0; 4 * n as usize])
    }

    fn floats(&mut self, n: u32) -> Buffer {
        let numbers = self.rng.floats(n as usize, 0.5);
        self.filled(bytemuck::cast_slice(&numbers))
    }

    /// A number for each row and column.
    fn activations(&mut self, width: u32) -> Slice {
        self.floats(ROW_CAPACITY * width).into()
    }

    fn pool(&mut self) -> Buffer {
        let n = (N_SEQUENCES * TABLE_STRIDE * KV_DIM) as usize;
        let halves = self.rng.halves(n << PAGE_SHIFT, 0.5);
        self.filled(bytemuck::cast_slice(&halves))
    }

    fn matrix(&mut self, rows: u32, cols: u32) -> Matrix {
        Matrix {
            place: self.floats(rows * cols).into(),
            dtype: F32,
            rows,
            cols,
            mlx: MlxLayout::default(),
        }
    }

    fn product(&mut self, rows: Rows, [from, to]: [Slice; 2], [n, k]: [u32; 2], add: bool) -> Op {
        Op::Product {
            rows,
            weight: self.matrix(n, k),
            x: from,
            to,
            add,
            bias: None,
            label: "product",
        }
    }

    fn norm(&mut self, rows: Rows, x: Slice, to: Slice) -> Op {
        Op::Norm {
            rows,
            x,
            weight: self.floats(DIM).into(),
            to,
            dim: DIM,
            eps: 1e-5,
        }
    }

    fn step(&mut self) -> StepMemory {
        let rule_words = (size_of::<SamplingRule>() / 4) as u32;
        StepMemory {
            rows: self.words(ROW_CAPACITY * (size_of::<Row>() / 4) as u32),
            tokens: self.words(ROW_CAPACITY),
            outputs: self.words(ROW_CAPACITY),
            rules: self.words(N_SEQUENCES * rule_words),
            history: self.words(N_SEQUENCES * 8),
            chosen: self.words(MAX_STEPS * ROW_CAPACITY),
            row_capacity: ROW_CAPACITY,
            n_sequences: N_SEQUENCES,
            history_stride: 8,
            max_steps: MAX_STEPS,
        }
    }
}

impl Model {
    fn new(device: &mut dyn Device) -> Model {
        let mut m = Memory {
            device,
            rng: Rng::new(7),
            buffers: Vec::new(),
        };
        let step = m.step();
        let pages = PageMap {
            table: m.words(N_SEQUENCES * TABLE_STRIDE),
            table_stride: TABLE_STRIDE,
            page_shift: PAGE_SHIFT,
            n_pages: N_SEQUENCES * TABLE_STRIDE,
            n_sequences: N_SEQUENCES,
            window: None,
        };
        let (k, v) = (m.pool(), m.pool());
        let cache = LayerCache {
            k,
            v,
            pages,
            format: KvFormat::F16,
        };
        let [h, x, q, attended] = [(); 4].map(|()| m.activations(DIM));
        let [k, v] = [(); 2].map(|()| m.activations(KV_DIM));
        let [gate, up, activated] = [(); 3].map(|()| m.activations(WIDTH));
        let [out, normal] = [(); 2].map(|()| m.activations(DIM));
        let logits = m.activations(VOCAB);
        let n_candidates = ROW_CAPACITY * Op::candidates(VOCAB);
        let memory = ChoiceMemory {
            values: m.words(n_candidates),
            ids: m.words(n_candidates),
            bias_tokens: m.words(N_SEQUENCES),
            bias_values: m.words(N_SEQUENCES),
            bias_stride: 1,
            breakers: m.words(N_SEQUENCES * VOCAB.div_ceil(32)),
            mu: m.words(N_SEQUENCES),
        };
        let divisors = m.filled(bytemuck::cast_slice(&[1f32; 16])).into();
        let (all, outputs) = (Rows::All, Rows::Outputs);
        let ops = vec![
            Op::Embed {
                table: m.matrix(VOCAB, DIM),
                scale: None,
                to: h,
            },
            m.norm(all, h, x),
            m.product(all, [x, q], [DIM, DIM], false),
            m.product(all, [x, k], [KV_DIM, DIM], false),
            m.product(all, [x, v], [KV_DIM, DIM], false),
            Op::RopeStore {
                q,
                k,
                v,
                heads: HEADS,
                rope: Rope {
                    pairing: Pairing::Halves,
                    theta: 1e4,
                    freq_scale: 1.0,
                    divisors,
                },
                centre: None,
                norms: None,
                cache,
            },
            Op::Attend {
                q,
                to: attended,
                heads: HEADS,
                cache,
                scale: 0.2,
                softcap: None,
            },
            m.product(all, [attended, x], [DIM, DIM], false),
            Op::AddNorm {
                x,
                weight: m.floats(DIM).into(),
                to: h,
                dim: DIM,
                eps: 1e-5,
            },
            m.product(all, [h, gate], [WIDTH, DIM], false),
            m.product(all, [h, up], [WIDTH, DIM], false),
            Op::Gate {
                activation: GateFunction::Silu,
                gate,
                up,
                to: activated,
                width: WIDTH,
            },
            m.product(all, [activated, h], [DIM, WIDTH], true),
            Op::Gather {
                from: h,
                to: out,
                dim: DIM,
            },
            m.norm(outputs, out, normal),
            m.product(outputs, [normal, logits], [VOCAB, DIM], false),
            Op::Softcap {
                x: logits,
                width: VOCAB,
                cap: 3.0,
            },
            Op::Choose {
                how: Choose::Best,
                logits,
                vocab_size: VOCAB,
                memory,
            },
            Op::Advance,
        ];
        let activated = activated.buffer;
        m.buffers.retain(|&buffer| buffer != activated);
        Model {
            ops,
            step,
            pages,
            activated,
            buffers: m.buffers,
        }
    }

    fn program(&self, ops: &[Op], [singles, run, outputs]: [u32; 3]) -> Program {
        Program {
            ops: ops.to_vec(),
            step: Some(self.step),
            room: Counts {
                singles,
                run,
                outputs,
            },
        }
    }

    /// The kernels of all operations with room for so many singles, rows of a run, and outputs.
    fn plain(&self, room: [u32; 3]) -> Vec<KernelCall> {
        lower::plain(&self.program(&self.ops, room))
    }

    fn gpu(&self, room: [u32; 3]) -> Vec<KernelCall> {
        lower::gpu(&self.program(&self.ops, room), &ChipConfig::m1(), None)
    }
}

fn kernels(calls: &[KernelCall]) -> Vec<KernelId> {
    calls.iter().map(|call| call.key.kernel).collect()
}

/// The kernels of a step: `product` for the products of all rows and `logits` for that of the outputs, `attention`, and
/// `gated` for an activation and what follows.
fn step_of(
    product: KernelId,
    attention: &[KernelId],
    gated: &[KernelId],
    logits: KernelId,
) -> Vec<KernelId> {
    use KernelId::*;
    let before = [
        EmbeddingLookup(F32),
        RmsNorm,
        product,
        product,
        product,
        RopeNeoxStore,
    ];
    let between = [product, RmsNormResidual, product, product];
    let after = [GatherRows, RmsNorm, logits, LogitSoftcap];
    // Choosing the best is the one operation of two kernels.
    let choice = [ArgmaxPartial, Argmax, AdvanceRows];
    [&before, attention, &between, gated, &after, &choice].concat()
}

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
        if let Op::Product { bias, .. } = op {
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
    let mixed = [model.ops[2].clone(), model.ops[7].clone()];
    let calls = lower::plain(&model.program(&mixed, [2, 0, 2]));
    assert_eq!(kernels(&calls), [gemv, bias, gemv]);
}

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
    let at = model
        .ops
        .iter()
        .position(|op| matches!(op, Op::Gate { .. }));
    let at = at.expect("there is a gate");
    let gate = &model.ops[at];
    let mut with_bias = model.ops[at + 1].clone();
    if let Op::Product { bias, to, .. } = &mut with_bias {
        *bias = Some(*to);
    }
    let plain = |ops: &[Op]| kernels(&lower::plain(&model.program(ops, [1, 0, 1])));
    let other = &model.ops[at - 1];
    assert_eq!(
        plain(&[gate.clone(), other.clone()]),
        [KernelId::SiluGate, gemv]
    );
    let biased = [KernelId::SiluGate, gemv, KernelId::BiasAdd];
    assert_eq!(plain(&[gate.clone(), with_bias]), biased);
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
        if let Op::Product { weight, .. } = op {
            weight.dtype = DType::F16;
        }
    }
    let program = model.program(&ops, [2, 0, 2]);
    let bytes = lower::scratch_bytes(&program, &chip);
    let scratch = Buffer {
        id: 1000,
        generation: 0,
        len: bytes,
        writable: true,
    };
    let calls = lower::gpu(&program, &chip, Some(scratch));
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
    let without = kernels(&lower::gpu(&program, &chip, None));
    assert!(!without.contains(&HalfRows) && !without.contains(&FlashAttentionJoin));
    let apple = kernels(&lower::gpu(&program, &ChipConfig::m1(), Some(scratch)));
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
            if let Op::Product { weight, .. } = op {
                weight.dtype = DType::F16;
            }
        }
        ops
    };
    let lowered_rows = |ops: &[Op], n_rows| {
        let program = model.program(ops, [n_rows, 0, 4]);
        let scratch = Buffer {
            id: 1000,
            generation: 0,
            len: lower::scratch_bytes(&program, &chip),
            writable: true,
        };
        kernels(&lower::gpu(&program, &chip, Some(scratch)))
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
    let Op::Gate { to, .. } = read_later[10] else {
        panic!("{:?}", read_later[10])
    };
    let Op::Norm { x, .. } = &mut read_later[12] else {
        panic!("{:?}", read_later[12])
    };
    *x = to;
    assert_eq!(lowered(&read_later), [last.clone(), last.clone()].concat());

    // Of the outputs: nothing has to come after the logits, but nothing may read what they have read.
    let mut logits = model.ops[13..].to_vec();
    let Op::Product {
        weight, x: normed, ..
    } = &mut logits[2]
    else {
        panic!("{:?}", logits[2])
    };
    weight.dtype = DType::F16;
    let normed = *normed;
    assert_eq!(lowered(&logits)[..3], [GatherRows, NormHalfRows, product]);
    let Op::Softcap { x, .. } = &mut logits[3] else {
        panic!("{:?}", logits[3])
    };
    *x = normed;
    assert_eq!(lowered(&logits)[1..3], [RmsNorm, HalfRows]);

    let mut mixed = layer();
    let Op::Product { weight, .. } = &mut mixed[2] else {
        panic!("{:?}", mixed[2])
    };
    weight.dtype = DType::BF16;
    let three = [product, DecodeGemm(DType::BF16), product];
    assert_eq!(lowered(&mixed), [&last[..1], &three, &last[2..]].concat());

    let mut of_two_sizes = layer();
    let Op::Product { weight, .. } = &mut of_two_sizes[1] else {
        panic!("{:?}", of_two_sizes[1])
    };
    weight.rows = 1 << 20;
    let found = lowered_rows(&of_two_sizes, 40);
    assert_eq!(found[..2], [NormHalfRows, AsyncGemm64(DType::F16)]);
    assert_ne!(found[2], DecodeGemm(DType::F16));

    // All outputs of a launch count, not those of its first product alone.
    let mut of_many_outputs = layer();
    let Op::Product { weight, .. } = &mut of_many_outputs[2] else {
        panic!("{:?}", of_many_outputs[2])
    };
    weight.rows = 4096;
    let found = lowered_rows(&of_many_outputs, 40);
    assert_eq!(found[..2], [NormHalfRows, DecodeGemmDouble(DType::F16)]);
    assert_eq!(lowered_rows(&layer(), 40)[..2], [NormHalfRows, product]);
}

/// A single row gets a norm and the products that read it as one kernel, but not where something else
/// reads the norm too, where the formats differ, or where there are several rows.
#[test]
fn a_norm_and_its_products_are_one_kernel() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let chip = nvidia(90);
    let lowered = |ops: &[Op], room| kernels(&lower::gpu(&model.program(ops, room), &chip, None));
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
        let Op::Norm { to, .. } = ops[1] else {
            panic!("{:?}", ops[1])
        };
        let Op::Gate { gate, .. } = &mut ops[11] else {
            panic!("{:?}", ops[11])
        };
        *gate = to;
        // Nothing overwrites it before.
        ops.remove(7);
    }));
    assert!(!is_fused(|ops| {
        let Op::Product { weight, .. } = &mut ops[3] else {
            panic!("{:?}", ops[3])
        };
        weight.dtype = DType::F16;
    }));
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
        .position(|op| matches!(op, Op::RopeStore { .. }));
    let at = at.expect("keys are stored");
    let of_heads = |head_dim| {
        let mut ops = model.ops[at..at + 2].to_vec();
        for op in &mut ops {
            if let Op::RopeStore { heads, .. } | Op::Attend { heads, .. } = op {
                heads.head_dim = head_dim;
            }
        }
        ops
    };
    let ops = of_heads(64);
    let lowered = |ops: &[Op], room, chip: &ChipConfig, scratch| {
        lower::gpu(&model.program(ops, room), chip, scratch)
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
    if let Op::Attend { q, .. } = &mut other_queries[1] {
        *q = model.activated.into();
    }
    assert!(!is_one(&other_queries, [1, 0, 1], &chip, scratch));
    assert!(!is_one(&of_heads(80), [1, 0, 1], &chip, scratch));
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
                Op::RopeStore { heads, .. } | Op::Attend { heads, .. } => heads.head_dim = 64,
                Op::Product { weight, .. } => weight.dtype = DType::F16,
                _ => {}
            }
        }
        let Op::Product { weight, .. } = &mut ops[6] else {
            panic!("{:?}", ops[6])
        };
        weight.cols = 128;
        ops
    };
    let lowered = |ops: &[Op], n_rows| {
        let ops = [ops, &[Op::Advance]].concat();
        let program = model.program(&ops, [n_rows, 0, n_rows]);
        let scratch = Buffer {
            id: 1000,
            generation: 0,
            len: lower::scratch_bytes(&program, &chip),
            writable: true,
        };
        lower::gpu(&program, &chip, Some(scratch))
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
    let Op::Attend { to: attended, .. } = read_later[5] else {
        panic!("{:?}", read_later[5])
    };
    let Op::Norm { x, .. } = &mut read_later[12] else {
        panic!("{:?}", read_later[12])
    };
    *x = attended;
    assert_eq!(after_attention(&read_later, 4), [halved.clone(), halved]);

    let in_columns = {
        let mut ops = two_layers.clone();
        let Op::Product { weight, .. } = &mut ops[6] else {
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

/// A norm, the two products that read it and the gate between them are one kernel for a single row on a GPU. Breaks when a bias, or
/// another order, is taken for a gate, or when several rows are.
#[test]
fn a_norm_its_products_and_their_gate_are_one_kernel() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let nvidia = nvidia(90);
    let at = model
        .ops
        .iter()
        .position(|op| matches!(op, Op::Gate { .. }));
    let at = at.expect("there is a gate");
    // The norm of attention before the feed-forward, whose products read it.
    let mut ops = vec![model.ops[1].clone()];
    ops.extend_from_slice(&model.ops[at - 2..=at + 1]);
    ops.push(model.ops[1].clone());
    let Op::Norm { to: normed, .. } = ops[0] else {
        panic!("{:?}", ops[0])
    };
    for op in &mut ops[1..3] {
        if let Op::Product { x, .. } = op {
            *x = normed;
        }
    }
    let lowered = |ops: &[Op], rows, chip: &ChipConfig| {
        lower::gpu(&model.program(ops, [rows, 0, 1]), chip, None)
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
            if let Op::Product { bias, to, .. } = &mut ops[1] {
                *bias = Some(*to);
            }
        },
        1
    ));
}

/// The last layer of a model is lowered like the others: when the outputs are gathered, nobody needs its norm any more. Breaks when
/// the gathering itself reads it.
#[test]
fn nothing_but_the_gathering_reads_what_is_left_in_rows() {
    let model = Model::new(&mut TwinDevice::new());
    let at = model
        .ops
        .iter()
        .position(|op| matches!(op, Op::Gather { .. }));
    let at = at.expect("outputs are gathered");
    // A norm and three products, then the gathering.
    let ops = [&model.ops[1..5], &model.ops[at..]].concat();
    let Op::Norm { to: normed, .. } = ops[0] else {
        panic!("{:?}", ops[0])
    };
    let first = |ops: &[Op]| {
        let program = model.program(ops, [1, 0, 1]);
        lower::gpu(&program, &ChipConfig::m1(), None)[0].key.kernel
    };
    assert_eq!(first(&ops), KernelId::NormGemv(F32));
    let mut gathered = ops.clone();
    if let Op::Gather { from, .. } = &mut gathered[4] {
        *from = normed;
    }
    assert_eq!(first(&gathered), KernelId::RmsNorm);
    assert_eq!(first(&ops[..4]), KernelId::RmsNorm, "nothing says so");
}

/// The gathering of the only row, its norm and its logits are one kernel on an NVIDIA GPU. Breaks when another chip, several rows or
/// outputs, or a program in which something else reads the norm are lowered like this.
#[test]
fn the_logits_of_a_single_row_are_one_kernel() {
    use KernelId::*;
    let model = Model::new(&mut TwinDevice::new());
    let nvidia = nvidia(75);
    let lowered =
        |ops: &[Op], room, chip: &ChipConfig| lower::gpu(&model.program(ops, room), chip, None);
    let calls = lowered(&model.ops, [1, 0, 1], &nvidia);
    let choice = [LogitSoftcap, ArgmaxPartial, Argmax, AdvanceRows];
    let end = [&[DecodeNormGemv(F32)][..], &choice].concat();
    assert!(kernels(&calls).ends_with(&end), "{:?}", kernels(&calls));
    let output = &calls[calls.len() - end.len()];
    let Some(Op::Gather { from, .. }) = model.ops.iter().find(|op| matches!(op, Op::Gather { .. }))
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
        Op::Norm {
            rows: Rows::Outputs,
            to,
            ..
        } => Some(*to),
        _ => None,
    });
    for op in &mut read_again {
        if let Op::Softcap { x, .. } = op {
            *x = normal.expect("outputs are normalised");
        }
    }
    assert!(is_apart(&read_again, [1, 0, 1], &nvidia));
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
            Op::Embed { scale, .. } => *scale = Some(8.0),
            Op::Product { bias, x, .. } => *bias = Some(*x),
            Op::Choose { how, .. } => *how = Choose::ByRule,
            _ => {}
        }
    }
    assert_eq!(plain(ops.remove(0)), [EmbeddingLookup(F32), EmbeddingScale]);
    assert_eq!(plain(ops.remove(1)), [Gemv(F32), BiasAdd]);
    let choice = ops.iter().find(|op| matches!(op, Op::Choose { .. }));
    let choice = choice.expect("there is a choice").clone();
    assert_eq!(plain(choice), [Penalties, Draw]);
}

/// Runs parts of the operations, on a device of its own, and returns what all memory holds afterwards.
fn run_parts(parts: &[Range<usize>], is_single: bool) -> Vec<Vec<u8>> {
    run_programs(is_single, |model, room| {
        let part = |part: &Range<usize>| model.program(&model.ops[part.clone()], room);
        parts.iter().map(part).collect()
    })
}

/// Runs programs, on a device of its own, and returns what all memory holds afterwards: two sequences go on, a third begins; or
/// only one goes on.
fn run_programs(
    is_single: bool,
    programs: impl FnOnce(&Model, [u32; 3]) -> Vec<Program>,
) -> Vec<Vec<u8>> {
    let mut device = TwinDevice::new();
    let model = Model::new(&mut device);
    let mut table = RowTable::new(model.step, &[model.pages]);
    for place in 0..N_SEQUENCES * TABLE_STRIDE {
        // In any order.
        let page = (5 * place + 2) % (N_SEQUENCES * TABLE_STRIDE);
        table.set_page(0, place / TABLE_STRIDE, place % TABLE_STRIDE, Some(page));
    }
    table.push_single(Row::at(1, 70), 9);
    if !is_single {
        table.push_single(Row::at(0, 3), 31);
        for position in 0..3 {
            table.push_run(Row::at(2, position), 40 + position);
        }
        table.push_output(4);
    }
    let Counts {
        singles,
        run,
        outputs,
    } = table.counts();
    for program in programs(&model, [singles, run, outputs]) {
        let plan = device.load(&program).expect("sizes are right");
        let step = table.check(1).expect("within its pages");
        device.run(plan, Some(&step)).expect("runs");
        // The device has the rows; what comes next must not have them written again.
        table.submitted(1, program.advances());
    }
    let bytes = |&buffer: &Buffer| {
        let mut bytes = vec![0; buffer.len];
        device.read(buffer, 0, &mut bytes).expect("it fits");
        bytes
    };
    let rows: &[u8] = bytemuck::cast_slice(table.rows());
    assert!(bytes(&model.step.rows).starts_with(rows));
    model.buffers.iter().map(bytes).collect()
}

/// Every operation is lowered by itself and leaves all that it gives in memory. So a program can be cut anywhere, and
/// its parts be run one after another, also by different devices: the first wrong operation of one is found so.
#[test]
fn a_program_can_be_cut_anywhere() {
    let n = Model::new(&mut TwinDevice::new()).ops.len();
    for is_single in [true, false] {
        let run = |parts: &[Range<usize>]| run_parts(parts, is_single);
        let whole = run(&[0..n, n..n]);
        for at in 0..n {
            assert!(run(&[0..at, at..n]) == whole, "cut before operation {at}");
            // Planted: an operation that is not run.
            assert!(run(&[0..at, at + 1..n]) != whole, "without operation {at}");
        }
        let each: Vec<Range<usize>> = (0..n).map(|at| at..at + 1).collect();
        assert!(run(&each) == whole, "operation by operation");
    }
}

/// What the kernels of an NVIDIA GPU compute together is what operations compute one by one: the logits, and the token that is
/// chosen. Breaks when one is given another's memory, or leaves out what somebody reads.
#[test]
fn kernels_of_several_operations_compute_the_same() {
    let chip = nvidia(90);
    let model = Model::new(&mut TwinDevice::new());
    let place = |wanted: Buffer| {
        let place = model.buffers.iter().position(|&buffer| buffer == wanted);
        place.expect("it is the model's")
    };
    let logits = model.ops.iter().find_map(|op| match op {
        Op::Choose { logits, .. } => Some(place(logits.buffer)),
        _ => None,
    });
    let (logits, history) = (
        logits.expect("a token is chosen"),
        place(model.step.history),
    );
    let plain = run_programs(true, |model, room| vec![model.program(&model.ops, room)]);
    let fused = run_programs(true, |model, room| {
        let Some((advance, ops)) = model.ops.split_last() else {
            panic!("there are operations")
        };
        let calls = lower::gpu(&model.program(ops, room), &chip, None);
        let mut ops: Vec<Op> = calls.into_iter().map(Op::Kernel).collect();
        ops.push(advance.clone());
        vec![model.program(&ops, room)]
    });
    let floats = |bytes: &[u8]| -> Vec<f32> {
        let words = bytes.as_chunks().0.iter();
        words.map(|&word| f32::from_ne_bytes(word)).collect()
    };
    let (plain_logits, fused_logits) = (floats(&plain[logits]), floats(&fused[logits]));
    let mut largest = 0.0;
    for (plain, fused) in plain_logits.iter().zip(&fused_logits).take(VOCAB as usize) {
        assert!((plain - fused).abs() < 1e-5, "{plain} and {fused}");
        largest = plain.abs().max(largest);
    }
    assert!(largest > 0.1, "there are logits");
    assert_eq!(plain[history], fused[history]);
}
