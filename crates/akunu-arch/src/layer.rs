//! One layer as data: what it computes, and its weights.
//!
//! ```text
//! h += output norm( mixer( input norm(h) ) );  h = sum norm(h)
//! h += output norm( ffn  ( input norm(h) ) );  h = sum norm(h)
//! ```
//!
//! Every norm may be missing. Blocks that are parallel read the same, `input norm(h)` of the mixer. The parameters `M` and `V` say what a matrix and a vector of weights is: a name and a shape
//! ([`NamedMatrix`], [`NamedVector`]) in a description, a place on a device once the weights are bound.

use crate::ffn::{Dense, Ffn};
use crate::latent::Latent;
use crate::layer_embeddings::LayerInput;
use crate::linear::Linear;
pub use crate::norm::{Norm, NormKind};
use crate::rope::Rope;
use crate::state::{DeltaNet, ShortConv, Ssd, StateSize};
use crate::weights::{NamedMatrix, NamedVector};
use std::fmt;

/// Numbers of a head, at most: attention to rows of texts takes no more.
pub(crate) const MAX_HEAD_LENGTH: u32 = 256;
/// The same in decoders.
pub(crate) const MAX_DECODER_HEAD_LENGTH: u32 = 576;

/// A layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer<M = NamedMatrix, V = NamedVector> {
    /// The block that lets a token see others.
    pub mixer: Mixer<M, V>,
    /// Attention to the result of an encoder, between the two blocks.
    pub cross: Option<Cross<M, V>>,
    /// The feed-forward block.
    pub ffn: Ffn<M, V>,
    /// The norms around both blocks.
    pub norms: LayerNorms<V>,
    /// Whether the feed-forward block reads what the mixer reads, and both results are added to the residual stream.
    pub is_parallel: bool,
    /// The block that reads the token's embedding for this layer.
    pub input: Option<LayerInput<M, V>>,
    /// Factor of the residual stream after both blocks.
    pub scale: Option<f32>,
}

/// The block that lets a token see others.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer<M = NamedMatrix, V = NamedVector> {
    /// None: the layer has only a feed-forward block.
    None,
    /// Softmax attention.
    Attention(Attention<M, V>),
    /// A convolution over the last tokens.
    ShortConv(ShortConv<M, V>),
    /// The gated delta rule.
    DeltaNet(DeltaNet<M, V>),
    /// Mamba-2.
    Ssd(Ssd<M, V>),
    /// Softmax attention and Mamba-2, which read the same and whose results are added.
    Both(Box<Both<M, V>>),
}

/// Softmax attention and Mamba-2 side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Both<M = NamedMatrix, V = NamedVector> {
    /// Softmax attention.
    pub attention: Attention<M, V>,
    /// Mamba-2.
    pub ssd: Ssd<M, V>,
}

impl<M, V> Mixer<M, V> {
    /// Softmax attention, if it has that.
    pub fn attention(&self) -> Option<&Attention<M, V>> {
        match self {
            Mixer::Attention(attention) => Some(attention),
            Mixer::Both(both) => Some(&both.attention),
            Mixer::None | Mixer::ShortConv(_) | Mixer::DeltaNet(_) | Mixer::Ssd(_) => None,
        }
    }

    /// The size of a sequence's state, if it has one.
    pub fn state(&self) -> Option<StateSize> {
        match self {
            Mixer::None | Mixer::Attention(_) => None,
            Mixer::ShortConv(conv) => Some(conv.state()),
            Mixer::DeltaNet(net) => Some(net.state()),
            Mixer::Ssd(mamba) => Some(mamba.state()),
            Mixer::Both(both) => Some(both.ssd.state()),
        }
    }

    /// All products, in the order of use.
    fn linears(&self) -> Vec<&Linear<M, V>> {
        match self {
            Mixer::None => Vec::new(),
            Mixer::Attention(attention) => attention.linears(),
            Mixer::ShortConv(conv) => conv.linears(),
            Mixer::DeltaNet(net) => net.linears(),
            Mixer::Ssd(mamba) => mamba.linears(),
            Mixer::Both(both) => {
                let mut all = both.attention.linears().to_vec();
                all.extend(both.ssd.linears());
                all
            }
        }
    }
}

