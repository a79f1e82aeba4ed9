//! Norms of vectors.

use crate::weights::NamedVector;

/// A norm of a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Norm<V = NamedVector> {
    /// How it is computed.
    pub kind: NormKind,
    /// (dim).
    pub weight: V,
    /// (dim), of a layer norm.
    pub bias: Option<V>,
    /// Added under the root.
    pub eps: f32,
}

/// How a vector is normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// By its root mean square.
    Rms,
    /// By its mean and variance.
    Layer,
}
