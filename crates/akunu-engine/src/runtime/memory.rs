//! The buffers of a runtime.

use akunu_arch::{LayerConfig, ModelConfig, RopeConfig};
use akunu_program::{
    Buffer, Device, LayerCache, Masks, Op, PageMap, ScoreMemory, Slice, StepMemory,
};
use akunu_types::params::{Row, SamplingRule};

use super::sizes::{MAX_CHAIN, PAGE, PAGE_SHIFT, cache_bytes};
use crate::error::EngineError;
use crate::graph::{Activations, Lists, Outputs};
use crate::loaded::Loaded;
use crate::rule::{MAX_BIASES, MAX_LOGPROBS};

/// Outputs that there is room for once there are more than one. Guesses make it so, and whenever there is more room all
/// programs are loaded again, which takes as long as some tokens of a small model.
const FEW_OUTPUTS: u32 = 8;
/// Maximum number of tokens of a sequence that penalties look at.
const HISTORY: u32 = 8192;
/// Slots of a sequence that page tables have room for at first.
const FIRST_SLOTS: u32 = 4096;

/// Everything that programs read and write, besides the weights.
pub(super) struct Memory {
    pub step: StepMemory,
    /// What rules of choice refer to.
    pub lists: Lists,
    pub activations: Activations,
    pub outputs: Outputs,
    /// For each kind of layers, where their pages are found.
    pub maps: Vec<PageMap>,
    /// Keys and values of each layer.
    pub caches: Vec<LayerCache>,
    /// RoPE divisors of each layer, (head_dim / 2); layers of one kind share them.
    pub divisors: Vec<Slice>,
    divisor_buffers: Vec<Buffer>,
    /// What the keys of each layer are stored less of, (n_kv_heads, head_dim); none where they are stored as they are.
    pub centres: Vec<Buffer>,
}

/// The kinds of layers: their windows, each once.
fn page_kinds(config: &ModelConfig) -> Vec<Option<u32>> {
    let mut kinds = Vec::new();
    for layer in &config.layers {
        if !kinds.contains(&layer.window) {
            kinds.push(layer.window);
        }
    }
    kinds
}

/// Bytes of the scratch memory for as many rows.
pub(crate) fn scratch_bytes(config: &ModelConfig, rows: u32) -> u64 {
    let widths = [
        3 * u64::from(config.dim),
        2 * u64::from(config.q_dim()),
        2 * u64::from(config.kv_dim()),
        3 * u64::from(config.ffn_dim),
    ];
    let candidates = u64::from(Op::candidates(config.vocab_size));
    let masks = u64::from(config.vocab_size.div_ceil(32)) + 1;
    let outputs = masks + u64::from(config.vocab_size) + 2 * u64::from(config.dim) + 2 * candidates;
    4 * (u64::from(rows) * widths.iter().sum::<u64>() + outputs)
}

impl Memory {
    pub fn allocate(
        model: &Loaded,
        seats: u32,
        rows: u32,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let config = &model.config;
        make(device, |make| {
            let kinds = page_kinds(config);
            let mut maps = Vec::with_capacity(kinds.len());
            for window in kinds {
                let table_stride = FIRST_SLOTS >> PAGE_SHIFT;
                maps.push(PageMap {
                    table: make.words(seats, table_stride, "page table")?,
                    table_stride,
                    page_shift: PAGE_SHIFT,
                    n_pages: 0,
                    n_sequences: seats,
                    window,
                });
            }
            let mut caches = Vec::with_capacity(config.layers.len());
            for layer in &config.layers {
                let pages = map_of(&maps, layer);
                caches.push(make.cache(model, pages)?);
            }
            let (divisors, divisor_buffers) = make.divisors(config, &model.rope_freqs)?;
            Ok(Memory {
                step: make.step(seats, rows)?,
                lists: make.lists(config, seats)?,
                activations: make.activations(config, rows)?,
                outputs: make.outputs(config, 1, false)?,
                maps,
                caches,
                divisors,
                divisor_buffers,
                centres: make.centres(&model.key_centres)?,
            })
        })
    }

