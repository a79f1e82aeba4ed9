//! What is read of an encoder's file.

use std::path::PathBuf;

use akunu_arch::{Model, Pooling};
use akunu_program::DistanceBias;
use akunu_tokenizer::Tokenizer;

use crate::weights::Bound;

/// What a model file holds, once it is read: all that never changes.
pub(super) struct EncoderFile {
    pub path: PathBuf,
    pub config: Model,
    pub tokenizer: Tokenizer,
    pub pooling: Pooling,
    pub max_tokens: usize,
    pub weights: Bound,
    /// What attention adds to its scores, where the model has relative positions.
    pub distance_bias: Option<DistanceBias>,
    pub weight_bytes: u64,
}

impl EncoderFile {
    /// The vector that the classifier reads.
    pub fn scored_vector(&self) -> Pooling {
        let classifier = self.config.classifier();
        classifier.map_or(self.pooling, |classifier| classifier.pooling)
    }
}
