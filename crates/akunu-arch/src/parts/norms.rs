//! The norms around the blocks of a layer.

use super::{Parts, in_layer};
use crate::layer::{BlockNorms, LayerNorms, Norm, NormKind};

impl Parts<'_> {
    /// Norms of what the blocks read.
    pub fn input_norms(&self, at: usize) -> LayerNorms {
        self.input_norms_by(at, "ffn_norm")
    }

    /// The same, where the one of the feed-forward block has this name.
    fn input_norms_by(&self, at: usize, ffn_norm: &str) -> LayerNorms {
        let of = |name: &str| BlockNorms {
            input: Some(self.norm(in_layer(at, name))),
            ..BlockNorms::NONE
        };
        LayerNorms {
            mixer: of("attention_norm"),
            ffn: of(ffn_norm),
        }
    }

    /// Norms of what the blocks read, and of what they give.
    pub fn sandwich_norms(&self, at: usize) -> LayerNorms {
        let LayerNorms { mut mixer, mut ffn } = self.input_norms(at);
        mixer.output = Some(self.norm(in_layer(at, "post_attention_norm")));
        ffn.output = Some(self.norm(in_layer(at, "post_ffn_norm")));
        LayerNorms { mixer, ffn }
    }

    /// The same, where GGUF files name that of the feed-forward block `post_attention_norm`.
    pub fn input_norms_after_attention(&self, at: usize) -> LayerNorms {
        let of_ffn = match self.file.config() {
            Some(_) => "ffn_norm",
            None => "post_attention_norm",
        };
        self.input_norms_by(at, of_ffn)
    }

    /// The input norm of a layer with a single block.
    pub fn only_norm(&self, at: usize) -> BlockNorms {
        BlockNorms {
            input: Some(self.norm(in_layer(at, "attention_norm"))),
            ..BlockNorms::NONE
        }
    }

    /// A norm of what both blocks read.
    pub fn parallel_norms(&self, at: usize, kind: NormKind) -> LayerNorms {
        let norm = Norm {
            kind,
            ..self.norm(in_layer(at, "attention_norm"))
        };
        LayerNorms {
            mixer: BlockNorms {
                input: Some(norm),
                ..BlockNorms::NONE
            },
            ffn: BlockNorms::NONE,
        }
    }
}
