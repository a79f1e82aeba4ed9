//! The buffers of a speech model.

use akunu_arch::SpeechConfig;
use akunu_kernels::plan::Slice;
use akunu_kernels::program::LayerCache;
use akunu_kernels::{Buffer, Device, PageMap, StepMemory};
use akunu_types::KvFormat;
use akunu_types::params::{Row, SamplingRule};
use half::f16;

use crate::error::EngineError;
use crate::runtime::{PAGE, PAGE_SHIFT};

/// Outputs of a step that reads a prompt: the last token, and the first of a window.
const PROMPT_OUTPUTS: u32 = 2;

/// Everything that the programs read and write, besides the weights.
pub(super) struct Memory {
    /// Windows that there is room for.
    pub n_windows: u32,
    /// Outputs of a step, at most: those of a prompt, or one of each window.
    pub max_outputs: u32,
    /// All buffers, to be given back.
    made: Vec<Buffer>,
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
    /// The tokens that are never said, and how many there are.
    pub never_said: Buffer,
    pub n_never_said: u32,
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
        never_said: &[u32],
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let mut make = Make {
            device,
            made: Vec::new(),
        };
        let memory = make.memory(config, n_windows, never_said);
        if memory.is_err() {
            let made = std::mem::take(&mut make.made);
            made.into_iter()
                .for_each(|buffer| make.device.release(buffer));
        }
        memory
    }

    /// Gives all of it back.
    pub fn release(self, device: &mut dyn Device) {
        self.made
            .into_iter()
            .for_each(|buffer| device.release(buffer));
    }

    /// Where the keys or values across of a window lie.
    pub fn of_window(&self, config: &SpeechConfig, across: Buffer, window: u32) -> Slice {
        let numbers = (config.n_audio_positions * config.dim) as usize;
        Slice {
            buffer: across,
            offset: size_of::<f16>() * numbers * window as usize,
        }
    }
}

/// Makes buffers, and remembers them.
struct Make<'a> {
    device: &'a mut dyn Device,
    made: Vec<Buffer>,
}

impl Make<'_> {
    fn memory(
        &mut self,
        config: &SpeechConfig,
        n_windows: u32,
        never_said: &[u32],
    ) -> Result<Memory, EngineError> {
        let make = self;
        let (dim, n_audio) = (config.dim, config.n_audio_positions);
        let n_text = config.n_text_positions;
        let table_stride = n_text.div_ceil(PAGE as u32);
        let pages = PageMap {
            table: make.words(n_windows, table_stride, "page table")?,
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
                k: make.bytes(bytes, "keys")?,
                v: make.bytes(bytes, "values")?,
                pages,
            });
            cross.push(Cross {
                q: make.words(n_text, dim, "queries across")?,
                k: make.halves(n_windows * n_audio, dim, "keys across")?,
                v: make.halves(n_windows * n_audio, dim, "values across")?,
            });
        }
        let n_divisors = config.head_dim() / 2;
        let max_outputs = PROMPT_OUTPUTS.max(n_windows);
        let mut memory = Memory {
            n_windows,
            max_outputs,
            made: Vec::new(),
            audio_step: make.step(n_audio, 1)?,
            text_step: make.step(n_text, n_windows)?,
            audio: make.activations(config, n_audio)?,
            text: make.activations(config, n_text)?,
            spectrogram: make.words(2 * n_audio + 2, config.n_mels, "spectrogram")?,
            signal: make.words(2 * n_audio + 2, dim, "signal")?,
            cross,
            caches,
            pages,
            divisors: make.words(n_divisors, 1, "RoPE divisors")?,
            output: make.words(max_outputs, dim, "outputs")?,
            normalised_output: make.words(max_outputs, dim, "normalised outputs")?,
            logits: make.words(max_outputs, config.vocab_size, "logits")?,
            never_said: make.words(never_said.len() as u32, 1, "suppressed tokens")?,
            n_never_said: never_said.len() as u32,
        };
        let device = &mut *make.device;
        device.write(memory.never_said, 0, bytemuck::cast_slice(never_said))?;
        let divisors = vec![f32::INFINITY; n_divisors as usize];
        device.write(memory.divisors, 0, bytemuck::cast_slice(&divisors))?;
        memory.made = std::mem::take(&mut make.made);
        Ok(memory)
    }

    fn bytes(&mut self, bytes: usize, label: &str) -> Result<Buffer, EngineError> {
        let buffer = self.device.allocate(bytes, label)?;
        self.made.push(buffer);
        Ok(buffer)
    }

    /// A buffer of (rows, width) elements of 4 bytes.
    fn words(&mut self, rows: u32, width: u32, label: &str) -> Result<Buffer, EngineError> {
        self.bytes(4 * rows as usize * width as usize, label)
    }

    /// A buffer of (rows, width) halves.
    fn halves(&mut self, rows: u32, width: u32, label: &str) -> Result<Buffer, EngineError> {
        self.bytes(size_of::<f16>() * rows as usize * width as usize, label)
    }

    fn step(&mut self, rows: u32, n_sequences: u32) -> Result<StepMemory, EngineError> {
        let words = |bytes: usize| (bytes / 4) as u32;
        Ok(StepMemory {
            rows: self.words(rows, words(size_of::<Row>()), "rows")?,
            tokens: self.words(rows, 1, "tokens")?,
            outputs: self.words(rows, 1, "outputs")?,
            rules: self.words(n_sequences, words(size_of::<SamplingRule>()), "rules")?,
            history: self.words(n_sequences, 1, "history")?,
            chosen: self.words(1, rows, "chosen")?,
            row_capacity: rows,
            n_sequences,
            history_stride: 1,
            max_steps: 1,
        })
    }

    fn activations(
        &mut self,
        config: &SpeechConfig,
        rows: u32,
    ) -> Result<Activations, EngineError> {
        let dim = config.dim;
        Ok(Activations {
            h: self.words(rows, dim, "residual stream")?.into(),
            x: self.words(rows, dim, "normalised")?.into(),
            q: self.words(rows, dim, "q")?.into(),
            k: self.words(rows, dim, "k")?.into(),
            v: self.words(rows, dim, "v")?.into(),
            attention: self.words(rows, dim, "attention")?.into(),
            up: self.words(rows, config.ffn_dim, "feed-forward")?.into(),
        })
    }
}
