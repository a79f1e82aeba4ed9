//! Speech to text.
//!
//! A window of 30 s is encoded once ([`SpeechModel::listen`]); then tokens are decoded, any number of times
//! ([`SpeechModel::say`]), several in one submission (`chain`). `segments` cuts them into pieces with times, `words` finds
//! when each word was spoken.

mod align;
mod chain;
mod decode;
mod memory;
mod rules;
mod runtime;
mod segments;
mod tokens;
mod weights;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use akunu_arch::Speech;
use akunu_gguf::SpeechFolder;
use akunu_program::{Choose, Device, Program};
use akunu_tokenizer::Tokenizer;

use self::rules::SpeechRules;
use self::runtime::{Kind, Runtime};
use crate::error::EngineError;

pub use self::decode::{Decoded, Opened, SpeechPrompt, SpeechTask};
pub use self::segments::{WINDOW_SECONDS, WindowSegment, WindowSegments, cut, cut_all};
pub use self::tokens::SpeechTokens;
pub use self::words::Word;

/// Whether a model turns speech into text.
pub fn is_speech(path: impl AsRef<Path>) -> bool {
    SpeechFolder::is_at(path.as_ref())
}

/// A speech model whose weights are bound to a device.
///
/// ```no_run
/// use akunu_cpu::{CpuDevice, CpuOptions};
/// use akunu_engine::speech::SpeechModel;
///
/// let device = Box::new(CpuDevice::new(CpuOptions::default())?);
/// let model = SpeechModel::load("speech-model", device)?;
/// println!("{} tokens", model.tokenizer().vocab_size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SpeechModel {
    path: PathBuf,
    config: Speech,
    tokens: SpeechTokens,
    tokenizer: Arc<Tokenizer>,
    runtime: Runtime,
}

impl SpeechModel {
    /// Opens a folder of CTranslate2 or of Hugging Face, and binds its weights to `device`.
    pub fn load(
        path: impl AsRef<Path>,
        mut device: Box<dyn Device>,
    ) -> Result<SpeechModel, EngineError> {
        let path = path.as_ref();
        let folder = SpeechFolder::open(path).map_err(akunu_arch::ArchError::from)?;
        let config = Speech::from_folder(&folder)?;
        let vocab_size = config.decoder.vocab_size;
        let tokenizer = Tokenizer::from_file(path.join("tokenizer.json"))?;
        let tokens = SpeechTokens::find(&tokenizer, vocab_size, path)?;
        let bound = weights::bind(&folder, &config, device.as_mut())?;
        Ok(SpeechModel {
            path: path.to_path_buf(),
            runtime: {
                let rules = SpeechRules::new(&config, &tokens);
                Runtime::new(bound, rules, device)?
            },
            config,
            tokens,
            tokenizer: Arc::new(tokenizer),
        })
    }

    /// The shape of the model: layers, dimensions, mel filters and positions.
    pub fn config(&self) -> &Speech {
        &self.config
    }

    /// Its tokens that are not text: timestamps, languages, tasks.
    pub fn tokens(&self) -> &SpeechTokens {
        &self.tokens
    }

    /// The vocabulary of the model, which turns token ids into text.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Frames of a window: 30 s.
    pub fn n_frames(&self) -> usize {
        2 * self.config.encoder.n_positions as usize
    }

    /// Makes room for as many windows, so that they can be decoded together ([`SpeechModel::say_all`]). What was heard before
    /// is forgotten where there was room for fewer.
    pub fn make_room(&mut self, n_windows: u32) -> Result<(), EngineError> {
        self.runtime.make_room(n_windows)
    }

    /// Encodes a window, given as its log-mel spectrogram, ([`SpeechModel::n_frames`], `n_mels`), the first and usually the
    /// only one.
    pub fn listen(&mut self, spectrogram: &[f32]) -> Result<(), EngineError> {
        self.listen_to(0, spectrogram)
    }

    /// Encodes a window as one of those that there is room for.
    pub fn listen_to(&mut self, window: u32, spectrogram: &[f32]) -> Result<(), EngineError> {
        let (found, wanted) = (
            spectrogram.len(),
            self.n_frames() * self.config.encoder.n_mels as usize,
        );
        if found != wanted {
            return Err(EngineError::NotSpeech {
                path: self.path.clone(),
                why: format!("a window has {wanted} numbers, not {found}"),
            });
        }
        self.make_room(window + 1)?;
        self.runtime.listen(window, spectrogram)
    }

    /// The programs of the encoder, for a window, and of the decoder, for a round of a chain.
    pub fn programs(&self) -> [Program; 2] {
        [
            self.runtime.encoder_program(0),
            self.runtime.decoder_program(1, Kind::Chain(Choose::Best)),
        ]
    }
}
