//! The buffers of a speech model.

use akunu_arch::SpeechConfig;
use akunu_program::{
    Buffer, ChoiceMemory, Device, LayerCache, Op, PageMap, ScoreMemory, Slice, StepMemory,
};
use akunu_types::KvFormat;
use half::f16;

use super::rules::SpeechRules;
use crate::buffers::{Buffers, Made};
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
    pub audio: Activations,
    pub text: Activations,
    /// A frame of zeros, the frames of a window, (2 * n_audio_positions, n_mels), and zeros.
    pub spectrogram: Buffer,
    /// The same after the first convolution, (2 * n_audio_positions, dim).
    pub signal: Buffer,
    /// What each layer of the decoder looks at.
    pub cross: Vec<Cross>,
    /// Keys and values of what was said.
    pub caches: Vec<LayerCache>,
    pub pages: PageMap,
    /// RoPE's divisors, (head_dim / 2), all of them infinite.
    pub divisors: Buffer,
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

/// Scratch memory for the rows of a stack; every layer uses it again.
pub(super) struct Activations {
    /// The residual stream, (rows, dim).
    pub h: Slice,
    /// The same, normalised.
    pub x: Slice,
    pub q: Slice,
    pub k: Slice,
    pub v: Slice,
    pub attention: Slice,
    /// (rows, ffn_dim).
    pub up: Slice,
}

/// Cross-attention of one layer. Every layer has queries of its own, which tell when a token was spoken.
pub(super) struct Cross {
    /// (rows, dim).
    pub q: Buffer,
    /// (windows, n_audio_positions, dim), of f16.
    pub k: Buffer,
    pub v: Buffer,
}

impl Memory {
    pub fn allocate(
        config: &SpeechConfig,
        n_windows: u32,
        rules: &SpeechRules,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let make = |buffers: &mut Buffers| Memory::of(config, n_windows, rules, buffers);
        let (mut memory, made) = Buffers::make(device, make)?;
        memory.made = made;
        Ok(memory)
    }

    /// Gives all of it back.
    pub fn release(self, device: &mut dyn Device) {
        self.made.release(device);
    }

    /// Where the keys or values across of a window lie.
    pub fn of_window(&self, config: &SpeechConfig, across: Buffer, window: u32) -> Slice {
        let numbers = (config.n_audio_positions * config.dim) as usize;
        Slice {
            buffer: across,
            offset: size_of::<f16>() * numbers * window as usize,
        }
    }

    /// The memory, of these buffers.
    fn of(
        config: &SpeechConfig,
        n_windows: u32,
        rules: &SpeechRules,
        buffers: &mut Buffers,
    ) -> Result<Memory, EngineError> {
        let (dim, n_audio) = (config.dim, config.n_audio_positions);
        let n_text = config.n_text_positions;
        let table_stride = n_text.div_ceil(PAGE as u32);
        let pages = PageMap {
            table: buffers.words(n_windows, table_stride, "page table")?,
            table_stride,
            page_shift: PAGE_SHIFT,
            n_pages: n_windows * table_stride,
            n_sequences: n_windows,
            window: None,
        };
        let slot = config.n_heads as usize * KvFormat::default().bytes_per_slot(config.head_dim());
        let mut caches = Vec::new();
        let mut cross = Vec::new();
        for _ in 0..config.n_decoder_layers {
            let bytes = slot * PAGE * pages.n_pages as usize;
            caches.push(LayerCache {
                format: KvFormat::default(),
                k: buffers.bytes(bytes, "keys")?,
                v: buffers.bytes(bytes, "values")?,
                pages,
            });
            cross.push(Cross {
                q: buffers.words(n_text, dim, "queries across")?,
                k: buffers.halves(n_windows * n_audio, dim, "keys across")?,
                v: buffers.halves(n_windows * n_audio, dim, "values across")?,
            });
        }
        let n_divisors = config.head_dim() / 2;
        let vocab_size = config.vocab_size;
        let logits = buffers.words(n_windows, vocab_size, "logits")?;
        let memory = Memory {
            n_windows,
            made: Made::default(),
            audio_step: buffers.step(n_audio, 1)?,
            text_step: buffers.chain_step(n_text, n_windows, (n_text, MAX_CHAIN))?,
            audio: Activations::of(config, n_audio, buffers)?,
            text: Activations::of(config, n_text, buffers)?,
            spectrogram: buffers.words(2 * n_audio + 2, config.n_mels, "spectrogram")?,
            signal: buffers.words(2 * n_audio + 2, dim, "signal")?,
            cross,
            caches,
            pages,
            divisors: buffers.words(n_divisors, 1, "RoPE divisors")?,
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
        let device = &mut *buffers.device;
        device.write(memory.masks, 0, bytemuck::cast_slice(&rules.masks))?;
        let divisors = vec![f32::INFINITY; n_divisors as usize];
        device.write(memory.divisors, 0, bytemuck::cast_slice(&divisors))?;
        Ok(memory)
    }
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

impl Activations {
    fn of(
        config: &SpeechConfig,
        rows: u32,
        buffers: &mut Buffers,
    ) -> Result<Activations, EngineError> {
        let dim = config.dim;
        Ok(Activations {
            h: buffers.words(rows, dim, "residual stream")?.into(),
            x: buffers.words(rows, dim, "normalised")?.into(),
            q: buffers.words(rows, dim, "q")?.into(),
            k: buffers.words(rows, dim, "k")?.into(),
            v: buffers.words(rows, dim, "v")?.into(),
            attention: buffers.words(rows, dim, "attention")?.into(),
            up: buffers.words(rows, config.ffn_dim, "feed-forward")?.into(),
        })
    }
}
