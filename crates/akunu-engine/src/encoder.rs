//! Encoders: models that turn whole texts into vectors, or pairs of texts into scores.
//!
//! The rows of a step are the tokens of as many texts as fit, one after the other, of any lengths: nothing is
//! padded. A text sees only itself, so its vector does not depend on the other texts.
//!
//! ```no_run
//! use akunu_engine::{Encoder, EncoderText};
//! use akunu_kernels::twin_device::TwinDevice;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let encoder = Encoder::load("all-MiniLM-L6-v2", Box::new(TwinDevice::new()))?;
//! let cut = encoder.text("The weather is lovely today.")?;
//! let vectors = encoder.encode(&[cut.text])?;
//! assert_eq!(vectors[0].len(), encoder.config().dim as usize);
//! # Ok(())
//! # }
//! ```

mod cut;
mod file;
mod memory;
mod relative;
mod runtime;
mod text;

use std::path::Path;
use std::sync::Arc;

use akunu_arch::{EncoderUse, Model, Pooling};
use akunu_gguf::WeightStore;
use akunu_program::{Device, Program};
use akunu_tokenizer::Tokenizer;

use self::file::EncoderFile;
use self::runtime::Runtime;
use crate::error::EngineError;
use crate::loaded::read_text;
use crate::loading::Loading;
use crate::shared::Shared;
use crate::weights;

pub use self::text::{CutText, EncoderText};

/// An encoder whose weights are bound to a device. Clones are cheap and share everything.
///
/// ```no_run
/// use akunu_engine::{Encoder, EngineError};
/// # fn example(encoder: &Encoder) -> Result<(), akunu_engine::EngineError> {
/// let texts = ["a cat sleeps", "stock markets fell"];
/// let texts: Vec<_> = texts.iter().map(|text| Ok(encoder.text(text)?.text)).collect::<Result<_, EngineError>>()?;
/// let vectors = encoder.encode(&texts)?;
/// # drop(vectors);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Encoder {
    file: Arc<EncoderFile>,
    runtime: Arc<Shared<Runtime>>,
}

/// Whether a model is an encoder, from its description alone.
pub fn is_encoder(path: impl AsRef<Path>) -> Result<bool, EngineError> {
    let store = WeightStore::open(path.as_ref())?;
    Ok(Model::from_store(&store)?.is_encoder())
}

impl Encoder {
    /// Opens a GGUF file or a folder with safetensors and binds its weights to `device`.
    pub fn load(
        path: impl AsRef<Path>,
        mut device: Box<dyn Device>,
    ) -> Result<Encoder, EngineError> {
        let path = path.as_ref();
        let store = WeightStore::open(path)?;
        let config = Model::from_store(&store)?;
        let Some(EncoderUse {
            pooling,
            max_tokens,
            ..
        }) = EncoderUse::of(&store, &config)?
        else {
            let arch = config.arch;
            let path = path.to_path_buf();
            return Err(EngineError::NotAnEncoder { path, arch });
        };
        config.check_weights(&store, path)?;
        let (tokenizer, _) = read_text(&store)?;
        tokenizer.check_embedding_rows(config.vocab_size as usize)?;
        let loading = (path, &Loading::default());
        let weights = weights::bind(&store, &config, loading, device.as_mut())?;
        let distance_bias = relative::bind(&store, &config, path, device.as_mut())?;
        let file = Arc::new(EncoderFile {
            path: path.to_path_buf(),
            tokenizer,
            pooling,
            max_tokens,
            weights,
            distance_bias,
            weight_bytes: store.iter().map(|weight| weight.size() as u64).sum(),
            config,
        });
        let runtime = Runtime::new(Arc::clone(&file), device)?;
        Ok(Encoder {
            file,
            runtime: Arc::new(Shared::new(runtime)),
        })
    }

    /// The file or folder of the model.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// The shape of the model: layers, heads, dimensions and positions.
    pub fn config(&self) -> &Model {
        &self.file.config
    }

    /// The vocabulary of the model, which turns text into token ids.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.file.tokenizer
    }

    /// How the vectors of a text's tokens become one, as the model's own files say.
    pub fn pooling(&self) -> Pooling {
        self.file.pooling
    }

    /// The maximum number of tokens of a text, including the special tokens around it.
    pub fn max_tokens(&self) -> usize {
        self.file.max_tokens
    }

    /// Bytes of all weights.
    pub fn weight_bytes(&self) -> u64 {
        self.file.weight_bytes
    }

    /// The device's name, and what it runs on.
    pub fn device(&self) -> (&'static str, String) {
        self.with_runtime(|runtime| runtime.describe())
    }

    /// The pooled vector of each text, not scaled to length 1.
    pub fn encode(&self, texts: &[EncoderText]) -> Result<Vec<Vec<f32>>, EngineError> {
        self.with_runtime(|runtime| runtime.run(texts, runtime::Wanted::Vector))
    }

    /// The scores of each pair of texts, as the model's classifier gives them.
    pub fn score(&self, pairs: &[EncoderText]) -> Result<Vec<Vec<f32>>, EngineError> {
        if self.file.config.n_labels() == 0 {
            let path = self.file.path.clone();
            return Err(EngineError::NoClassifier { path });
        }
        self.with_runtime(|runtime| runtime.run(pairs, runtime::Wanted::Scores))
    }

    /// The program of a step with this many rows and texts.
    pub fn program(&self, rows: u32, texts: u32) -> Result<Program, EngineError> {
        self.with_runtime(|runtime| runtime.program(rows, texts))
    }

    fn with_runtime<T>(&self, work: impl FnOnce(&mut Runtime) -> T) -> T {
        let mut runtime = self.runtime.lock();
        work(&mut runtime)
    }
}
