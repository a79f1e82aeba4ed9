//! A whole model as data.

use akunu_types::KvFormat;

use crate::ffn::Ffn;
use crate::images::ImageInput;
use crate::layer::{Attention, Layer, Norm};
use crate::layer_embeddings::LayerEmbeddings;
use crate::linear::Linear;
use crate::long_rope::LongRope;
use crate::mtp::MtpBlock;
use crate::relative::RelativePositions;
use crate::state::StateSize;
use crate::weights::{NamedMatrix, NamedVector};

/// A decoder or an encoder: all that its programs are written from.
#[derive(Clone, Debug, PartialEq)]
pub struct Model<M = NamedMatrix, V = NamedVector> {
    /// The name of the architecture in GGUF's `general.architecture`.
    pub arch: &'static str,
    /// Width of the residual stream.
    pub dim: u32,
    /// Rows of the token embedding.
    pub vocab_size: u32,
    /// Positions that the model was trained for.
    pub context_length: u32,
    /// The factors of long-rope, which the positions of all layers have then.
    pub long_rope: Option<LongRope>,
    /// How images are read; `None` for a model that takes none.
    pub images: Option<ImageInput>,
    /// From tokens to the residual stream.
    pub embedding: Embedding<M, V>,
    /// The layers.
    pub layers: Vec<Layer<M, V>>,
    /// The norm of the last layer's result.
    pub norm: Option<Norm<V>>,
    /// The result.
    pub output: Output<M, V>,
    /// The block that guesses further tokens, if the file has one.
    pub mtp: Option<MtpBlock<M, V>>,
}

/// From tokens to the residual stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding<M = NamedMatrix, V = NamedVector> {
    /// (vocabulary, dim).
    pub tokens: M,
    /// Factor of the embeddings.
    pub scale: Option<f32>,
    /// A vector for each kind of token: BERT's token types.
    pub kinds: Option<Table<V>>,
    /// A vector for each position.
    pub positions: Option<Table<V>>,
    /// Biases of the attention scores of all layers, by the distance of query and key.
    pub distances: Option<Distances<V>>,
    /// The norm of the sum.
    pub norm: Option<Norm<V>>,
    /// Further embeddings of each token, one for each layer.
    pub of_layers: Option<LayerEmbeddings<M, V>>,
}

/// Learned vectors that are added to embeddings.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<V = NamedVector> {
    /// (first + entries, dim).
    pub weight: V,
    /// The entry of the first position. Those before it are not used.
    pub first: u32,
    /// Entries from there on.
    pub entries: u32,
}

/// Learned biases of the attention scores by distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances<V = NamedVector> {
    /// How distances are divided into buckets.
    pub buckets: RelativePositions,
    /// (buckets, heads).
    pub weight: V,
}

/// The result of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<M = NamedMatrix, V = NamedVector> {
    /// Logits of the next token: the model is a decoder, whose tokens see those before them.
    Logits(Logits<M>),
    /// A vector for each text, and scores if it was trained for them: the model is an encoder, whose tokens see all of
    /// their text.
    Texts(Option<Classifier<M, V>>),
}

/// Logits of the next token.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits<M = NamedMatrix> {
    /// (vocabulary, dim).
    pub weight: M,
    /// Whether that is the token embedding.
    pub is_tied: bool,
    /// Factor of the logits.
    pub scale: Option<f32>,
    /// Cap of the logits.
    pub softcap: Option<f32>,
}

/// Scores of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifier<M = NamedMatrix, V = NamedVector> {
    /// Number of scores.
    pub labels: u32,
    /// The vector that it reads.
    pub pooling: Pooling,
    /// What comes before the scores. Converters to GGUF leave BERT's out for some.
    pub head: Option<ClassifierHead<M, V>>,
    /// The scores.
    pub scores: Linear<M, V>,
}

/// What the head of a classifier makes of the vector of a text before it scores it.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassifierHead<M = NamedMatrix, V = NamedVector> {
    /// `tanh(W v + b)`: BERT's pooler.
    Tanh(Linear<M, V>),
    /// `norm(gelu(W v))`, by the error function, with or without a bias in the product.
    GeluNorm(Linear<M, V>, Norm<V>),
}