    /// Changes the numbers of seats and rows. Page tables and rows are empty afterwards; pages keep what they hold.
    pub fn resize(
        &mut self,
        model: &Loaded,
        seats: u32,
        rows: u32,
        device: &mut dyn Device,
    ) -> Result<(), EngineError> {
        let (config, old) = (&model.config, &self.maps);
        let (step, lists, activations, maps) = make(device, |make| {
            let mut maps = Vec::with_capacity(old.len());
            for map in old {
                maps.push(make.map(PageMap {
                    n_sequences: seats,
                    ..*map
                })?);
            }
            let activations = make.activations(config, rows)?;
            let lists = make.lists(config, seats)?;
            Ok((make.step(seats, rows)?, lists, activations, maps))
        })?;
        self.release_step(device);
        release(self.activations.buffers(), device);
        self.step = step;
        self.lists = lists;
        self.activations = activations;
        self.set_maps(config, maps, device);
        Ok(())
    }

    /// Makes room for at least as many slots of a sequence; returns whether there was less. Page tables are empty then.
    pub fn grow_slots(
        &mut self,
        model: &Loaded,
        slots: u32,
        device: &mut dyn Device,
    ) -> Result<bool, EngineError> {
        let wanted = slots.div_ceil(PAGE as u32);
        if self.maps.iter().all(|map| map.table_stride >= wanted) {
            return Ok(false);
        }
        let table_stride = wanted.next_power_of_two();
        let old = &self.maps;
        let maps = make(device, |make| {
            let maps = old.iter().map(|map| {
                make.map(PageMap {
                    table_stride,
                    ..*map
                })
            });
            maps.collect::<Result<Vec<_>, EngineError>>()
        })?;
        self.set_maps(&model.config, maps, device);
        Ok(true)
    }

    /// Adds pages of one kind; those that are there keep what they hold.
    pub fn grow_pages(
        &mut self,
        model: &Loaded,
        kind: usize,
        n_pages: u32,
        device: &mut dyn Device,
    ) -> Result<(), EngineError> {
        let config = &model.config;
        let old = self.maps[kind];
        let map = PageMap { n_pages, ..old };
        let layers: Vec<usize> = (0..config.layers.len())
            .filter(|&layer| config.layers[layer].window == old.window)
            .collect();
        let caches = make(device, |make| {
            let caches = layers.iter().map(|_| make.cache(model, map));
            caches.collect::<Result<Vec<_>, EngineError>>()
        })?;
        let bytes = cache_bytes(&model.config, model.kv, old.n_pages);
        for (&layer, cache) in layers.iter().zip(caches) {
            let before = std::mem::replace(&mut self.caches[layer], cache);
            for (from, to) in [(before.k, cache.k), (before.v, cache.v)] {
                if bytes > 0 {
                    device.copy(from.into(), to.into(), bytes)?;
                }
                device.release(from);
            }
        }
        self.maps[kind] = map;
        Ok(())
    }

    /// Makes room for the logits of at least as many rows; returns whether there was less.
    pub fn grow_outputs(
        &mut self,
        model: &Loaded,
        outputs: u32,
        device: &mut dyn Device,
    ) -> Result<bool, EngineError> {
        if outputs <= self.outputs.capacity {
            return Ok(false);
        }
        let capacity = outputs.next_power_of_two().max(FEW_OUTPUTS);
        self.make_outputs(model, capacity, device)?;
        Ok(true)
    }

    /// Makes the record of log probabilities; returns whether there was none before.
    pub fn want_scores(
        &mut self,
        model: &Loaded,
        device: &mut dyn Device,
    ) -> Result<bool, EngineError> {
        let is_new = self.outputs.scores.is_none();
        if is_new {
            let (config, capacity) = (&model.config, self.outputs.capacity);
            let scores = make(device, |make| make.scores(config, capacity))?;
            self.outputs.scores = Some(scores);
        }
        Ok(is_new)
    }

    fn make_outputs(
        &mut self,
        model: &Loaded,
        capacity: u32,
        device: &mut dyn Device,
    ) -> Result<(), EngineError> {
        let is_scored = self.outputs.scores.is_some();
        let outputs = make(device, |make| {
            make.outputs(&model.config, capacity, is_scored)
        })?;
        self.release_outputs(device);
        self.outputs = outputs;
        Ok(())
    }

    /// Bytes of the buffers that every session uses.
    pub fn shared_bytes(&self) -> u64 {
        let caches = self.caches.iter().flat_map(|cache| [cache.k, cache.v]);
        let scratch = self.activations.buffers();
        caches.chain(scratch).map(|buffer| buffer.len as u64).sum()
    }

