//! Multi-head latent attention: the keys and values of all heads are products of one short vector of each token, which is stored
//! instead of them.
//!
//! ```text
//! c = norm(compressed x)                       (rank)
//! p = k x, turned                              (turned_dim), the same for all heads
//! q = Wq x, or Wq norm(low x)                  each head: (plain_dim), and (turned_dim), turned
//!
//! key of head h = [p, K_h c],  value = V_h c
//! ```
//!
//! `K_h c · q` is `c · K_hᵀ q`, so that keys and values of heads are never computed. `[p, c]` is stored, one key
//! for all heads, and the sum of the values is taken before it is multiplied by V:
//!
//! ```text
//! score = [turned part of q, K_hᵀ plain part of q] · [p, c];   result of head h = V_h Σ weight * c
//! ```

use crate::ffn::ExpertLinear;
use crate::linear::Linear;
use crate::norm::Norm;
use crate::weights::{NamedMatrix, NamedVector};

/// The products and norms of latent attention, besides those that all attention has.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent<M = NamedMatrix, V = NamedVector> {
    /// Elements of the vector that keys and values are products of.
    pub rank: u32,
    /// Elements of a query's head that do not turn. They come first in the result of the product.
    pub plain_dim: u32,
    /// Elements that turn.
    pub turned_dim: u32,
    /// Elements of the result of a head.
    pub value_dim: u32,
    /// A first product of queries, and its norm; without it they are a product of x.
    pub low: Option<(Linear<M, V>, Norm<V>)>,
    /// (rank, dim).
    pub compressed: Linear<M, V>,
    /// Of the compressed vector.
    pub norm: Norm<V>,
    /// `K_hᵀ` of each head, (heads, rank, plain_dim).
    pub keys: ExpertLinear<M, V>,
    /// `V_h` of each head, (heads, value_dim, rank).
    pub values: ExpertLinear<M, V>,
}

impl<M, V> Latent<M, V> {
    /// Elements of a query's head before the product with `keys`.
    pub fn query_dim(&self) -> u32 {
        self.plain_dim + self.turned_dim
    }

    /// Its products of all tokens, but those of single heads.
    pub(crate) fn linears(&self) -> impl Iterator<Item = &Linear<M, V>> {
        let low = self.low.iter().map(|(linear, _)| linear);
        low.chain([&self.compressed])
    }
}