impl<M, V> Model<M, V> {
    /// Whether it turns texts into vectors instead of predicting tokens.
    pub fn is_encoder(&self) -> bool {
        matches!(self.output, Output::Texts(_))
    }

    /// Whether the positions of images have three axes.
    pub fn has_axes(&self) -> bool {
        self.images.is_some_and(|images| images.axes.is_some())
    }

    /// The attention of each layer that has it, and that of the block for multi-token prediction.
    pub fn attention(&self) -> impl Iterator<Item = &Attention<M, V>> {
        let mtp = self.mtp.iter().map(|mtp| &mtp.layer);
        let mixers = self.layers.iter().chain(mtp).map(|layer| &layer.mixer);
        mixers.filter_map(|mixer| mixer.attention())
    }

    /// The attention of each layer that stores keys and values.
    pub fn cached_attention(&self) -> impl Iterator<Item = &Attention<M, V>> {
        self.attention()
            .filter(|attention| attention.keys_of.is_none())
    }

    /// The size of a sequence's state in each layer that has one, and in the block for multi-token prediction.
    pub fn states(&self) -> impl Iterator<Item = StateSize> {
        let mixers = self.layers.iter().map(|layer| &layer.mixer);
        let mtp = self.mtp.iter().map(MtpBlock::state);
        mixers.filter_map(|mixer| mixer.state()).chain(mtp)
    }

    /// Bytes of a sequence's state; 0 for a model without one.
    pub fn state_bytes(&self) -> u64 {
        let numbers = self.states().map(StateSize::numbers);
        numbers.sum::<u64>() * size_of::<f32>() as u64
    }

    /// Whether some layer has a router.
    pub fn has_experts(&self) -> bool {
        let mtp = self.mtp.iter().map(|mtp| &mtp.layer);
        let mut layers = self.layers.iter().chain(mtp);
        layers.any(|layer| matches!(layer.ffn, Ffn::Experts(_)))
    }

    /// The window of each layer that has attention.
    pub fn windows(&self) -> impl Iterator<Item = Option<u32>> {
        self.attention().map(|attention| attention.window)
    }

    /// Elements of the largest head.
    pub fn max_head_dim(&self) -> u32 {
        let sizes = self.attention().map(|attention| attention.head_dim);
        sizes.max().unwrap_or(0)
    }

    /// The head of a classifier, if it was trained for one.
    pub fn classifier(&self) -> Option<&Classifier<M, V>> {
        match &self.output {
            Output::Logits(_) => None,
            Output::Texts(classifier) => classifier.as_ref(),
        }
    }

    /// Scores that it gives for a text, 0 for a model without a classifier.
    pub fn n_labels(&self) -> u32 {
        self.classifier().map_or(0, |classifier| classifier.labels)
    }

    /// Bytes of keys and values that a token reads when there are `n_positions` of them: a layer with a window reads no more
    /// than its window.
    pub fn kv_bytes_read(&self, n_positions: u32, format: KvFormat) -> u64 {
        let of_layer = |attention: &Attention<M, V>| {
            let seen = attention.window.unwrap_or(u32::MAX).min(n_positions);
            2 * attention.slot_bytes(format) as u64 * u64::from(seen)
        };
        let mixers = self.layers.iter().map(|layer| &layer.mixer);
        let attention = mixers.filter_map(|mixer| mixer.attention());
        attention.map(of_layer).sum()
    }
}

impl<M, V> Attention<M, V> {
    /// Bytes of the keys, or of the values, of a token.
    pub fn slot_bytes(&self, format: KvFormat) -> usize {
        self.kv_heads as usize * format.bytes_per_slot(self.head_dim)
    }
}

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all of them.
    #[default]
    Mean,
    /// That of the first token.
    First,
    /// That of the last token.
    Last,
}

impl Pooling {
    /// The common name.
    pub fn name(self) -> &'static str {
        match self {
            Pooling::Mean => "mean",
            Pooling::First => "cls",
            Pooling::Last => "last",
        }
    }
}