    pub fn release(&mut self, device: &mut dyn Device) {
        self.release_step(device);
        release(self.activations.buffers(), device);
        self.release_outputs(device);
        release(self.maps.iter().map(|map| map.table), device);
        release(
            self.caches.iter().flat_map(|cache| [cache.k, cache.v]),
            device,
        );
        release(self.divisor_buffers.iter().copied(), device);
        release(self.centres.iter().copied(), device);
    }

    fn set_maps(&mut self, config: &ModelConfig, maps: Vec<PageMap>, device: &mut dyn Device) {
        for old in std::mem::replace(&mut self.maps, maps) {
            device.release(old.table);
        }
        for (cache, layer) in self.caches.iter_mut().zip(&config.layers) {
            cache.pages = map_of(&self.maps, layer);
        }
    }

    fn release_step(&self, device: &mut dyn Device) {
        let step = &self.step;
        let tables = [step.rows, step.tokens, step.outputs];
        let of_sequences = [step.rules, step.history, step.chosen];
        release(tables.into_iter().chain(of_sequences), device);
        release(self.lists.buffers(), device);
    }

    fn release_outputs(&self, device: &mut dyn Device) {
        let o = &self.outputs;
        let rows = [o.h, o.x, o.logits, o.masks.bits, o.masks.rows];
        release(rows.into_iter().chain(o.parts), device);
        if let Some(scores) = o.scores {
            release([scores.logits, scores.scores, scores.best_tokens], device);
        }
    }
}

fn release(buffers: impl IntoIterator<Item = Buffer>, device: &mut dyn Device) {
    for buffer in buffers {
        device.release(buffer);
    }
}

fn map_of(maps: &[PageMap], layer: &LayerConfig) -> PageMap {
    match maps.iter().find(|map| map.window == layer.window) {
        Some(map) => *map,
        None => unreachable!("every layer's window has a map"),
    }
}

/// Makes buffers, all or none.
fn make<T>(
    device: &mut dyn Device,
    what: impl FnOnce(&mut Make) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let mut make = Make {
        device,
        made: Vec::new(),
    };
    let made = what(&mut make);
    if made.is_err() {
        make.made
            .iter()
            .for_each(|&buffer| make.device.release(buffer));
    }
    made
}

/// Makes buffers, and remembers them.
struct Make<'a> {
    device: &'a mut dyn Device,
    made: Vec<Buffer>,
}

