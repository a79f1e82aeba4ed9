//! The decode step of a model of Llama's kind, from its sizes alone.

use akunu_program::{
    Buffer, ChoiceMemory, Choose, Counts, GateFunction, Heads, LayerCache, Matrix, Op, PageMap,
    Pairing, Program, Rope, Rows, Slice, StepMemory, Storage, op,
};
use akunu_types::{DType, KvFormat};

/// The sizes of a model.
#[derive(Debug)]
pub struct Decoder {
    /// The name that people use.
    pub name: &'static str,
    dim: u32,
    layers: u32,
    heads: Heads,
    width: u32,
    vocab: u32,
    has_bias: bool,
    weights: DType,
    output: DType,
}

/// The models that are asked about.
pub const MODELS: &[Decoder] = &[
    Decoder {
        name: "SmolLM2 135M",
        dim: 576,
        layers: 30,
        heads: heads(9, 3, 64),
        width: 1536,
        vocab: 49_152,
        has_bias: false,
        weights: DType::Q8_0,
        output: DType::Q8_0,
    },
    Decoder {
        name: "Qwen2.5-Coder 1.5B",
        dim: 1536,
        layers: 28,
        heads: heads(12, 2, 128),
        width: 8960,
        vocab: 151_936,
        has_bias: true,
        weights: DType::Q4_K,
        output: DType::Q6_K,
    },
    Decoder {
        name: "8B (Llama 3)",
        dim: 4096,
        layers: 32,
        heads: heads(32, 8, 128),
        width: 14_336,
        vocab: 128_256,
        has_bias: false,
        weights: DType::Q4_K,
        output: DType::Q6_K,
    },
];

/// A model of no real size, whose launches the twins and the simulator can do.
pub const SMALL: Decoder = Decoder {
    name: "small",
    dim: 256,
    layers: 2,
    heads: heads(4, 2, 64),
    width: 512,
    vocab: 512,
    has_bias: false,
    weights: DType::Q4_K,
    output: DType::Q6_K,
};

const fn heads(n_heads: u32, n_kv_heads: u32, head_dim: u32) -> Heads {
    Heads {
        n_heads,
        n_kv_heads,
        head_dim,
    }
}

/// Slots of a page: 64.
const PAGE_SHIFT: u32 = 6;
const EPS: f32 = 1e-5;

/// Numbers buffers. Nobody reads what they hold.
struct Memory(u32);

impl Memory {
    fn buffer(&mut self) -> Buffer {
        self.0 += 1;
        Buffer {
            id: self.0,
            generation: 0,
            len: 1 << 40,
            writable: true,
        }
    }

    fn place(&mut self) -> Slice {
        self.buffer().into()
    }

    fn matrix(&mut self, dtype: DType, rows: u32, cols: u32) -> Matrix {
        Matrix {
            place: self.place(),
            dtype,
            rows,
            cols,
            storage: Storage::Rows,
        }
    }
}

/// The vectors that operations hand each other.
struct Vectors {
    h: Slice,
    x: Slice,
    qkv: [Slice; 3],
    attended: Slice,
    gate: Slice,
    up: Slice,
    activated: Slice,
}

impl Decoder {
    /// The program of one token after `context` others.
    pub fn program(&self, context: u32) -> Program {
        let mut memory = Memory(0);
        let m = &mut memory;
        let step = step(m);
        let table_stride = context.div_ceil(1 << PAGE_SHIFT);
        let pages = PageMap {
            table: m.buffer(),
            table_stride,
            page_shift: PAGE_SHIFT,
            n_pages: table_stride,
            n_sequences: 1,
            window: None,
        };
        let v = Vectors {
            h: m.place(),
            x: m.place(),
            qkv: [(); 3].map(|()| m.place()),
            attended: m.place(),
            gate: m.place(),
            up: m.place(),
            activated: m.place(),
        };
        let mut ops = vec![Op::Embed(op::Embed {
            table: m.matrix(self.output, self.vocab, self.dim),
            scale: None,
            to: v.h,
        })];
        for _ in 0..self.layers {
            self.attention(&mut ops, m, &v, pages);
            self.feed_forward(&mut ops, m, &v);
        }
        self.choice(&mut ops, m, v.h);
        Program {
            ops,
            step: Some(step),
            room: Counts {
                singles: 1,
                run: 0,
                outputs: 1,
            },
        }
    }

    fn attention(&self, ops: &mut Vec<Op>, m: &mut Memory, v: &Vectors, pages: PageMap) {
        let Heads {
            n_heads,
            n_kv_heads,
            head_dim,
        } = self.heads;
        ops.push(self.norm(m, Rows::All, [v.h, v.x]));
        for (to, n_heads) in v.qkv.into_iter().zip([n_heads, n_kv_heads, n_kv_heads]) {
            let bias = self.has_bias.then(|| m.place());
            let weight = m.matrix(self.weights, n_heads * head_dim, self.dim);
            ops.push(product(weight, [v.x, to], false, bias));
        }
        let cache = LayerCache {
            format: KvFormat::F16,
            k: m.buffer(),
            v: m.buffer(),
            pages,
        };
        let [q, key, value] = v.qkv;
        ops.push(Op::RopeStore(op::RopeStore {
            q,
            k: key,
            v: value,
            heads: self.heads,
            rope: Rope {
                pairing: Pairing::Halves,
                theta: 1e4,
                freq_scale: 1.0,
                turned_dim: self.heads.head_dim,
                divisors: m.place(),
            },
            centre: None,
            norms: None,
            cache,
        }));
        ops.push(Op::Attend(op::Attend {
            q,
            to: v.attended,
            heads: self.heads,
            cache,
            scale: 1.0,
            softcap: None,
            sinks: None,
        }));
        let weight = m.matrix(self.weights, self.dim, n_heads * head_dim);
        ops.push(product(weight, [v.attended, v.h], true, None));
    }

