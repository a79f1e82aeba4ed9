//! What is read of an encoder's file.

use std::path::PathBuf;

use akunu_arch::{ModelConfig, Pooling};
use akunu_program::DistanceBias;
use akunu_tokenizer::Tokenizer;

use crate::weights::Weights;

/// What a model file holds, once it is read: all that never changes.
pub(super) struct EncoderFile {
    pub path: PathBuf,
    pub config: ModelConfig,
    pub tokenizer: Tokenizer,
    pub pooling: Pooling,
    pub max_tokens: usize,
    pub weights: Weights,
    /// What attention adds to its scores, where the model has relative positions.
    pub distance_bias: Option<DistanceBias>,
    pub weight_bytes: u64,
}