impl Make<'_> {
    fn buffer(&mut self, bytes: u64, label: &str) -> Result<Buffer, EngineError> {
        let buffer = self.device.allocate(bytes as usize, label)?;
        self.made.push(buffer);
        Ok(buffer)
    }

    /// A buffer of (rows, width) elements of 4 bytes.
    fn words(&mut self, rows: u32, width: u32, label: &str) -> Result<Buffer, EngineError> {
        self.buffer(4 * u64::from(rows) * u64::from(width), label)
    }

    fn step(&mut self, seats: u32, rows: u32) -> Result<StepMemory, EngineError> {
        let max_steps = 2 * MAX_CHAIN;
        let of = |n: u32, bytes: usize| u64::from(n) * bytes as u64;
        Ok(StepMemory {
            rows: self.buffer(of(rows, size_of::<Row>()), "rows")?,
            tokens: self.words(rows, 1, "tokens")?,
            outputs: self.words(rows, 1, "outputs")?,
            rules: self.buffer(of(seats, size_of::<SamplingRule>()), "rules")?,
            history: self.words(seats, HISTORY, "history")?,
            chosen: self.words(max_steps, rows, "chosen")?,
            row_capacity: rows,
            n_sequences: seats,
            history_stride: HISTORY,
            max_steps,
        })
    }

    fn activations(&mut self, config: &ModelConfig, rows: u32) -> Result<Activations, EngineError> {
        let (dim, ffn_dim) = (config.dim, config.ffn_dim);
        let (q_dim, kv_dim) = (config.q_dim(), config.kv_dim());
        Ok(Activations {
            h: self.words(rows, dim, "residual stream")?,
            x: self.words(rows, dim, "normalised")?,
            q: self.words(rows, q_dim, "q")?,
            k: self.words(rows, kv_dim, "k")?,
            v: self.words(rows, kv_dim, "v")?,
            attention: self.words(rows, q_dim, "attention")?,
            y: self.words(rows, dim, "block output")?,
            gate: self.words(rows, ffn_dim, "gate")?,
            up: self.words(rows, ffn_dim, "up")?,
            activated: self.words(rows, ffn_dim, "activated")?,
        })
    }

    fn lists(&mut self, config: &ModelConfig, seats: u32) -> Result<Lists, EngineError> {
        let n_biases = MAX_BIASES as u32;
        Ok(Lists {
            bias_tokens: self.words(seats, n_biases, "biased tokens")?,
            bias_values: self.words(seats, n_biases, "biases")?,
            breakers: self.words(seats, config.vocab_size.div_ceil(32), "breakers")?,
            mu: self.words(seats, 1, "mirostat")?,
        })
    }

    /// A record for as many rounds as the record of choices has.
    fn scores(&mut self, config: &ModelConfig, capacity: u32) -> Result<ScoreMemory, EngineError> {
        let places = 2 * MAX_CHAIN * capacity;
        Ok(ScoreMemory {
            logits: self.words(capacity, config.vocab_size, "kept logits")?,
            scores: self.words(places, MAX_LOGPROBS + 1, "log probabilities")?,
            best_tokens: self.words(places, MAX_LOGPROBS, "best tokens")?,
            record_stride: capacity,
            max_best: MAX_LOGPROBS,
        })
    }

    fn outputs(
        &mut self,
        config: &ModelConfig,
        capacity: u32,
        is_scored: bool,
    ) -> Result<Outputs, EngineError> {
        let n = Op::candidates(config.vocab_size);
        let scores = match is_scored {
            true => Some(self.scores(config, capacity)?),
            false => None,
        };
        Ok(Outputs {
            h: self.words(capacity, config.dim, "outputs")?,
            x: self.words(capacity, config.dim, "normalised outputs")?,
            logits: self.words(capacity, config.vocab_size, "logits")?,
            parts: [
                self.words(capacity, n, "best of parts")?,
                self.words(capacity, n, "their tokens")?,
            ],
            masks: Masks {
                bits: self.words(capacity, config.vocab_size.div_ceil(32), "grammar masks")?,
                rows: self.words(capacity, 1, "grammar mask rows")?,
                capacity,
            },
            scores,
            capacity,
        })
    }

    /// A page map with a table of its own.
    fn map(&mut self, map: PageMap) -> Result<PageMap, EngineError> {
        Ok(PageMap {
            table: self.words(map.n_sequences, map.table_stride, "page table")?,
            ..map
        })
    }

    fn cache(&mut self, model: &Loaded, pages: PageMap) -> Result<LayerCache, EngineError> {
        let bytes = cache_bytes(&model.config, model.kv, pages.n_pages) as u64;
        Ok(LayerCache {
            format: model.kv,
            k: self.buffer(bytes, "keys")?,
            v: self.buffer(bytes, "values")?,
            pages,
        })
    }

    /// A buffer with these numbers.
    fn floats(&mut self, values: &[f32], label: &str) -> Result<Buffer, EngineError> {
        let buffer = self.buffer(4 * values.len() as u64, label)?;
        self.device.write(buffer, 0, bytemuck::cast_slice(values))?;
        Ok(buffer)
    }

    fn centres(&mut self, of_layers: &[Vec<f32>]) -> Result<Vec<Buffer>, EngineError> {
        let centres = of_layers.iter();
        centres
            .map(|centre| self.floats(centre, "key centres"))
            .collect()
    }

    /// One table of divisors for each kind of RoPE: those of each layer, and the buffers.
    fn divisors(
        &mut self,
        config: &ModelConfig,
        rope_freqs: &[f32],
    ) -> Result<(Vec<Slice>, Vec<Buffer>), EngineError> {
        let mut made: Vec<(RopeConfig, Buffer)> = Vec::new();
        let mut of_layers = Vec::with_capacity(config.layers.len());
        for layer in &config.layers {
            let known = made.iter().find(|(rope, _)| *rope == layer.rope);
            let buffer = match known {
                Some((_, buffer)) => *buffer,
                None => {
                    let values = layer.rope.divisors(config.head_dim, rope_freqs);
                    let buffer = self.floats(&values, "RoPE divisors")?;
                    made.push((layer.rope, buffer));
                    buffer
                }
            };
            of_layers.push(buffer.into());
        }
        Ok((
            of_layers,
            made.into_iter().map(|(_, buffer)| buffer).collect(),
        ))
    }
}
