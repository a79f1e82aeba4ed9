//! The buffers of a speech model.

use akunu_program::{
    Buffer, ChoiceMemory, Device, LayerCache, Op, PageMap, ScoreMemory, Slice, StepMemory,
};
use akunu_types::KvFormat;
use half::f16;

use super::rules::SpeechRules;
use super::weights::BoundSpeech;
use crate::buffers::{Buffers, Made};
use crate::builder::{
    AttentionMemory, Builder, CrossMemory, LayerMemory, MixerMemory, Scratch, SeenKeys, Signal,
    Spoken,
};
use crate::error::EngineError;
use crate::runtime::{PAGE, PAGE_SHIFT};

/// Tokens of a window that are chosen in one submission, at most.
pub(super) const MAX_CHAIN: u32 = 8;

/// Everything that the programs read and write, besides the weights.
pub(super) struct Memory {
    /// Windows that there is room for.
    pub n_windows: u32,
    /// All buffers, to be given back.
    made: Made,
    /// The rows of the encoder: one for each position.
    pub audio_step: StepMemory,
    /// The rows of the decoder.
    pub text_step: StepMemory,
    /// Scratch memory for the rows of the encoder.
    audio: Scratched,
    /// Scratch memory for the rows of the decoder.
    text: Scratched,
    pub signal: Signal,
    /// The memory of each layer of the decoder.
    pub layers: Vec<LayerMemory>,
    pub pages: PageMap,
    /// Residual streams of the outputs, (outputs, dim).
    pub output: Buffer,
    pub normalised_output: Buffer,
    /// (outputs, vocabulary).
    pub logits: Buffer,
    /// The tokens that may be said, [`SpeechRules::masks`].
    pub masks: Buffer,
    pub choice: ChoiceMemory,
    /// The log probabilities of the chosen tokens, of what may be said: (MAX_CHAIN, windows).
    pub scores: ScoreMemory,
}

/// Scratch memory for so many rows.
#[derive(Clone, Copy)]
struct Scratched {
    memory: Buffer,
    rows: u32,
}

impl Memory {
    pub fn allocate(
        model: &BoundSpeech,
        n_windows: u32,
        rules: &SpeechRules,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let make = |buffers: &mut Buffers| Memory::of(model, n_windows, rules, buffers);
        let (mut memory, made) = Buffers::make(device, make)?;
        memory.made = made;
        Ok(memory)
    }

    /// Gives all of it back.
    pub fn release(self, device: &mut dyn Device) {
        self.made.release(device);
    }

