//! The kernels, a file for each family. Each says how its work is shared among the parts.

pub(crate) mod attention;
pub(crate) mod elementwise;
pub(crate) mod embedding;
pub(crate) mod experts;
pub(crate) mod kv_cache;
pub(crate) mod norm;
pub(crate) mod rope;
pub(crate) mod rotation;
pub(crate) mod sampling;
pub(crate) mod state;
mod stored;
pub(crate) mod texts;
