//! The buffers of a runtime.

use akunu_arch::{Attention, Mixer, Model, Output, Rope};
use akunu_program::op::StatePool;
use akunu_program::{
    Buffer, Device, LayerCache, Masks, Op, PageMap, RowTable, ScoreMemory, Slice, StepMemory,
};

use super::sizes::{MAX_CHAIN, PAGE, PAGE_SHIFT, cache_bytes};
use crate::buffers::Buffers;
use crate::builder::{
    AttentionMemory, Builder, ImageMemory, LayerMemory, LayerStates, Lists, MixerMemory, MtpMemory,
    Outputs, RouterFault, Scratch, SeenKeys, divisors,
};
use crate::error::EngineError;
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
    /// Scratch memory for the rows of a step.
    scratch: Buffer,
    /// Bytes of scratch memory for each row.
    scratch_row: usize,
    pub outputs: Outputs,
    /// For each kind of layers, where their pages are found.
    pub maps: Vec<PageMap>,
    /// Keys and values of each layer that has its own.
    pub caches: Vec<LayerCache>,
    /// The states of each layer that has some.
    pub states: Vec<LayerStates>,
    /// RoPE divisors of each layer with attention, (head_dim / 2); layers of one kind share them.
    pub divisors: Vec<Slice>,
    divisor_buffers: Vec<Buffer>,
    /// Mean subtracted from each layer's keys, (n_kv_heads, head_dim); none where they are stored as they are.
    pub centres: Vec<Option<Buffer>>,
    /// Where routers report that their logits are not finite: a layer, counted from 1, or 0.
    pub fault: Buffer,
    /// That of the images of a step, once there was one.
    pub images: Option<ImageMemory>,
    /// The bias of layer norms that have none, (dim).
    zeros: Buffer,
    /// Ones, as weights of norms without weights, (head_dim).
    ones: Buffer,
    /// The numbers of heads, from 0 on, of u32: at least one.
    numbers: Buffer,
    /// The taps of a convolution that gives the row before, (dim, 2), for a model with a block for multi-token prediction.
    before: Option<Buffer>,
}

