//! Parameters of element-wise kernels.

use crate::layout::shared_struct;

shared_struct! {
    /// A kernel that visits each element of a flat buffer once.
    pub struct ElementwiseParams = "ElementwiseParams", size = 16 {
        /// Number of elements.
        0 => count: u32,
        /// Unused, zero.
        4 => _pad0: u32,
        /// Unused, zero.
        8 => _pad1: u32,
        /// Unused, zero.
        12 => _pad2: u32,
    }
}