    /// A builder of the encoder's program.
    pub fn audio_builder(&self, model: &BoundSpeech) -> Builder<'_> {
        Builder::new(self.audio.scratch(), model.decoder.dim)
    }

    /// A builder of the decoder's programs.
    pub fn text_builder(&self, model: &BoundSpeech) -> Builder<'_> {
        Builder::new(self.text.scratch(), model.decoder.dim)
    }

    /// The memory of the choice of a token.
    pub fn spoken(&self) -> Spoken {
        Spoken {
            logits: self.logits.into(),
            masks: self.masks.into(),
            choice: self.choice,
            scores: self.scores,
        }
    }

    /// The attention across of each layer.
    pub fn cross(&self) -> impl Iterator<Item = &CrossMemory> {
        self.layers.iter().filter_map(|layer| layer.cross.as_ref())
    }

    /// Where the keys and values across of a window lie, for each layer.
    pub fn of_window(&self, model: &BoundSpeech, window: u32) -> Vec<[Slice; 2]> {
        let dim = model.decoder.dim;
        let place = |buffer: Buffer, n_keys: u32| Slice {
            buffer,
            offset: size_of::<f16>() * (n_keys * dim) as usize * window as usize,
        };
        let of_layer = |cross: &CrossMemory| [cross.k, cross.v].map(|b| place(b, cross.n_keys));
        self.cross().map(of_layer).collect()
    }

    /// The memory, of these buffers.
    fn of(
        model: &BoundSpeech,
        n_windows: u32,
        rules: &SpeechRules,
        buffers: &mut Buffers,
    ) -> Result<Memory, EngineError> {
        let (decoder, encoder) = (&model.decoder, &model.encoder);
        let (dim, n_audio) = (decoder.dim, encoder.n_positions);
        let (n_text, vocab_size) = (decoder.context_length, decoder.vocab_size);
        let table_stride = n_text.div_ceil(PAGE as u32);
        let pages = PageMap {
            table: buffers.words(n_windows, table_stride, "page table")?,
            table_stride,
            page_shift: PAGE_SHIFT,
            n_pages: n_windows * table_stride,
            n_sequences: n_windows,
            window: None,
        };
        let infinite = vec![f32::INFINITY; decoder.max_head_dim() as usize / 2];
        let divisors = buffers.floats(&infinite, "RoPE divisors")?;
        let mut layers = Vec::with_capacity(decoder.layers.len());
        for attention in decoder.attention() {
            let format = KvFormat::default();
            let bytes = attention.slot_bytes(format) * PAGE * pages.n_pages as usize;
            let cache = LayerCache {
                format,
                k: buffers.bytes(bytes, "keys")?,
                v: buffers.bytes(bytes, "values")?,
                pages,
            };
            let cross = CrossMemory {
                q: buffers.words(n_text, dim, "queries across")?,
                k: buffers.halves(n_windows * n_audio, dim, "keys across")?,
                v: buffers.halves(n_windows * n_audio, dim, "values across")?,
                n_keys: n_audio,
            };
            layers.push(LayerMemory {
                mixer: MixerMemory::Attention(AttentionMemory {
                    divisors: divisors.into(),
                    keys: SeenKeys::Pages {
                        cache,
                        centre: None,
                    },
                }),
                cross: Some(cross),
                router: None,
            });
        }
        let signal = Signal {
            spectrogram: buffers.words(2 * n_audio + 2, encoder.n_mels, "spectrogram")?,
            signal: buffers.words(2 * n_audio + 2, dim, "signal")?,
        };
        let logits = buffers.words(n_windows, vocab_size, "logits")?;
        let mut memory = Memory {
            n_windows,
            made: Made::default(),
            audio_step: buffers.step(n_audio, 1)?,
            text_step: buffers.chain_step(n_text, n_windows, (n_text, MAX_CHAIN))?,
            audio: Scratched {
                memory: logits,
                rows: n_audio,
            },
            text: Scratched {
                memory: logits,
                rows: n_text,
            },
            signal,
            layers,
            pages,
            output: buffers.words(n_windows, dim, "outputs")?,
            normalised_output: buffers.words(n_windows, dim, "normalised outputs")?,
            logits,
            masks: buffers.words(rules.masks.len() as u32, 1, "tokens that may be said")?,
            choice: choice_memory(n_windows, vocab_size, buffers)?,
            scores: ScoreMemory {
                logits,
                scores: buffers.words(MAX_CHAIN, n_windows, "log probabilities")?,
                best_tokens: buffers.words(0, 0, "best tokens")?,
                record_stride: n_windows,
                max_best: 0,
            },
        };
        let across = memory.of_window(model, 0);
        memory.audio.memory = made(n_audio, buffers, |scratch| {
            Builder::new(scratch, dim).listen(model, signal, &across);
        })?;
        memory.text.memory = made(n_text, buffers, |scratch| {
            Builder::new(scratch, dim).layers(decoder, &memory.layers);
        })?;
        let device = &mut *buffers.device;
        device.write(memory.masks, 0, bytemuck::cast_slice(&rules.masks))?;
        Ok(memory)
    }
}

impl Scratched {
    fn scratch(&self) -> Scratch {
        Scratch::new(self.memory, self.rows)
    }
}

/// The scratch memory of a program of so many rows, which `write` writes.
fn made(
    rows: u32,
    buffers: &mut Buffers,
    write: impl FnOnce(Scratch),
) -> Result<Buffer, EngineError> {
    let scratch = Scratch::measure();
    write(scratch.clone());
    buffers.bytes(scratch.row_bytes() * rows as usize, "scratch")
}

/// The memory of the choice of a token for each window, none of whose logits has a bias.
fn choice_memory(
    n_windows: u32,
    vocab_size: u32,
    buffers: &mut Buffers,
) -> Result<ChoiceMemory, EngineError> {
    let n = Op::candidates(vocab_size);
    Ok(ChoiceMemory {
        values: buffers.words(n_windows, n, "best of parts")?,
        ids: buffers.words(n_windows, n, "their tokens")?,
        bias_tokens: buffers.words(0, 0, "biased tokens")?,
        bias_values: buffers.words(0, 0, "biases")?,
        bias_stride: 0,
        breakers: buffers.words(n_windows, vocab_size.div_ceil(32), "breakers")?,
        mu: buffers.words(n_windows, 1, "mirostat")?,
    })
}