/// Softmax attention.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention<M = NamedMatrix, V = NamedVector> {
    /// Query heads, a multiple of the others.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// The earlier layer whose keys and values this one reads, for a layer that stores none. `k`, `v` and the norm and positions of keys
    /// are those of that layer.
    pub keys_of: Option<usize>,
    /// Keys and values of heads that are products of one vector. Then there is one key head, `head_dim` is that of the stored keys,
    /// `q` has heads of [`Latent::query_dim`], `k` has the elements of keys that turn, and `v` is not used.
    pub latent: Option<Latent<M, V>>,
    /// Queries, keys, values. Behind each head of the queries lies that of the gate, if there is one.
    pub q: Linear<M, V>,
    /// See `q`.
    pub k: Linear<M, V>,
    /// See `q`.
    pub v: Linear<M, V>,
    /// Whether the result is multiplied by the sigmoid of a gate, which `q` has.
    pub has_gate: bool,
    /// The product of a separate gate; the result is multiplied by its sigmoid.
    pub gate: Option<Linear<M, V>>,
    /// The product of the result.
    pub output: Linear<M, V>,
    /// Norms of single heads.
    pub qk_norm: Option<HeadNorms<V>>,
    /// Norms of all queries and all keys of a token, before they turn.
    pub row_norm: Option<RowNorms<V>>,
    /// Values are divided by the root mean square of their head, under whose root this is added.
    pub value_eps: Option<f32>,
    /// Rotary positions.
    pub rope: Option<Rope>,
    /// Number of keys that a query sees, itself included; `None` for all. Half of those of an encoder lie on either side,
    /// besides the query's own.
    pub window: Option<u32>,
    /// Factor of the scores.
    pub scale: f32,
    /// A factor of the scores that grows with the position.
    pub temperature: Option<Temperature>,
    /// Cap of the scores.
    pub softcap: Option<f32>,
    /// Sinks: a score of each head that has no value and takes its share of the weights, (heads).
    pub sinks: Option<V>,
}

/// The temperature of attention: scores are multiplied by `1 + scale * ln(1 + position / period)`, where the division is that of whole
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature {
    /// How much the factor grows.
    pub scale: f32,
    /// Positions with the same factor.
    pub period: u32,
}

impl<M, V> Attention<M, V> {
    /// Elements of the queries of a token.
    pub fn q_dim(&self) -> u32 {
        self.heads * self.head_dim
    }

    /// Elements of a head that turn, from its first on.
    pub fn turned_dim(&self) -> u32 {
        let turned = self.rope.and_then(|rope| rope.turned_dim);
        turned.unwrap_or(self.head_dim)
    }

    /// Elements of the keys, or of the values, of a token.
    pub fn kv_dim(&self) -> u32 {
        self.kv_heads * self.head_dim
    }
}

/// Norms of single heads of queries and keys, of their root mean square.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadNorms<V = NamedVector> {
    /// Weights for queries, (head_dim).
    pub q: V,
    /// Weights for keys, (head_dim).
    pub k: V,
    /// Added under the root.
    pub eps: f32,
    /// Whether heads turn before they are multiplied by the weights. Then those of queries have those of keys in them, which
    /// are stored without.
    pub turn_first: bool,
}

/// Norms of all heads of queries and of keys together.
#[derive(Clone, Debug, PartialEq)]
pub struct RowNorms<V = NamedVector> {
    /// Of queries, (heads * head_dim).
    pub q: Norm<V>,
    /// Of keys, (kv_heads * head_dim).
    pub k: Norm<V>,
}

/// Attention of a decoder to the result of its encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Cross<M = NamedMatrix, V = NamedVector> {
    /// The norm of what it reads.
    pub norm: Norm<V>,
    /// Its keys and values are products of the encoder's result.
    pub attention: Attention<M, V>,
}

/// The norms around the blocks of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorms<V = NamedVector> {
    /// Around the mixer.
    pub mixer: BlockNorms<V>,
    /// Around the feed-forward block.
    pub ffn: BlockNorms<V>,
}

