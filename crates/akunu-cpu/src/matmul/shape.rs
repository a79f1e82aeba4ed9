//! The sizes and the factors of a product with many vectors.

/// `y = alpha x wᵀ + beta y`, all of it.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Vectors.
    pub m: usize,
    /// Outputs.
    pub n: usize,
    /// Floats between vectors of y.
    pub ldc: usize,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of what y held.
    pub beta: f32,
}
