//! Parts that some files of an architecture have and others do not, or that the containers name differently.

use super::{Parts, in_layer};
use crate::layer::{Attention, HeadNorms, LayerNorms};

impl Parts<'_> {
    /// Attention with RoPE, with biases of q, k and v if the file has them.
    pub fn attention_with_biases_found(&self, at: usize) -> Attention {
        let plain = self.attention(at);
        match self.has(&in_layer(at, "attention.q.bias")) {
            true => plain.with_qkv_bias(),
            false => plain,
        }
    }

    /// Norms of the heads of queries and keys, if the file has them.
    pub fn head_norms_found(&self, at: usize) -> Option<HeadNorms> {
        let name = in_layer(at, "attention.q_norm.weight");
        self.has(&name).then(|| self.head_norms(at))
    }

    /// Norms of what the blocks read, where GGUF files name that of the feed-forward block `post_attention_norm`.
    pub fn input_norms_after_attention(&self, at: usize) -> LayerNorms {
        let of_ffn = match self.file.config() {
            Some(_) => "ffn_norm",
            None => "post_attention_norm",
        };
        self.input_norms_by(at, of_ffn)
    }

    fn has(&self, name: &str) -> bool {
        self.file.store.tensor(name).is_some()
    }
}