/// The norms around one block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNorms<V = NamedVector> {
    /// Of what the block reads.
    pub input: Option<Norm<V>>,
    /// Of what it adds to the residual stream.
    pub output: Option<Norm<V>>,
    /// Of the residual stream after that.
    pub sum: Option<Norm<V>>,
}

impl<V> BlockNorms<V> {
    /// No norms.
    pub const NONE: BlockNorms<V> = BlockNorms {
        input: None,
        output: None,
        sum: None,
    };
}

impl<M, V> Layer<M, V> {
    /// All products, in the order of use.
    pub fn linears(&self) -> Vec<&Linear<M, V>> {
        let mut all = self.mixer.linears();
        all.extend(
            self.cross
                .iter()
                .flat_map(|cross| cross.attention.linears()),
        );
        match &self.ffn {
            Ffn::None => {}
            Ffn::Dense(Dense { up, down, .. }) => all.extend([up, down]),
            Ffn::Gated(gated) => all.extend(gated.linears()),
            Ffn::Experts(experts) => all.extend(experts.linears()),
        }
        let inputs = self.input.iter();
        all.extend(inputs.flat_map(|input| [&input.gate, &input.output]));
        all
    }
}

impl<M, V> Attention<M, V> {
    fn linears(&self) -> Vec<&Linear<M, V>> {
        let mut all: Vec<&Linear<M, V>> = match (&self.latent, self.keys_of) {
            (Some(latent), _) => latent.linears().chain([&self.q, &self.k]).collect(),
            (None, Some(_)) => vec![&self.q],
            (None, None) => vec![&self.q, &self.k, &self.v],
        };
        all.extend(&self.gate);
        all.push(&self.output);
        all
    }
}

/// In a line, without the norms and weights.
impl<M, V> fmt::Display for Layer<M, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let between = match (&self.mixer, &self.ffn) {
            (Mixer::None, _) | (_, Ffn::None) => "",
            _ => "; ",
        };
        write!(f, "{}{between}", self.mixer)?;
        match &self.ffn {
            Ffn::None => Ok(()),
            Ffn::Dense(ffn) => write!(f, "feed-forward of {}", ffn.width),
            Ffn::Gated(ffn) => write!(f, "gated feed-forward of {}", ffn.width),
            Ffn::Experts(ffn) => {
                write!(f, "{} of {} experts of {}", ffn.used, ffn.count, ffn.width)
            }
        }
    }
}

/// In a line, without the norms and weights.
impl<M, V> fmt::Display for Mixer<M, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Mixer::None => Ok(()),
            Mixer::Attention(attention) => write!(f, "{attention}"),
            Mixer::ShortConv(conv) => {
                let (width, taps) = (conv.width, conv.conv.count);
                write!(f, "convolution of {width} channels over {taps} tokens")
            }
            Mixer::DeltaNet(net) => {
                let (keys, values) = (net.key_heads, net.value_heads);
                let of = net.head_dim;
                write!(f, "delta rule, {values} heads of {of}, {keys} for keys")
            }
            Mixer::Ssd(mamba) => write!(f, "{mamba}"),
            Mixer::Both(both) => write!(f, "{} beside {}", both.attention, both.ssd),
        }
    }
}

/// In a line, without the norm and weights.
impl<M, V> fmt::Display for Ssd<M, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (heads, of, size) = (self.heads, self.head_dim, self.state_size);
        write!(f, "Mamba-2, {heads} heads of {of} with {size} numbers each")
    }
}

/// In a line, without the norms and weights.
impl<M, V> fmt::Display for Attention<M, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (heads, kv_heads, head_dim) = (self.heads, self.kv_heads, self.head_dim);
        match &self.latent {
            Some(latent) => write!(
                f,
                "{heads} heads of {}, latent keys and values of {head_dim}",
                latent.query_dim()
            )?,
            None => write!(
                f,
                "{heads} heads of {head_dim}, {kv_heads} for keys and values"
            )?,
        }
        match self.rope {
            Some(rope) => write!(f, ", RoPE {}", rope.theta)?,
            None => write!(f, ", no RoPE")?,
        }
        if self.turned_dim() < head_dim {
            write!(f, " of {}", self.turned_dim())?;
        }
        match self.window {
            Some(window) => write!(f, ", window {window}"),
            None => Ok(()),
        }
    }
}
