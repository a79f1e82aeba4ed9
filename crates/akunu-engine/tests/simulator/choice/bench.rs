//! Draws from fixed logits through the program that chooses, on any device.

use std::path::Path;

use akunu_kernels::ChipConfig;
use akunu_program::{
    Buffer, ChoiceMemory, Choose, Counts, Device, Op, PlanId, Program, RowTable, StepMemory, op,
};
use akunu_sim::{Schedule, SimBackend, SimDevice, Simulator};
use akunu_types::params::{Row, SamplingRule};

/// Tokens of the history, at most.
const HISTORY: u32 = 256;
const N_BIASES: u32 = 8;

/// How tokens are chosen, with the lists that a rule refers to.
pub struct Wanted {
    pub rule: SamplingRule,
    pub history: Vec<u32>,
    pub biases: Vec<(u32, f32)>,
}

impl Wanted {
    /// A rule without lists.
    pub fn of(rule: SamplingRule) -> Wanted {
        Wanted {
            rule,
            history: vec![0],
            biases: Vec::new(),
        }
    }
}

/// A device with a program that chooses for some rows at once.
pub struct Bench {
    device: Box<dyn Device>,
    table: RowTable,
    plan: PlanId,
    memory: ChoiceMemory,
    logits: Buffer,
    n_rows: u32,
}

/// The simulated Metal kernels.
pub fn simulator() -> Box<dyn Device> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"));
    let simulator = simulator.expect("clang is there: `apt-get install clang-19`");
    Box::new(SimDevice::over(
        SimBackend::new(simulator, Schedule::Ascending),
        ChipConfig::m1(),
    ))
}

impl Bench {
    pub fn new(mut device: Box<dyn Device>, vocab_size: u32, n_rows: u32) -> Bench {
        let mut words = |n: u32| device.allocate(4 * n as usize, "bench").expect("memory");
        let step = StepMemory {
            rows: words(n_rows * (size_of::<Row>() / 4) as u32),
            tokens: words(n_rows),
            outputs: words(n_rows),
            rules: words(n_rows * (size_of::<SamplingRule>() / 4) as u32),
            history: words(n_rows * HISTORY),
            chosen: words(n_rows),
            row_capacity: n_rows,
            n_sequences: n_rows,
            history_stride: HISTORY,
            max_steps: 1,
        };
        let memory = ChoiceMemory {
            values: words(n_rows * Op::candidates(vocab_size)),
            ids: words(n_rows * Op::candidates(vocab_size)),
            bias_tokens: words(n_rows * N_BIASES),
            bias_values: words(n_rows * N_BIASES),
            bias_stride: N_BIASES,
            breakers: words(n_rows * vocab_size.div_ceil(32)),
            mu: words(n_rows),
        };
        let logits = words(n_rows * vocab_size);
        let program = Program {
            ops: vec![Op::Choose(op::Choose {
                how: Choose::ByRule,
                logits: logits.into(),
                vocab_size,
                memory,
            })],
            step: Some(step),
            room: Counts {
                singles: n_rows,
                run: 0,
                outputs: n_rows,
            },
        };
        let plan = device.load(&program).expect("sizes are right");
        let table = RowTable::new(step, &[]);
        Bench {
            device,
            table,
            plan,
            memory,
            logits,
            n_rows,
        }
    }

    fn write<T: bytemuck::NoUninit>(&mut self, to: Buffer, values: &[T]) {
        let bytes = bytemuck::cast_slice(values);
        self.device.write(to, 0, bytes).expect("it fits");
    }

    /// The same for every row.
    fn write_each<T: bytemuck::NoUninit>(&mut self, to: Buffer, values: &[T]) {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let stride = to.len / self.n_rows as usize;
        for row in 0..self.n_rows as usize {
            self.device.write(to, row * stride, bytes).expect("it fits");
        }
    }

    /// Tokens that are drawn at as many positions.
    pub fn draws(&mut self, logits: &[f32], wanted: &Wanted, n: usize) -> Vec<u32> {
        let step = *self.table.memory();
        let rule = SamplingRule {
            n_biases: wanted.biases.len() as u32,
            ..wanted.rule
        };
        self.write(step.rules, &vec![rule; self.n_rows as usize]);
        self.write_each(step.history, &wanted.history);
        let (ids, values): (Vec<u32>, Vec<f32>) = wanted.biases.iter().copied().unzip();
        self.write_each(self.memory.bias_tokens, &ids);
        self.write_each(self.memory.bias_values, &values);
        self.write_each(self.logits, logits);
        let penalises = wanted.history.len() > 1 || !wanted.biases.is_empty();
        let mut drawn = Vec::with_capacity(n);
        while drawn.len() < n {
            self.write(
                self.memory.mu,
                &vec![2.0 * rule.mirostat_tau; self.n_rows as usize],
            );
            if penalises && !drawn.is_empty() {
                self.write_each(self.logits, logits);
            }
            self.table.clear_rows();
            for row in 0..self.n_rows {
                let position = drawn.len() as u32 + row;
                let length = wanted.history.len() as u32;
                self.table.push_single(
                    Row {
                        length,
                        ..Row::at(row, position)
                    },
                    0,
                );
            }
            let checked = self.table.check_outputs().expect("rows are fine");
            self.device.run(self.plan, Some(&checked)).expect("runs");
            self.table.submitted(1, false);
            let mut tokens = vec![0u32; self.n_rows as usize];
            let bytes = bytemuck::cast_slice_mut(&mut tokens);
            self.device.read(step.tokens, 0, bytes).expect("it fits");
            drawn.extend(tokens);
        }
        drawn.truncate(n);
        drawn
    }
}

/// The probabilities of all tokens at a temperature.
pub fn softmax(logits: &[f32], temperature: f64) -> Vec<f64> {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |&logit: &f32| (f64::from(logit - best) / temperature).exp();
    let total: f64 = logits.iter().map(weight).sum();
    logits.iter().map(|logit| weight(logit) / total).collect()
}

/// Chi-squared of what was drawn against probabilities, and what it stays below but once in a million times. Tokens that
/// are expected less than 10 times are counted together.
pub fn chi_squared(drawn: &[u32], wanted: &[f64]) -> (f64, f64) {
    let mut counts = vec![0u32; wanted.len()];
    for &token in drawn {
        counts[token as usize] += 1;
    }
    let n = drawn.len() as f64;
    let (mut sum, mut cells) = (0.0, 0u32);
    let mut cell = |count: f64, expected: f64| {
        sum += (count - expected) * (count - expected) / expected;
        cells += 1;
    };
    let (mut rare, mut expected_rare) = (0.0, 0.0);
    for (&count, &p) in counts.iter().zip(wanted) {
        if p * n >= 10.0 {
            cell(count.into(), p * n);
        } else {
            rare += f64::from(count);
            expected_rare += p * n;
        }
    }
    if expected_rare >= 10.0 {
        cell(rare, expected_rare);
    }
    let degrees = f64::from(cells.max(2) - 1);
    // Wilson and Hilferty: the cube root of chi-squared over its degrees is nearly normal; 4.9 is one in a million.
    let part = 2.0 / (9.0 * degrees);
    (sum, degrees * (1.0 - part + 4.9 * part.sqrt()).powi(3))
}
