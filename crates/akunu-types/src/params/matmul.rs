//! Parameters of matrix products, plain and fused.

use crate::layout::shared_struct;

shared_struct! {
    /// Matrix product `C = alpha * A @ B + beta * C`. Read by every gemv and gemm kernel.
    ///
    /// A is (M, K) activations, C is (M, N). The weight B is stored transposed, (N, K): each of its
    /// rows yields one output column.
    pub struct GEMMParams = "GEMMParams", size = 32 {
        /// Rows of A and of C: the number of tokens (1 for a gemv).
        0 => M: u32,
        /// Columns of C: rows of the stored weight.
        4 => N: u32,
        /// The contracted dimension: columns of A and of the stored weight.
        8 => K: u32,
        /// Elements between rows of A; K when contiguous.
        12 => lda: u32,
        /// Elements between rows of the stored weight; K when contiguous.
        16 => ldb: u32,
        /// Elements between rows of C; N when contiguous.
        20 => ldc: u32,
        /// Factor of the product.
        24 => alpha: f32,
        /// Factor of what C held before; 0 overwrites and never reads C.
        28 => beta: f32,
    }
}

shared_struct! {
    /// Matrix product with MLX-quantised weights, their embedding lookup and their dequantisation.
    ///
    /// The weight buffer is `[packed values | scales | biases]`; a value is `scale * q + bias` with
    /// one scale and one bias for each group of a row. The reference ends after `weight_bytes` and
    /// eight bytes of padding; strides and factors make these weights as capable as all others.
    pub struct MLXParams = "MLXParams", size = 48 {
        /// Number of tokens.
        0 => M: u32,
        /// Rows of the weight: output dimension, or vocabulary size.
        4 => N: u32,
        /// Columns of the weight, counted in values (not in packed words).
        8 => K: u32,
        /// Values that share a scale and a bias: 32, 64 or 128.
        12 => group_size: u32,
        /// Bits of a packed value: 2, 3, 4, 5, 6 or 8.
        16 => bits: u32,
        /// Byte offset of the scales in the weight buffer; the biases follow the scales.
        20 => weight_bytes: u32,
        /// Elements between rows of A; K when contiguous.
        24 => lda: u32,
        /// Elements between rows of C; N when contiguous.
        28 => ldc: u32,
        /// Factor of the product.
        32 => alpha: f32,
        /// Factor of what C held before; 0 overwrites and never reads C.
        36 => beta: f32,
        /// Unused, zero.
        40 => _pad0: u32,
        /// Unused, zero.
        44 => _pad1: u32,
    }
}

shared_struct! {
    /// A norm and up to three products of what it gives, with weights (N0, K), (N1, K) and (N2, K) of one format.
    pub struct NormGemvParams = "NormGemvParams", size = 32 {
        /// Elements of x.
        0 => K: u32,
        /// Outputs of the first weight.
        4 => N0: u32,
        /// Outputs of the second weight; 0 where there is none.
        8 => N1: u32,
        /// Outputs of the third weight; 0 where there is none.
        12 => N2: u32,
        /// Added to the mean square before the root.
        16 => eps: f32,
        /// MLX weights: values that share a scale and a bias.
        20 => group_size: u32,
        /// MLX weights: bits of a value. The scales lie behind N * K of them.
        24 => bits: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}
