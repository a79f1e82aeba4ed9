//! The norms around the blocks of a layer.

use super::{Parts, in_layer};
use crate::layer::{BlockNorms, LayerNorms, Norm, NormKind};
use crate::weights::NamedVector;

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

    /// Norms of what the blocks read, where files of Falcon-H1 name that of the feed-forward block without a suffix.
    pub(crate) fn input_norms_before_ff(&self, at: usize) -> LayerNorms {
        let norms = self.input_norms(at);
        let name = in_layer(at, "ffn_norm_alone");
        let alone = norms.ffn.input.clone().filter(|_| self.has(&name));
        let Some(norm) = alone else {
            return norms;
        };
        let weight = NamedVector {
            name,
            ..norm.weight
        };
        LayerNorms {
            ffn: BlockNorms {
                input: Some(Norm { weight, ..norm }),
                ..norms.ffn
            },
            ..norms
        }
    }

    /// Norms of the results of the blocks.
    pub fn output_norms(&self, at: usize) -> LayerNorms {
        let of = |name: &str| BlockNorms {
            output: Some(self.norm(in_layer(at, name))),
            ..BlockNorms::NONE
        };
        LayerNorms {
            mixer: of("post_attention_norm"),
            ffn: of("post_ffn_norm"),
        }
    }

    /// Norms of what the blocks read, and of what they give.
    pub fn sandwich_norms(&self, at: usize) -> LayerNorms {
        let (read, given) = (self.input_norms(at), self.output_norms(at));
        let both = |read, given: BlockNorms| BlockNorms {
            output: given.output,
            ..read
        };
        LayerNorms {
            mixer: both(read.mixer, given.mixer),
            ffn: both(read.ffn, given.ffn),
        }
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

    /// Norms of the inputs of the blocks, by mean and variance, with biases.
    pub fn input_layer_norms(&self, at: usize) -> LayerNorms {
        let of = |name: &str| BlockNorms {
            input: Some(self.layer_norm_in(at, name).with_bias()),
            ..BlockNorms::NONE
        };
        LayerNorms {
            mixer: of("attention_norm"),
            ffn: of("ffn_norm"),
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