/// The kinds of layers: their windows, each once.
fn page_kinds(config: &Model) -> Vec<Option<u32>> {
    let mut kinds = Vec::new();
    for window in config.windows() {
        if !kinds.contains(&window) {
            kinds.push(window);
        }
    }
    kinds
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
            for attention in config.cached_attention() {
                let pages = map_of(&maps, attention.window);
                caches.push(make.cache(model, attention, pages)?);
            }
            let (divisors, divisor_buffers) = make.divisors(config, &model.rope_freqs)?;
            let centres = make.centres(&model.key_centres)?;
            let fault = make.words(1, 1, "fault of a router")?;
            let zeros = make.floats(&vec![0.0; config.dim as usize], "zeros")?;
            let ones = make.floats(&vec![1.0; config.max_head_dim().max(1) as usize], "ones")?;
            let n_heads = config.attention().map(|attention| attention.heads).max();
            let numbers: Vec<u32> = (0..n_heads.unwrap_or(1)).collect();
            let numbers = make.floats(bytemuck::cast_slice(&numbers), "numbers of heads")?;
            let states = make.states(config, 0)?;
            let before = match &config.mtp {
                Some(mtp) => Some(make.floats(&[1.0, 0.0].repeat(mtp.dim as usize), "row before")?),
                None => None,
            };
            let outputs = make.outputs(config, 1, false)?;
            let mut memory = Memory {
                step: make.seated_step(seats, rows)?,
                lists: make.lists(config, seats)?,
                scratch: zeros,
                scratch_row: 0,
                outputs,
                maps,
                caches,
                states,
                divisors,
                divisor_buffers,
                centres,
                fault,
                images: None,
                zeros,
                ones,
                numbers,
                before,
            };
            memory.scratch_row = memory.row_bytes(model);
            memory.scratch = make.scratch(memory.scratch_row, rows)?;
            Ok(memory)
        })
    }

    /// Bytes of scratch memory that a row takes.
    fn row_bytes(&self, model: &Loaded) -> usize {
        let scratch = Scratch::measure();
        // A step with images takes more where positions have three axes. Which buffers it reads makes no difference.
        let axes = model.config.images.and_then(|images| images.axes);
        let images = axes.map(|axes| ImageMemory {
            features: self.zeros,
            deep: Vec::new(),
            axes: Some((axes, self.zeros)),
        });
        let builder = || {
            Builder::new(scratch.clone(), model.config.dim)
                .with_zeros(self.zeros.into())
                .with_ones(self.ones.into())
                .with_images(images.as_ref())
                .with_numbers(self.numbers.into())
        };
        let mut layers = builder();
        layers.layers(&model.weights, &self.layers(&model.config));
        let Some(mtp) = self.mtp(&model.config) else {
            return scratch.row_bytes();
        };
        layers.follow(&model.weights, &mtp);
        drop(layers);
        let outputs = [self.outputs.h, self.outputs.x].map(Slice::from);
        builder().guess(&model.weights, &mtp, outputs);
        scratch.row_bytes()
    }

    /// A builder of programs that use this memory.
    pub fn builder(&self, model: &Loaded) -> Builder<'_> {
        let scratch = Scratch::new(self.scratch, self.step.row_capacity);
        Builder::new(scratch, model.config.dim)
            .with_zeros(self.zeros.into())
            .with_ones(self.ones.into())
            .with_numbers(self.numbers.into())
    }

    /// The memory of each layer.
    pub fn layers(&self, config: &Model) -> Vec<LayerMemory> {
        let rest = (&self.states[..], self.fault);
        layer_memory(config, &self.caches, &self.divisors, &self.centres, rest)
    }

    /// The memory of the block for multi-token prediction: the last of keys and values, and of states.
    pub fn mtp(&self, config: &Model) -> Option<MtpMemory> {
        config.mtp.as_ref()?;
        let (&cache, &divisors) = (self.caches.last()?, self.divisors.last()?);
        let centre = self.centres.last()?.map(Slice::from);
        let keys = SeenKeys::Pages { cache, centre };
        Some(MtpMemory {
            layer: LayerMemory {
                mixer: MixerMemory::Attention(AttentionMemory { divisors, keys }),
                cross: None,
                router: Some(RouterFault {
                    layer: config.layers.len() as u32,
                    place: self.fault.into(),
                }),
            },
            hidden: self.states.last()?.inputs,
            before: self.before?.into(),
        })
    }

    /// The memory of each layer, and of that of the block.
    pub fn layers_and_mtp(&self, config: &Model) -> Vec<LayerMemory> {
        let mut layers = self.layers(config);
        layers.extend(self.mtp(config).map(|mtp| mtp.layer));
        layers
    }

    /// A table of rows without rows and pages.
    pub fn table(&self) -> RowTable {
        let n_blocks = self.states.first().map_or(0, |layer| layer.inputs.n_blocks);
        RowTable::new(self.step, &self.maps).with_states(n_blocks)
    }

    /// Makes room for more blocks of states; those that are there keep what they hold.
    pub fn grow_states(
        &mut self,
        config: &Model,
        n_blocks: u32,
        device: &mut dyn Device,
    ) -> Result<(), EngineError> {
        let states = make(device, |make| make.states(config, n_blocks))?;
        let before = std::mem::replace(&mut self.states, states);
        let before = before.iter().flat_map(LayerStates::pools);
        let after = self.states.iter().flat_map(LayerStates::pools);
        for (from, to) in before.zip(after) {
            if from.blocks.len > 0 {
                device.copy(from.blocks.into(), to.blocks.into(), from.blocks.len)?;
            }
            device.release(from.blocks);
        }
        Ok(())
    }

    /// Where the states of a block lie, layer by layer.
    pub fn state_places(&self, config: &Model, block: u32) -> Vec<StatePlace> {
        let sizes = config.states().flat_map(|size| [size.inputs, size.memory]);
        let pools = self.states.iter().flat_map(LayerStates::pools);
        let places = pools.zip(sizes).filter(|(_, numbers)| *numbers > 0);
        let place = |(pool, numbers): (StatePool, u32)| {
            let bytes = size_of::<f32>() * numbers as usize;
            StatePlace {
                buffer: pool.blocks,
                offset: block as usize * bytes,
                bytes,
            }
        };
        places.map(place).collect()
    }

    /// Bytes of the scratch memory and of the outputs for as many rows.
    pub fn scratch_bytes(&self, rows: u32) -> u64 {
        let outputs = self.outputs.buffers();
        let outputs: u64 = outputs.map(|buffer| buffer.len as u64).sum();
        u64::from(rows) * self.scratch_row as u64 + outputs
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
        let (step, lists, scratch, maps) = make(device, |make| {
            let mut maps = Vec::with_capacity(old.len());
            for map in old {
                maps.push(make.map(PageMap {
                    n_sequences: seats,
                    ..*map
                })?);
            }
            let scratch = make.scratch(self.scratch_row, rows)?;
            let lists = make.lists(config, seats)?;
            Ok((make.seated_step(seats, rows)?, lists, scratch, maps))
        })?;
        self.release_step(device);
        device.release(self.scratch);
        self.step = step;
        self.lists = lists;
        self.scratch = scratch;
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
        let layers = || {
            let layers = config.cached_attention().enumerate();
            layers.filter(|(_, attention)| attention.window == old.window)
        };
        let caches = make(device, |make| {
            let caches = layers().map(|(_, attention)| make.cache(model, attention, map));
            caches.collect::<Result<Vec<_>, EngineError>>()
        })?;
        for ((layer, attention), cache) in layers().zip(caches) {
            let bytes = cache_bytes(attention, model.kv, old.n_pages);
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

    /// The memory of images, which is made when the first one is read.
    pub fn want_images(
        &mut self,
        config: &Model,
        device: &mut dyn Device,
    ) -> Result<&ImageMemory, EngineError> {
        let images = match self.images.take() {
            Some(images) => images,
            None => {
                let rows = self.step.row_capacity;
                make(device, |make| make.images(config, rows))?
            }
        };
        Ok(self.images.insert(images))
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
        let states = self.states.iter().flat_map(LayerStates::pools);
        caches
            .chain(states.map(|pool| pool.blocks))
            .chain([self.scratch])
            .map(|buffer| buffer.len as u64)
            .sum()
    }

    pub fn release(&mut self, device: &mut dyn Device) {
        self.release_step(device);
        device.release(self.scratch);
        self.release_outputs(device);
        release(self.maps.iter().map(|map| map.table), device);
        release(
            self.caches.iter().flat_map(|cache| [cache.k, cache.v]),
            device,
        );
        let states = self.states.iter().flat_map(LayerStates::pools);
        release(states.map(|pool| pool.blocks), device);
        release(self.divisor_buffers.iter().copied(), device);
        release(self.centres.iter().flatten().copied(), device);
        device.release(self.fault);
        device.release(self.zeros);
        device.release(self.ones);
        device.release(self.numbers);
        release(self.before, device);
    }

    fn set_maps(&mut self, config: &Model, maps: Vec<PageMap>, device: &mut dyn Device) {
        for old in std::mem::replace(&mut self.maps, maps) {
            device.release(old.table);
        }
        let layers = config.cached_attention();
        for (cache, attention) in self.caches.iter_mut().zip(layers) {
            cache.pages = map_of(&self.maps, attention.window);
        }
    }

    fn release_step(&mut self, device: &mut dyn Device) {
        if let Some(images) = self.images.take() {
            release(images.buffers(), device);
        }
        let step = &self.step;
        let tables = [step.rows, step.tokens, step.outputs];
        let of_sequences = [step.rules, step.history, step.chosen];
        release(tables.into_iter().chain(of_sequences), device);
        release(self.lists.buffers(), device);
    }

    fn release_outputs(&self, device: &mut dyn Device) {
        release(self.outputs.buffers(), device);
        if let Some(scores) = self.outputs.scores {
            release([scores.logits, scores.scores, scores.best_tokens], device);
        }
    }
}

/// Where a part of a state lies.
pub(super) struct StatePlace {
    pub buffer: Buffer,
    pub offset: usize,
    pub bytes: usize,
}

/// The memory of each layer, of these buffers.
fn layer_memory(
    config: &Model,
    caches: &[LayerCache],
    divisors: &[Slice],
    centres: &[Option<Buffer>],
    (states, fault): (&[LayerStates], Buffer),
) -> Vec<LayerMemory> {
    let places = cache_places(config);
    let attention = divisors.iter().zip(places);
    let mut attention = attention.map(|(&divisors, place)| {
        let (cache, centre) = (caches[place], centres[place].map(Slice::from));
        AttentionMemory {
            divisors,
            keys: SeenKeys::Pages { cache, centre },
        }
    });
    let mut states = states.iter().copied();
    let layers = config.layers.iter().zip(0..);
    let memory = layers.map(|(described, layer)| {
        let found = match &described.mixer {
            Mixer::None => Some(MixerMemory::None),
            Mixer::Attention(_) => attention.next().map(MixerMemory::Attention),
            Mixer::ShortConv(_) | Mixer::DeltaNet(_) | Mixer::Ssd(_) => {
                states.next().map(MixerMemory::States)
            }
            Mixer::Both(_) => {
                let both = attention.next().zip(states.next());
                both.map(|(attention, states)| MixerMemory::Both(attention, states))
            }
        };
        let Some(mixer) = found else {
            unreachable!("every layer has its memory");
        };
        LayerMemory {
            mixer,
            cross: None,
            router: Some(RouterFault {
                layer,
                place: fault.into(),
            }),
        }
    });
    memory.collect()
}

/// For each layer with attention, which of the caches holds its keys and values.
fn cache_places(config: &Model) -> Vec<usize> {
    let mut of_layers = vec![None; config.layers.len()];
    let mut n_caches = 0;
    let mut places = Vec::new();
    for (at, layer) in config.layers.iter().enumerate() {
        let Some(attention) = layer.mixer.attention() else {
            continue;
        };
        let place = match attention.keys_of.and_then(|source| of_layers[source]) {
            Some(place) => place,
            None => {
                n_caches += 1;
                n_caches - 1
            }
        };
        of_layers[at] = Some(place);
        places.push(place);
    }
    places
}

fn release(buffers: impl IntoIterator<Item = Buffer>, device: &mut dyn Device) {
    for buffer in buffers {
        device.release(buffer);
    }
}

fn map_of(maps: &[PageMap], window: Option<u32>) -> PageMap {
    match maps.iter().find(|map| map.window == window) {
        Some(map) => *map,
        None => unreachable!("every layer's window has a map"),
    }
}

/// Makes buffers, all or none.
fn make<T>(
    device: &mut dyn Device,
    make: impl FnOnce(&mut Buffers) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    Ok(Buffers::make(device, make)?.0)
}

impl Buffers<'_> {
    fn seated_step(&mut self, seats: u32, rows: u32) -> Result<StepMemory, EngineError> {
        self.chain_step(rows, seats, (HISTORY, 2 * MAX_CHAIN))
    }

    fn scratch(&mut self, row_bytes: usize, rows: u32) -> Result<Buffer, EngineError> {
        self.bytes(row_bytes * rows as usize, "scratch")
    }

    fn lists(&mut self, config: &Model, seats: u32) -> Result<Lists, EngineError> {
        let n_biases = MAX_BIASES as u32;
        let scale = match &config.output {
            Output::Logits(logits) => logits.scale.unwrap_or(1.0),
            Output::Texts(_) => 1.0,
        };
        Ok(Lists {
            bias_tokens: self.words(seats, n_biases, "biased tokens")?,
            bias_values: self.words(seats, n_biases, "biases")?,
            breakers: self.words(seats, config.vocab_size.div_ceil(32), "breakers")?,
            mu: self.words(seats, 1, "mirostat")?,
            logit_scale: self.floats(&vec![scale; seats as usize], "logit scales")?,
        })
    }

    /// A record for as many rounds as the record of choices has.
    fn scores(&mut self, config: &Model, capacity: u32) -> Result<ScoreMemory, EngineError> {
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
        config: &Model,
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

    fn cache(
        &mut self,
        model: &Loaded,
        attention: &Attention,
        pages: PageMap,
    ) -> Result<LayerCache, EngineError> {
        let bytes = cache_bytes(attention, model.kv, pages.n_pages);
        Ok(LayerCache {
            format: model.kv,
            k: self.bytes(bytes, "keys")?,
            v: self.bytes(bytes, "values")?,
            pages,
        })
    }

    /// Memory for the images of a step of so many rows.
    fn images(&mut self, config: &Model, rows: u32) -> Result<ImageMemory, EngineError> {
        let n_deep = config.images.map_or(0, |images| images.deep_layers);
        let mut features = || self.words(rows, config.dim, "features of images");
        let (first, deep) = (features()?, (0..n_deep).map(|_| features()));
        let deep = deep.collect::<Result<_, _>>()?;
        let axes = config.images.and_then(|images| images.axes);
        let places = match axes {
            Some(axes) => Some((axes, self.words(rows, 2, "places in images")?)),
            None => None,
        };
        Ok(ImageMemory {
            features: first,
            deep,
            axes: places,
        })
    }

    /// The states of each layer that has some, in as many blocks.
    fn states(&mut self, config: &Model, n_blocks: u32) -> Result<Vec<LayerStates>, EngineError> {
        let mut pool = |numbers: u32, label: &str| -> Result<StatePool, EngineError> {
            let bytes = size_of::<f32>() * numbers as usize * n_blocks as usize;
            let blocks = self.bytes(bytes, label)?;
            Ok(StatePool { blocks, n_blocks })
        };
        let layers = config.states().map(|size| {
            Ok(LayerStates {
                inputs: pool(size.inputs, "inputs of convolutions")?,
                memory: pool(size.memory, "states")?,
            })
        });
        layers.collect()
    }

    fn centres(
        &mut self,
        of_layers: &[Option<Vec<f32>>],
    ) -> Result<Vec<Option<Buffer>>, EngineError> {
        let centres = of_layers.iter().map(|centre| match centre {
            Some(centre) => self.floats(centre, "key centres").map(Some),
            None => Ok(None),
        });
        centres.collect()
    }

    /// One table of divisors for each kind of RoPE: those of each layer, and the buffers.
    fn divisors(
        &mut self,
        config: &Model,
        rope_freqs: &[f32],
    ) -> Result<(Vec<Slice>, Vec<Buffer>), EngineError> {
        let mut made: Vec<(Option<Rope>, u32, Buffer)> = Vec::new();
        let mut of_layers = Vec::with_capacity(config.layers.len());
        for attention in config.attention() {
            let is_alike = |(rope, head_dim, _): &&(Option<Rope>, u32, Buffer)| {
                (*rope, *head_dim) == (attention.rope, attention.head_dim)
            };
            let buffer = match made.iter().find(is_alike) {
                Some((.., buffer)) => *buffer,
                None => {
                    let buffer = self.floats(&divisors(attention, rope_freqs), "RoPE divisors")?;
                    made.push((attention.rope, attention.head_dim, buffer));
                    buffer
                }
            };
            of_layers.push(buffer.into());
        }
        let buffers = made.into_iter().map(|(.., buffer)| buffer);
        Ok((of_layers, buffers.collect()))
    }
}
