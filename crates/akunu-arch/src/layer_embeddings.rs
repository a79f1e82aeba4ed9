//! Embeddings of a token for each layer, besides the one that the residual stream begins with.

use crate::linear::Linear;
use crate::norm::Norm;
use crate::weights::{NamedMatrix, NamedVector};

/// Embeddings of a token for each layer, which its [`LayerInput`] reads. With `h` the token's place in the residual
/// stream before the first layer:
///
/// ```text
/// e = scale * (token_scale * tokens[token] + norm(projection h))        norm: of each layer's part by itself
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LayerEmbeddings<M = NamedMatrix, V = NamedVector> {
    /// Elements of the embedding for one layer.
    pub width: u32,
    /// (vocabulary, layers * width).
    pub tokens: M,
    /// The factor of these.
    pub token_scale: f32,
    /// (layers * width, dim).
    pub projection: Linear<M, V>,
    /// Of the projection, (width).
    pub norm: Norm<V>,
    /// The factor of the sum.
    pub scale: f32,
}

/// A block at the end of a layer that reads the token's embedding for this layer, e ([`LayerEmbeddings`]):
/// `h += norm(output (gelu(gate h) * e))`, with GELU by the tanh formula.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerInput<M = NamedMatrix, V = NamedVector> {
    /// Elements of the embedding.
    pub width: u32,
    /// (width, dim).
    pub gate: Linear<M, V>,
    /// (dim, width).
    pub output: Linear<M, V>,
    /// (dim).
    pub norm: Norm<V>,
}
