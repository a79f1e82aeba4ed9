//! The buffers of an encoder: for the rows of a step, and for its texts.

use akunu_arch::ModelConfig;
use akunu_kernels::{Buffer, Device, StepMemory};
use akunu_types::params::{Row, SamplingRule};

use crate::error::EngineError;

/// Everything that the programs of an encoder read and write, besides the weights.
pub(super) struct Memory {
    pub step: StepMemory,
    /// What a feed-forward block reads, (rows, dim).
    pub h: Buffer,
    /// What an attention block adds to, (rows, dim).
    pub x: Buffer,
    /// Queries, (rows, q_dim), keys and values, (rows, kv_dim).
    pub q: Buffer,
    pub k: Buffer,
    pub v: Buffer,
    /// What attention gives, (rows, q_dim).
    pub attention: Buffer,
    /// The feed-forward block, (rows, ffn_dim); the first and the last only where there is a gate.
    pub gate: Buffer,
    pub up: Buffer,
    pub activated: Buffer,
    /// One vector for each text, (texts, dim), and what the classifier makes of it.
    pub pooled: Buffer,
    pub hidden: Buffer,
    /// (texts, labels).
    pub scores: Buffer,
    /// RoPE divisors of each layer, (layers, [`divisor_stride`]).
    pub divisors: Buffer,
    /// The bias of norms that have none, (dim).
    pub zeros: Buffer,
}

/// Numbers from the divisors of a layer to those of the next, which begin at a multiple of 256 bytes.
pub(super) fn divisor_stride(config: &ModelConfig) -> u32 {
    (config.head_dim / 2).next_multiple_of(64)
}

/// Rows and texts that there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub rows: u32,
    pub texts: u32,
}

impl Memory {
    pub fn allocate(
        config: &ModelConfig,
        room: Room,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let mut make = Make {
            device,
            made: Vec::new(),
        };
        let memory = make.memory(config, room);
        if memory.is_err() {
            let made = std::mem::take(&mut make.made);
            made.into_iter()
                .for_each(|buffer| make.device.release(buffer));
        }
        memory
    }

    /// Gives all of it back.
    pub fn release(self, device: &mut dyn Device) {
        let step = self.step;
        let of_step = [
            step.rows,
            step.tokens,
            step.outputs,
            step.rules,
            step.history,
            step.chosen,
        ];
        let of_rows = [
            self.h,
            self.x,
            self.q,
            self.k,
            self.v,
            self.attention,
            self.gate,
            self.up,
            self.activated,
        ];
        let of_texts = [
            self.pooled,
            self.hidden,
            self.scores,
            self.divisors,
            self.zeros,
        ];
        for buffer in of_step.into_iter().chain(of_rows).chain(of_texts) {
            device.release(buffer);
        }
    }
}

/// Makes buffers, and remembers them.
struct Make<'a> {
    device: &'a mut dyn Device,
    made: Vec<Buffer>,
}

impl Make<'_> {
    /// A buffer of (rows, width) elements of 4 bytes, at least one.
    fn words(&mut self, rows: u32, width: u32, label: &str) -> Result<Buffer, EngineError> {
        let bytes = 4 * (rows as usize * width as usize).max(1);
        let buffer = self.device.allocate(bytes, label)?;
        self.made.push(buffer);
        Ok(buffer)
    }

    fn step(&mut self, room: Room) -> Result<StepMemory, EngineError> {
        let words = |bytes: usize| (bytes / 4) as u32;
        Ok(StepMemory {
            rows: self.words(room.rows, words(size_of::<Row>()), "rows")?,
            tokens: self.words(room.rows, 1, "tokens")?,
            outputs: self.words(room.rows, 1, "outputs")?,
            rules: self.words(room.texts, words(size_of::<SamplingRule>()), "rules")?,
            history: self.words(room.texts, 1, "history")?,
            chosen: self.words(1, room.rows, "chosen")?,
            row_capacity: room.rows,
            n_sequences: room.texts,
            history_stride: 1,
            max_steps: 1,
        })
    }

    fn memory(&mut self, config: &ModelConfig, room: Room) -> Result<Memory, EngineError> {
        let Room { rows, texts } = room;
        let (dim, ffn_dim) = (config.dim, config.ffn_dim);
        let n_layers = config.layers.len() as u32;
        let gate_dim = if config.arch.activation.is_gated() {
            ffn_dim
        } else {
            0
        };
        let memory = Memory {
            step: self.step(room)?,
            h: self.words(rows, dim, "h")?,
            x: self.words(rows, dim, "x")?,
            q: self.words(rows, config.q_dim(), "q")?,
            k: self.words(rows, config.kv_dim(), "k")?,
            v: self.words(rows, config.kv_dim(), "v")?,
            attention: self.words(rows, config.q_dim(), "attention")?,
            gate: self.words(rows, gate_dim, "gate")?,
            up: self.words(rows, ffn_dim, "up")?,
            activated: self.words(rows, gate_dim, "activated")?,
            pooled: self.words(texts, dim, "pooled")?,
            hidden: self.words(texts, dim, "pooled and projected")?,
            scores: self.words(texts, config.n_labels, "scores")?,
            divisors: self.words(n_layers, divisor_stride(config), "RoPE divisors")?,
            zeros: self.words(1, dim, "zeros")?,
        };
        for (layer, at) in config.layers.iter().zip(0..) {
            let divisors = layer.rope.divisors(config.head_dim, &[]);
            let offset = 4 * at * divisor_stride(config) as usize;
            self.device
                .write(memory.divisors, offset, bytemuck::cast_slice(&divisors))?;
        }
        let zeros = vec![0f32; dim as usize];
        self.device
            .write(memory.zeros, 0, bytemuck::cast_slice(&zeros))?;
        Ok(memory)
    }
}
