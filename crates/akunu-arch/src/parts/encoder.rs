//! The parts of encoders of BERT's kind.

use super::{Parts, TOKEN_EMBEDDING, in_layer, linear};
use crate::error::ArchError;
use crate::ffn::{Activation, Dense, DenseActivation, Gated};
use crate::file::Key;
use crate::layer::{Attention, BlockNorms, Layer, LayerNorms, Norm, NormKind};
use crate::linear::Linear;
use crate::model::{Classifier, ClassifierHead, Embedding, Model, Output, Pooling, Table};
use crate::weights::{NamedMatrix, NamedVector};

impl Parts<'_> {
    /// An encoder of these layers, whose blocks or embeddings normalise the result.
    pub fn encoder(
        &self,
        embedding: Embedding,
        layer: impl FnMut(usize) -> Layer,
        classifier: Option<Classifier>,
    ) -> Model {
        Model {
            arch: self.file.arch,
            dim: self.dim,
            vocab_size: self.vocab_size,
            context_length: self.context_length,
            long_rope: None,
            images: None,
            embedding,
            layers: (0..self.n_layers).map(layer).collect(),
            norm: None,
            output: Output::Texts(classifier),
            mtp: None,
        }
    }

    /// Tokens, and as far as the file has them, their kinds and their positions, of which the first is this entry. The sum
    /// is normalised.
    pub fn text_embedding(&self, first_position: u32, norm: Norm) -> Embedding {
        let table = |name: &str, first: u32| {
            let rows = self.file.rows(name);
            let entries = rows.checked_sub(first).filter(|&entries| entries > 0)?;
            Some(Table {
                weight: NamedVector::new(name, rows, self.dim),
                first,
                entries,
            })
        };
        Embedding {
            tokens: NamedMatrix::new(TOKEN_EMBEDDING, self.vocab_size, self.dim),
            scale: None,
            kinds: table("token_types.weight", 0),
            positions: table("position_embedding.weight", first_position),
            distances: None,
            norm: Some(norm),
            of_layers: None,
        }
    }

    /// Attention without RoPE and with all biases.
    pub fn biased_attention(&self, at: usize) -> Attention {
        let plain = self.attention(at).with_qkv_bias();
        Attention {
            output: plain.output.with_bias(),
            rope: None,
            ..plain
        }
    }

    /// Attention with RoPE and without biases, whose q, k and v are one tensor.
    pub fn fused_attention(&self, at: usize) -> Attention {
        let plain = self.attention(at);
        let (q_dim, kv_dim) = (plain.q_dim(), plain.kv_dim());
        let whole = linear(in_layer(at, "attention.qkv"), q_dim + 2 * kv_dim, self.dim);
        Attention {
            q: whole.part(0, q_dim),
            k: whole.part(q_dim, kv_dim),
            v: whole.part(q_dim + kv_dim, kv_dim),
            ..plain
        }
    }

    /// A feed-forward block without a gate and with all biases.
    pub fn biased_dense(&self, at: usize) -> Dense {
        let plain = self.dense(at, DenseActivation::GeluErf);
        Dense {
            up: plain.up.with_bias(),
            down: plain.down.with_bias(),
            ..plain
        }
    }

    /// A feed-forward block with a gate that is one tensor with the product beside it, the rows of the gate first.
    pub fn fused_gate(&self, at: usize, activation: Activation) -> Gated {
        let plain = self.gated(at, activation);
        let width = plain.width;
        let whole = linear(in_layer(at, "ffn.up"), 2 * width, self.dim);
        Gated {
            gate: whole.part(0, width),
            up: whole.part(width, width),
            ..plain
        }
    }

    /// Norms of the sums after both blocks, with biases.
    pub fn sum_norms(&self, at: usize) -> LayerNorms {
        let of = |name: &str| BlockNorms {
            sum: Some(self.layer_norm(in_layer(at, name)).with_bias()),
            ..BlockNorms::NONE
        };
        LayerNorms {
            mixer: of("attention_output_norm"),
            ffn: of("layer_output_norm"),
        }
    }

    /// A norm by mean and variance, without a bias.
    pub fn layer_norm(&self, module: impl AsRef<str>) -> Norm {
        Norm {
            kind: NormKind::Layer,
            ..self.norm(module)
        }
    }

    /// The norm of a module of a layer, by mean and variance, without a bias.
    pub fn layer_norm_in(&self, at: usize, module: &str) -> Norm {
        self.layer_norm(in_layer(at, module))
    }

    /// BERT's classifier, if the file has one: that of the first token.
    pub fn tanh_classifier(&self) -> Option<Classifier> {
        let labels = self.file.rows("classifier.weight");
        // A folder without the pooler is not whole; converters to GGUF leave it out for some models.
        let has_pooler = self.file.config().is_some() || self.file.rows("pooler.weight") > 0;
        let pooler = || ClassifierHead::Tanh(self.pooler().with_bias());
        (labels > 0).then(|| self.classifier(labels, Pooling::First, has_pooler.then(pooler)))
    }

    /// ModernBERT's classifier, if the file has one.
    pub fn gelu_classifier(&self) -> Result<Option<Classifier>, ArchError> {
        const ACTIVATION: &str = "classifier_activation";
        let labels = self.file.rows("classifier.weight");
        if labels == 0 {
            return Ok(None);
        }
        let config = self.file.config();
        if let Some(config) = config
            && let Some(found) = config.string(ACTIVATION)?.filter(|found| *found != "gelu")
        {
            return Err(self.file.unsupported(format!("`{ACTIVATION}` = `{found}`")));
        }
        let has_bias = match config {
            Some(config) => config.get("classifier_bias") == Some(&true.into()),
            None => self.file.rows("pooler.bias") > 0,
        };
        let pooler = match has_bias {
            true => self.pooler().with_bias(),
            false => self.pooler(),
        };
        let head = ClassifierHead::GeluNorm(pooler, self.layer_norm("pooler_norm"));
        Ok(Some(self.classifier(
            labels,
            self.classifier_pooling()?,
            Some(head),
        )))
    }

    /// The vector that ModernBERT's classifier reads. Where older GGUF files do not say, the mean is taken.
    fn classifier_pooling(&self) -> Result<Pooling, ArchError> {
        const KEY: &str = "classifier.pooling_type";
        const NAME: &str = "classifier_pooling";
        let Some(config) = self.file.config() else {
            return match self.file.u32(Key::new(&[KEY], &[]))? {
                None | Some(1) => Ok(Pooling::Mean),
                Some(2) => Ok(Pooling::First),
                Some(other) => {
                    let arch = self.file.arch;
                    Err(self.file.unsupported(format!("`{arch}.{KEY}` = {other}")))
                }
            };
        };
        match config.string(NAME)? {
            None | Some("cls") => Ok(Pooling::First),
            Some("mean") => Ok(Pooling::Mean),
            Some(other) => Err(self.file.unsupported(format!("`{NAME}` = `{other}`"))),
        }
    }

    fn classifier(
        &self,
        labels: u32,
        pooling: Pooling,
        head: Option<ClassifierHead>,
    ) -> Classifier {
        Classifier {
            labels,
            pooling,
            head,
            scores: linear("classifier".into(), labels, self.dim).with_bias(),
        }
    }

    fn pooler(&self) -> Linear {
        linear("pooler".into(), self.dim, self.dim)
    }
}

impl Linear {
    /// Some of its outputs.
    fn part(&self, first: u32, rows: u32) -> Linear {
        Linear {
            weight: self.weight.part(first, rows),
            bias: None,
        }
    }
}

impl Norm {
    /// The same norm with a bias.
    pub(crate) fn with_bias(self) -> Norm {
        let module = self.weight.name.trim_end_matches(".weight");
        let bias = NamedVector::new(format!("{module}.bias"), 1, self.weight.cols);
        Norm {
            bias: Some(bias),
            ..self
        }
    }
}
