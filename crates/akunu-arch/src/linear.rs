//! A product with a matrix of weights.

use crate::weights::{NamedMatrix, NamedVector};

/// A product with a matrix of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear<M = NamedMatrix, V = NamedVector> {
    /// (outputs, inputs).
    pub weight: M,
    /// (outputs).
    pub bias: Option<V>,
}

impl Linear {
    /// The same product times a factor; the bias stays as it is.
    pub fn times(self, factor: f32) -> Linear {
        Linear {
            weight: self.weight.times(factor),
            ..self
        }
    }
}
