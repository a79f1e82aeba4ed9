//! The buffers of an encoder: for the rows of a step, and for its texts.

use akunu_arch::ModelConfig;
use akunu_program::{Buffer, Device, StepMemory};

use crate::buffers::{Buffers, Made};
use crate::error::EngineError;

/// Everything that the programs of an encoder read and write, besides the weights.
pub(super) struct Memory {
    /// All buffers, to be given back.
    made: Made,
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
        let (mut memory, made) =
            Buffers::make(device, |buffers| Memory::of(config, room, buffers))?;
        memory.made = made;
        Ok(memory)
    }

    /// Gives all of it back.
    pub fn release(self, device: &mut dyn Device) {
        self.made.release(device);
    }

    /// The memory, of these buffers.
    fn of(config: &ModelConfig, room: Room, buffers: &mut Buffers) -> Result<Memory, EngineError> {
        let Room { rows, texts } = room;
        let (dim, ffn_dim) = (config.dim, config.ffn_dim);
        let n_layers = config.layers.len() as u32;
        let gate_dim = if config.arch.activation.is_gated() {
            ffn_dim
        } else {
            0
        };
        let memory = Memory {
            made: Made::default(),
            step: buffers.step(rows, texts)?,
            h: buffers.words(rows, dim, "h")?,
            x: buffers.words(rows, dim, "x")?,
            q: buffers.words(rows, config.q_dim(), "q")?,
            k: buffers.words(rows, config.kv_dim(), "k")?,
            v: buffers.words(rows, config.kv_dim(), "v")?,
            attention: buffers.words(rows, config.q_dim(), "attention")?,
            gate: buffers.words(rows, gate_dim, "gate")?,
            up: buffers.words(rows, ffn_dim, "up")?,
            activated: buffers.words(rows, gate_dim, "activated")?,
            pooled: buffers.words(texts, dim, "pooled")?,
            hidden: buffers.words(texts, dim, "pooled and projected")?,
            scores: buffers.words(texts, config.n_labels, "scores")?,
            divisors: buffers.words(n_layers, divisor_stride(config), "RoPE divisors")?,
            zeros: buffers.words(1, dim, "zeros")?,
        };
        for (layer, at) in config.layers.iter().zip(0..) {
            let divisors = layer.rope.divisors(config.head_dim, &[]);
            let offset = 4 * at * divisor_stride(config) as usize;
            buffers
                .device
                .write(memory.divisors, offset, bytemuck::cast_slice(&divisors))?;
        }
        let zeros = vec![0f32; dim as usize];
        buffers
            .device
            .write(memory.zeros, 0, bytemuck::cast_slice(&zeros))?;
        Ok(memory)
    }
}
