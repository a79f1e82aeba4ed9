//! The buffers of a session, allocated once: scratch for the activations, and the KV cache.

use akunu_arch::{ModelConfig, RopeConfig};
use akunu_kernels::plan::Slice;
use akunu_kernels::{Buffer, Device};

use crate::error::{Bytes, EngineError};
use crate::sampling;

/// The keys and values of one layer, head-major (n_kv_heads, slots, head_dim) in f16.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerCache {
    pub k: Buffer,
    pub v: Buffer,
    /// Positions that it holds: position p lies in slot `p % slots`.
    pub slots: u32,
}

/// Everything that a session's plans read and write, besides the weights.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The residual stream, (rows, dim).
    pub h: Buffer,
    /// What a block reads: the normalised residual stream, (rows, dim).
    pub x: Buffer,
    /// Queries, keys and values: (rows, q_dim), then (rows, kv_dim) twice.
    pub qkv: Buffer,
    /// What attention gives, (rows, q_dim).
    pub attention: Buffer,
    /// What a block gives before its norm, (rows, dim).
    pub y: Buffer,
    /// The gate, (rows, ffn_dim).
    pub gate: Buffer,
    /// The other half of the feed-forward block, (rows, ffn_dim).
    pub up: Buffer,
    /// The activated gate times the other half, (rows, ffn_dim).
    pub activated: Buffer,
    /// The logits of one row, (vocab).
    pub logits: Buffer,
    /// The tokens to be prefilled, (rows).
    pub prompt: Buffer,
    /// The token that the next decode step reads, (1).
    pub token: Buffer,
    /// Every token by position, (context + 1).
    pub history: Buffer,
    /// Values of the sampler's candidates, two sets that stages alternate between.
    pub top_values: [Buffer; 2],
    /// Tokens of the sampler's candidates.
    pub top_ids: [Buffer; 2],
    /// Cache of each layer.
    pub layers: Vec<LayerCache>,
    /// RoPE divisors of each layer, (head_dim / 2); layers of one kind share them.
    pub divisors: Vec<Slice>,
    /// All of these buffers, for giving them back.
    pub all: Vec<Buffer>,
}

/// How large the buffers are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Positions.
    pub context: u32,
    /// Rows of the largest prefill chunk.
    pub chunk: u32,
}

impl Memory {
    /// Allocates everything; nothing when it is more than the device has.
    pub fn allocate(
        config: &ModelConfig,
        rope_freqs: &[f32],
        sizes: Sizes,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let scratch = scratch(config, sizes);
        check_limit(config, sizes, &scratch, device)?;
        let mut allocator = Allocator {
            device,
            made: Vec::new(),
        };
        let memory = allocator.memory(config, rope_freqs, sizes, scratch);
        if memory.is_err() {
            allocator.release();
        }
        memory
    }
}

/// Makes buffers, and remembers them.
struct Allocator<'a> {
    device: &'a mut dyn Device,
    made: Vec<Buffer>,
}

impl Allocator<'_> {
    fn memory(
        &mut self,
        config: &ModelConfig,
        rope_freqs: &[f32],
        sizes: Sizes,
        scratch: Scratch,
    ) -> Result<Memory, EngineError> {
        let layers = config.layers.iter().map(|layer| {
            let slots = layer.cache_slots(sizes.context, sizes.chunk);
            let bytes = 2 * u64::from(slots) * u64::from(config.kv_dim());
            Ok(LayerCache {
                k: self.buffer(bytes, "k cache")?,
                v: self.buffer(bytes, "v cache")?,
                slots,
            })
        });
        let layers = layers.collect::<Result<_, EngineError>>()?;
        let divisors = self.divisors(config, rope_freqs)?;
        let mut buffers = Vec::with_capacity(scratch.len());
        for (elements, label) in scratch {
            buffers.push(self.buffer(4 * elements, label)?);
        }
        let Ok(buffers) = <[Buffer; 16]>::try_from(buffers) else {
            unreachable!("a buffer was made for each size");
        };
        #[rustfmt::skip]
        let [
            h, x, qkv, attention, y, gate, up, activated, logits, prompt, token, history,
            values_a, values_b, ids_a, ids_b,
        ] = buffers;
        Ok(Memory {
            h,
            x,
            qkv,
            attention,
            y,
            gate,
            up,
            activated,
            logits,
            prompt,
            token,
            history,
            top_values: [values_a, values_b],
            top_ids: [ids_a, ids_b],
            layers,
            divisors,
            all: self.made.clone(),
        })
    }

    /// One table for each kind of layer.
    fn divisors(
        &mut self,
        config: &ModelConfig,
        rope_freqs: &[f32],
    ) -> Result<Vec<Slice>, EngineError> {
        let mut made: Vec<(RopeConfig, Slice)> = Vec::new();
        let mut of_layers = Vec::with_capacity(config.layers.len());
        for layer in &config.layers {
            let known = made.iter().find(|(rope, _)| *rope == layer.rope);
            let place = match known {
                Some((_, place)) => *place,
                None => {
                    let values = layer.rope.divisors(config.head_dim, rope_freqs);
                    let buffer = self.buffer(4 * values.len() as u64, "RoPE divisors")?;
                    self.device
                        .write(buffer, 0, bytemuck::cast_slice(&values))?;
                    made.push((layer.rope, buffer.into()));
                    buffer.into()
                }
            };
            of_layers.push(place);
        }
        Ok(of_layers)
    }

    fn buffer(&mut self, bytes: u64, label: &str) -> Result<Buffer, EngineError> {
        let buffer = self.device.allocate(bytes as usize, label)?;
        self.made.push(buffer);
        Ok(buffer)
    }

    fn release(self) {
        for buffer in self.made {
            self.device.release(buffer);
        }
    }
}

/// The scratch buffers, in the order in which [`Memory`] has them: 4-byte elements, and what for.
type Scratch = [(u64, &'static str); 16];

fn scratch(config: &ModelConfig, sizes: Sizes) -> Scratch {
    let rows = |width: u32| u64::from(sizes.chunk) * u64::from(width);
    let candidates = sampling::candidates(config.vocab_size) as u64;
    [
        (rows(config.dim), "residual stream"),
        (rows(config.dim), "normalised"),
        (rows(config.q_dim() + 2 * config.kv_dim()), "q, k, v"),
        (rows(config.q_dim()), "attention"),
        (rows(config.dim), "block output"),
        (rows(config.ffn_dim), "gate"),
        (rows(config.ffn_dim), "up"),
        (rows(config.ffn_dim), "activated"),
        (config.vocab_size.into(), "logits"),
        (rows(1), "prompt"),
        (1, "token"),
        (u64::from(sizes.context) + 1, "history"),
        (candidates, "candidates"),
        (candidates, "candidates"),
        (candidates, "candidate tokens"),
        (candidates, "candidate tokens"),
    ]
}

fn check_limit(
    config: &ModelConfig,
    sizes: Sizes,
    scratch: &Scratch,
    device: &dyn Device,
) -> Result<(), EngineError> {
    let cache = config.kv_bytes(sizes.context, sizes.chunk);
    let scratch = scratch.iter().map(|(elements, _)| 4 * elements).sum();
    let Some(available) = device.memory_limit() else {
        return Ok(());
    };
    if cache + scratch <= available {
        return Ok(());
    }
    Err(EngineError::ContextMemory {
        context: sizes.context,
        chunk: sizes.chunk,
        cache: Bytes(cache),
        scratch: Bytes(scratch),
        available: Bytes(available),
    })
}
