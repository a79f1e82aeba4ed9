//! The kernels, a file for each family. Each says how its work is shared among the parts.

pub(crate) mod norm;
