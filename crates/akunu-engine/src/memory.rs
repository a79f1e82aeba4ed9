//! The buffers of a session, allocated once: scratch for the activations, and the KV cache.

use akunu_arch::{ModelConfig, RopeConfig};
use akunu_kernels::plan::Slice;
use akunu_kernels::{Buffer, Device};

use crate::error::EngineError;
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
    pub fn allocate(
        config: &ModelConfig,
        rope_freqs: &[f32],
        sizes: Sizes,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let rows = sizes.chunk as usize;
        let floats = |device: &mut dyn Device, n: usize, label: &str| device.allocate(4 * n, label);
        let wide = |n: u32| rows * n as usize;
        let kv = 2 * config.kv_dim();
        let candidates = sampling::candidates(config.vocab_size);
        let mut layers = Vec::with_capacity(config.layers.len());
        for layer in &config.layers {
            let slots = layer.cache_slots(sizes.context, sizes.chunk);
            let bytes = 2 * slots as usize * config.kv_dim() as usize;
            let (k, v) = (
                device.allocate(bytes, "k cache")?,
                device.allocate(bytes, "v cache")?,
            );
            layers.push(LayerCache { k, v, slots });
        }
        Ok(Memory {
            h: floats(device, wide(config.dim), "residual stream")?,
            x: floats(device, wide(config.dim), "normalised")?,
            qkv: floats(device, wide(config.q_dim() + kv), "q, k, v")?,
            attention: floats(device, wide(config.q_dim()), "attention")?,
            y: floats(device, wide(config.dim), "block output")?,
            gate: floats(device, wide(config.ffn_dim), "gate")?,
            up: floats(device, wide(config.ffn_dim), "up")?,
            activated: floats(device, wide(config.ffn_dim), "activated")?,
            logits: floats(device, config.vocab_size as usize, "logits")?,
            prompt: floats(device, rows, "prompt")?,
            token: floats(device, 1, "token")?,
            history: floats(device, sizes.context as usize + 1, "history")?,
            top_values: [
                floats(device, candidates, "candidates")?,
                floats(device, candidates, "candidates")?,
            ],
            top_ids: [
                floats(device, candidates, "candidate tokens")?,
                floats(device, candidates, "candidate tokens")?,
            ],
            layers,
            divisors: divisors(config, rope_freqs, device)?,
        })
    }

    /// All buffers, for giving them back.
    pub fn buffers(&self) -> Vec<Buffer> {
        let scratch = [
            self.h,
            self.x,
            self.qkv,
            self.attention,
            self.y,
            self.gate,
            self.up,
        ];
        let tokens = [
            self.activated,
            self.logits,
            self.prompt,
            self.token,
            self.history,
        ];
        let sampler = self.top_values.into_iter().chain(self.top_ids);
        let mut divisors: Vec<Buffer> = self.divisors.iter().map(|slice| slice.buffer).collect();
        divisors.sort_by_key(|buffer| buffer.id);
        divisors.dedup();
        let caches = self.layers.iter().flat_map(|layer| [layer.k, layer.v]);
        scratch
            .into_iter()
            .chain(tokens)
            .chain(sampler)
            .chain(divisors)
            .chain(caches)
            .collect()
    }
}

/// One table for each kind of layer.
fn divisors(
    config: &ModelConfig,
    rope_freqs: &[f32],
    device: &mut dyn Device,
) -> Result<Vec<Slice>, EngineError> {
    let mut made: Vec<(RopeConfig, Slice)> = Vec::new();
    let mut of_layers = Vec::with_capacity(config.layers.len());
    for layer in &config.layers {
        let known = made
            .iter()
            .find(|(rope, _)| *rope == layer.rope)
            .map(|(_, place)| *place);
        let place = match known {
            Some(place) => place,
            None => {
                let values = layer.rope.divisors(config.head_dim, rope_freqs);
                let buffer = device.allocate(4 * values.len(), "RoPE divisors")?;
                device.write(buffer, 0, bytemuck::cast_slice(&values))?;
                made.push((layer.rope, buffer.into()));
                buffer.into()
            }
        };
        of_layers.push(place);
    }
    Ok(of_layers)
}