    fn feed_forward(&self, ops: &mut Vec<Op>, m: &mut Memory, v: &Vectors) {
        ops.push(self.norm(m, Rows::All, [v.h, v.x]));
        for to in [v.gate, v.up] {
            let weight = m.matrix(self.weights, self.width, self.dim);
            ops.push(product(weight, [v.x, to], false, None));
        }
        ops.push(Op::Gate(op::Gate {
            activation: GateFunction::Silu,
            gate: v.gate,
            up: v.up,
            to: v.activated,
            width: self.width,
        }));
        let weight = m.matrix(self.weights, self.dim, self.width);
        ops.push(product(weight, [v.activated, v.h], true, None));
    }

    fn choice(&self, ops: &mut Vec<Op>, m: &mut Memory, h: Slice) {
        let (out, normal, logits) = (m.place(), m.place(), m.place());
        ops.push(Op::Gather(op::Gather {
            from: h,
            to: out,
            dim: self.dim,
        }));
        ops.push(self.norm(m, Rows::Outputs, [out, normal]));
        ops.push(Op::Product(op::Product {
            rows: Rows::Outputs,
            weight: m.matrix(self.output, self.vocab, self.dim),
            x: normal,
            to: logits,
            add: false,
            bias: None,
            label: "logits",
        }));
        ops.push(Op::Choose(op::Choose {
            how: Choose::Best,
            logits,
            vocab_size: self.vocab,
            memory: ChoiceMemory {
                values: m.buffer(),
                ids: m.buffer(),
                bias_tokens: m.buffer(),
                bias_values: m.buffer(),
                bias_stride: 1,
                breakers: m.buffer(),
                mu: m.buffer(),
            },
        }));
        ops.push(Op::Advance);
    }

    fn norm(&self, m: &mut Memory, rows: Rows, [x, to]: [Slice; 2]) -> Op {
        Op::Norm(op::Norm {
            rows,
            x,
            weight: m.place(),
            to,
            dim: self.dim,
            eps: EPS,
        })
    }
}

fn product(weight: Matrix, [x, to]: [Slice; 2], add: bool, bias: Option<Slice>) -> Op {
    Op::Product(op::Product {
        rows: Rows::All,
        weight,
        x,
        to,
        add,
        bias,
        label: "product",
    })
}

fn step(m: &mut Memory) -> StepMemory {
    StepMemory {
        rows: m.buffer(),
        tokens: m.buffer(),
        outputs: m.buffer(),
        rules: m.buffer(),
        history: m.buffer(),
        chosen: m.buffer(),
        row_capacity: 1,
        n_sequences: 1,
        history_stride: 1,
        max_steps: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_kernels::ChipConfig;
    use akunu_kernels::Plan;
    use akunu_kernels::lower::{self, GpuRules};
    use akunu_kernels::pipeline::HostPipelines;

    /// The bytes of the weights are what the files of these models have: 0.14, 0.9 to 1.0 and 4.5 to 5.0 GB. Breaks when a size is
    /// mistyped, or a weight is left out.
    #[test]
    fn the_models_are_as_large_as_their_files() {
        let sizes = MODELS.iter().map(|model| {
            let program = model.program(64);
            let weights = program.ops.iter().filter_map(|op| match op {
                Op::Product(op::Product { weight, .. }) => weight
                    .dtype
                    .bytes_of(weight.rows as usize * weight.cols as usize),
                _ => None,
            });
            weights.sum::<usize>() as f64 / 1e9
        });
        let bounds = [(0.13, 0.15), (0.85, 1.05), (4.2, 5.0)];
        for (size, (least, most)) in sizes.zip(bounds) {
            assert!((least..most).contains(&size), "{size} GB");
        }
    }

    /// Breaks when a launch of a layer begins to wait for another that it waited for together with a third before. With a bias of
    /// queries, keys and values there is one more.
    #[test]
    fn a_layer_waits_at_most_7_times() {
        let rules = GpuRules::new(&ChipConfig::m1());
        for (model, most) in MODELS.iter().zip([7, 8, 7]) {
            let [one, two] = [1, 2].map(|layers| {
                let model = Decoder { layers, ..*model };
                let program = model.program(1024);
                let scratch = Some(Memory(u32::MAX - 1).buffer());
                let calls = lower::by_rules(&program, &rules, scratch);
                let mut pipelines = HostPipelines::default();
                let plan = Plan::make(calls, program.plan_room(), &mut pipelines).unwrap();
                let all = 0..plan.dispatches().len();
                all.filter(|&at| plan.barrier_before(at)).count()
            });
            assert!(two - one <= most, "{}: {}", model.name, two - one);
        }
    }

    /// A layer is at most 8 launches on a Mac.
    #[test]
    fn a_layer_is_at_most_8_launches() {
        for model in MODELS.iter().filter(|model| !model.has_bias) {
            let calls = lower::by_rules(
                &model.program(1024),
                &GpuRules::new(&ChipConfig::m1()),
                Some(Memory(0).buffer()),
            );
            assert!(
                calls.len() <= 8 * model.layers as usize + 8,
                "{}",
                calls.len()
            );
        }
    }
}
