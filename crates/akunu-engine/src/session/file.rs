//! The file of a saved session.
//!
//! ```text
//! magic, version                  8 + 4 bytes; all numbers are little-endian
//! fingerprint of the model        32
//! n_tokens, n_cached, has_logits  4 each
//! the tokens                      4 * n_tokens
//! for each layer: k, then v       (n_kv_heads, positions, head_dim) in f16, the last positions of
//!                                 n_cached: all of them, or the window
//! the logits, if has_logits       4 * vocab_size
//! ```
//!
//! The length of a file follows from its header and the model, and is checked before anything is
//! allocated.

use std::path::Path;

use akunu_arch::{LayerConfig, ModelConfig};
use akunu_kernels::DeviceError;

use crate::error::EngineError;

/// What a file begins with. The line feed shows files that were sent as text.
const MAGIC: [u8; 8] = *b"akunuKV\n";
const VERSION: u32 = 1;

/// Why a saved session cannot be written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedSessionError {
    /// The file system refused.
    #[error("the session cannot be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Some other file.
    #[error("this is not a saved session")]
    Foreign,
    /// A file of another version of this program.
    #[error("this session has format version {found}, and {VERSION} is wanted; save it anew")]
    Version {
        /// The version.
        found: u32,
    },
    /// The session belongs to another model.
    #[error("this session was saved with another model; load that one first")]
    OtherModel,
    /// More tokens than this session's context holds.
    #[error(
        "this session has {needed} tokens, which do not fit a context of {context}; make the context \
         larger"
    )]
    TooLong {
        /// Tokens that the cache must hold.
        needed: u32,
        /// What it holds.
        context: u32,
    },
    /// A file that was cut off or changed.
    #[error("this session is damaged: {why}")]
    Damaged {
        /// What does not fit.
        why: String,
    },
}

impl SavedSessionError {
    /// The same with the file that it is about.
    pub(super) fn of(self, path: &Path) -> EngineError {
        EngineError::SavedSession {
            path: path.to_path_buf(),
            error: self,
        }
    }
}

/// The beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub fingerprint: [u8; 32],
    pub n_tokens: u32,
    pub n_cached: u32,
    pub has_logits: bool,
}

impl Header {
    pub const BYTES: usize = 8 + 4 + 32 + 3 * 4;

    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.fingerprint);
        for number in [self.n_tokens, self.n_cached, self.has_logits.into()] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    /// Reads the header of a file of `len` bytes that is for `model`.
    pub fn parse(
        bytes: &[u8; Header::BYTES],
        len: u64,
        fingerprint: &[u8; 32],
        model: &ModelConfig,
    ) -> Result<Header, SavedSessionError> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[..8] != MAGIC {
            return Err(SavedSessionError::Foreign);
        }
        if word(8) != VERSION {
            return Err(SavedSessionError::Version { found: word(8) });
        }
        if bytes[12..44] != *fingerprint {
            return Err(SavedSessionError::OtherModel);
        }
        let header = Header {
            fingerprint: *fingerprint,
            n_tokens: word(44),
            n_cached: word(48),
            has_logits: word(52) == 1,
        };
        header.check(word(52), len, model)?;
        Ok(header)
    }

    fn check(&self, flag: u32, len: u64, model: &ModelConfig) -> Result<(), SavedSessionError> {
        let damaged = |why: String| Err(SavedSessionError::Damaged { why });
        let (n_tokens, n_cached) = (self.n_tokens, self.n_cached);
        if n_cached > n_tokens {
            return damaged(format!("it has {n_cached} keys for {n_tokens} tokens"));
        }
        if flag > 1 || self.has_logits && (n_tokens == 0 || n_cached < n_tokens) {
            return damaged("it has logits of tokens that it has not".into());
        }
        let wanted = self.file_bytes(model);
        if len != wanted {
            return damaged(format!("it has {len} bytes where {wanted} are wanted"));
        }
        Ok(())
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self, model: &ModelConfig) -> u64 {
        let position = 2 * 2 * u64::from(model.kv_dim());
        let layers = model.layers.iter();
        let positions: u64 = layers.map(|layer| u64::from(self.n_positions(layer))).sum();
        let logits = if self.has_logits { model.vocab_size } else { 0 };
        Header::BYTES as u64
            + 4 * (u64::from(self.n_tokens) + u64::from(logits))
            + position * positions
    }

    /// How many of the last positions of a layer are stored.
    pub fn n_positions(&self, layer: &LayerConfig) -> u32 {
        let window = layer.window.unwrap_or(u32::MAX);
        self.n_cached.min(window)
    }
}
