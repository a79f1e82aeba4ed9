//! The work of a method.

use super::parts::Parts;
use crate::safetensors::error::TripleFault;
use crate::safetensors::rows::Rows;
use ::safetensors::Dtype as ElementType;
use std::sync::Arc;

/// How a program stores weights.
pub(crate) trait Method: std::fmt::Debug + Send + Sync {
    /// The names of the tensors of a weight, behind the name of their layer and a dot. The first has the values.
    fn suffixes(&self) -> &'static [&'static str];

    /// Whether a tensor of this type, called so, has values of this method; others are plain weights.
    fn packs(&self, element: ElementType) -> bool;

    /// The rows of a weight.
    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault>;
}

/// The methods of a model: several, where layers differ in the names of their tensors.
pub(crate) type Methods = Vec<Arc<dyn Method>>;
