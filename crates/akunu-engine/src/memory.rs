//! The buffers of a session, allocated once: scratch for the activations, and the KV cache; and those
//! that several sessions share while they step together.

mod activations;

use akunu_arch::{ModelConfig, RopeConfig};
use akunu_kernels::plan::Slice;
use akunu_kernels::{Buffer, Device};

pub(crate) use self::activations::Activations;
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
    /// What the rows of a chunk become on their way through the layers.
    pub activations: Activations,
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
        check_limit(config, sizes, device)?;
        make(device, |allocator| {
            allocator.memory(config, rope_freqs, sizes)
        })
    }
}

/// What sessions that step together share: each has one row.
#[derive(Debug)]
pub(crate) struct SharedRows {
    /// What the rows become on their way through the layers.
    pub activations: Activations,
    /// The token that each row reads next, (rows).
    pub tokens: Buffer,
    /// The logits of each row, (rows, vocab).
    pub logits: Buffer,
    /// All of these buffers, for giving them back.
    pub all: Vec<Buffer>,
}

impl SharedRows {
    /// Buffers for as many sessions as `rows`.
    pub fn allocate(
        config: &ModelConfig,
        rows: u32,
        device: &mut dyn Device,
    ) -> Result<SharedRows, EngineError> {
        make(device, |allocator| {
            Ok(SharedRows {
                activations: allocator.activations(config, rows)?,
                tokens: allocator.words(rows.into(), "tokens")?,
                logits: allocator.words(logits_of(config, rows), "logits")?,
                all: allocator.made.clone(),
            })
        })
    }
}

/// Makes buffers, all or none.
fn make<T>(
    device: &mut dyn Device,
    what: impl FnOnce(&mut Allocator) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let mut allocator = Allocator {
        device,
        made: Vec::new(),
    };
    let made = what(&mut allocator);
    if made.is_err() {
        allocator.release();
    }
    made
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
        let candidates = sampling::candidates(config.vocab_size) as u64;
        let mut candidates = |label| self.words(candidates, label);
        let top_values = [candidates("candidates")?, candidates("candidates")?];
        let top_ids = [
            candidates("candidate tokens")?,
            candidates("candidate tokens")?,
        ];
        Ok(Memory {
            activations: self.activations(config, sizes.chunk)?,
            logits: self.words(logits_of(config, 1), "logits")?,
            prompt: self.words(sizes.chunk.into(), "prompt")?,
            token: self.words(1, "token")?,
            history: self.words(u64::from(sizes.context) + 1, "history")?,
            top_values,
            top_ids,
            layers,
            divisors: self.divisors(config, rope_freqs)?,
            all: self.made.clone(),
        })
    }

    fn activations(&mut self, config: &ModelConfig, rows: u32) -> Result<Activations, EngineError> {
        Activations::make(config, rows, |elements, label| self.words(elements, label))
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

    /// A buffer of 4-byte elements.
    fn words(&mut self, elements: u64, label: &str) -> Result<Buffer, EngineError> {
        self.buffer(4 * elements, label)
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

/// Elements of the logits of some rows.
fn logits_of(config: &ModelConfig, rows: u32) -> u64 {
    u64::from(rows) * u64::from(config.vocab_size)
}

fn check_limit(config: &ModelConfig, sizes: Sizes, device: &dyn Device) -> Result<(), EngineError> {
    let cache = config.kv_bytes(sizes.context, sizes.chunk);
    let words = Activations::elements(config, sizes.chunk)
        + logits_of(config, 1)
        + 4 * sampling::candidates(config.vocab_size) as u64
        + u64::from(sizes.chunk)
        + u64::from(sizes.context)
        + 2;
    let scratch = 4 * words;
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
