//! A model of one layer for the tests of lowering.

use akunu_kernels::case::Rng;
use akunu_kernels::{ChipConfig, KernelCall, KernelId, lower};
use akunu_program::{
    Buffer, ChoiceMemory, Choose, Counts, Device, GateFunction, Heads, LayerCache, Matrix, Op,
    PageMap, Pairing, Program, Rope, Rows, Slice, StepMemory, Storage, op,
};
use akunu_types::params::{Row, SamplingRule};
use akunu_types::{DType, KvFormat};

use crate::chips::rules;

const DIM: u32 = 64;
const WIDTH: u32 = 96;
pub const VOCAB: u32 = 50;
pub const HEADS: Heads = Heads {
    n_heads: 2,
    n_kv_heads: 1,
    head_dim: 32,
};
const KV_DIM: u32 = 32;
pub const N_SEQUENCES: u32 = 3;
const ROW_CAPACITY: u32 = 80;
const MAX_STEPS: u32 = 4;
/// Two pages of 64 slots for each sequence.
const PAGE_SHIFT: u32 = 6;
pub const TABLE_STRIDE: u32 = 2;
pub const F32: DType = DType::F32;

/// A model of one layer, its memory, and the operations of a step.
pub struct Model {
    pub ops: Vec<Op>,
    pub step: StepMemory,
    pub pages: PageMap,
    /// What an activation gives. A kernel may keep it to itself.
    pub activated: Buffer,
    /// All other memory.
    pub buffers: Vec<Buffer>,
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
            storage: Storage::Rows,
        }
    }

    fn product(&mut self, rows: Rows, [from, to]: [Slice; 2], [n, k]: [u32; 2], add: bool) -> Op {
        Op::Product(op::Product {
            rows,
            weight: self.matrix(n, k),
            x: from,
            to,
            add,
            bias: None,
            label: "product",
        })
    }

    fn norm(&mut self, rows: Rows, x: Slice, to: Slice) -> Op {
        Op::Norm(op::Norm {
            rows,
            x,
            weight: self.floats(DIM).into(),
            to,
            dim: DIM,
            eps: 1e-5,
        })
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
    pub fn new(device: &mut dyn Device) -> Model {
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
            Op::Embed(op::Embed {
                table: m.matrix(VOCAB, DIM),
                scale: None,
                to: h,
            }),
            m.norm(all, h, x),
            m.product(all, [x, q], [DIM, DIM], false),
            m.product(all, [x, k], [KV_DIM, DIM], false),
            m.product(all, [x, v], [KV_DIM, DIM], false),
            Op::RopeStore(op::RopeStore {
                q,
                k,
                v,
                heads: HEADS,
                rope: Rope {
                    pairing: Pairing::Halves,
                    theta: 1e4,
                    freq_scale: 1.0,
                    turned_dim: HEADS.head_dim,
                    divisors,
                },
                centre: None,
                norms: None,
                cache,
            }),
            Op::Attend(op::Attend {
                q,
                to: attended,
                heads: HEADS,
                cache,
                scale: 0.2,
                softcap: None,
                sinks: None,
            }),
            m.product(all, [attended, x], [DIM, DIM], false),
            Op::AddNorm(op::AddNorm {
                x,
                weight: m.floats(DIM).into(),
                to: h,
                dim: DIM,
                eps: 1e-5,
            }),
            m.product(all, [h, gate], [WIDTH, DIM], false),
            m.product(all, [h, up], [WIDTH, DIM], false),
            Op::Gate(op::Gate {
                activation: GateFunction::Silu,
                gate,
                up,
                to: activated,
                width: WIDTH,
            }),
            m.product(all, [activated, h], [DIM, WIDTH], true),
            Op::Gather(op::Gather {
                from: h,
                to: out,
                dim: DIM,
            }),
            m.norm(outputs, out, normal),
            m.product(outputs, [normal, logits], [VOCAB, DIM], false),
            Op::Softcap(op::Softcap {
                x: logits,
                width: VOCAB,
                cap: 3.0,
            }),
            Op::Choose(op::Choose {
                how: Choose::Best,
                logits,
                vocab_size: VOCAB,
                memory,
            }),
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

    pub fn program(&self, ops: &[Op], [singles, run, outputs]: [u32; 3]) -> Program {
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
    pub fn plain(&self, room: [u32; 3]) -> Vec<KernelCall> {
        lower::plain(&self.program(&self.ops, room))
    }

    pub fn gpu(&self, room: [u32; 3]) -> Vec<KernelCall> {
        lower::by_rules(
            &self.program(&self.ops, room),
            &*rules(&ChipConfig::m1()),
            None,
        )
    }
}

pub fn kernels(calls: &[KernelCall]) -> Vec<KernelId> {
    calls.iter().map(|call| call.key.kernel).collect()
}

/// The kernels of a step: `product` for the products of all rows and `logits` for that of the outputs, `attention`, and
/// `gated` for an activation and what follows.
pub fn step_of(
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
