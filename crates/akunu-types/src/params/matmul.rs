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
    /// Products of a few rows with up to three weights of one format: `C_i = A @ B_i + beta * C_i`.
    ///
    /// A is (M, K) activations in halves and in tiles; each weight is stored transposed, (N_i, K), and each C_i is (M, N_i),
    /// both without gaps.
    pub struct DecodeGemmParams = "DecodeGemmParams", size = 32 {
        /// Rows of A and of each C.
        0 => M: u32,
        /// Columns of A and of the stored weights.
        4 => K: u32,
        /// Halves between rows of A, a multiple of 128.
        8 => lda: u32,
        /// Columns of the first C.
        12 => N0: u32,
        /// Columns of the second; 0 where there is none.
        16 => N1: u32,
        /// Columns of the third; 0 where there is none.
        20 => N2: u32,
        /// Factor of what each C held before; 0 overwrites and never reads it.
        24 => beta: f32,
        /// Threadgroups that share the sums of an output, each over a part of K.
        28 => n_parts: u32,
    }
}

shared_struct! {
    /// Matrix product with MLX-quantised weights, and their embedding lookup.
    ///
    /// A value is `scale * q + bias`, with one scale and one bias for each group of a row. Packed values, scales and
    /// biases are three arrays anywhere in the weight's binding, as in the file that is bound: their places are byte
    /// offsets, of any alignment.
    pub struct MLXParams = "MLXParams", size = 48 {
        /// Number of tokens.
        0 => M: u32,
        /// Rows of the weight: output dimension, or vocabulary size.
        4 => N: u32,
        /// Columns of the weight, counted in values (not in packed words).
        8 => K: u32,
        /// Values that share a scale and a bias: 32, 64 or 128.
        12 => group_size: u32,
        /// Byte offset of the packed values in the binding.
        16 => packed_at: u32,
        /// Byte offset of the scales.
        20 => scales_at: u32,
        /// Byte offset of the biases.
        24 => biases_at: u32,
        /// Type of scales and biases: 0 is f16, 1 is bf16, 2 is f32.
        28 => scale_type: u32,
        /// Elements between rows of A; K when contiguous.
        32 => lda: u32,
        /// Elements between rows of C; N when contiguous.
        36 => ldc: u32,
        /// Factor of the product.
        40 => alpha: f32,
        /// Factor of what C held before; 0 overwrites and never reads C.
        44 => beta: f32,
    }
}

shared_struct! {
    /// A norm and up to three products of what it gives, with weights (N0, K), (N1, K) and (N2, K) of one format.
    pub struct NormGemvParams = "NormGemvParams", size = 64 {
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
        /// MLX weights: type of scales and biases, as in `MLXParams`.
        24 => scale_type: u32,
        /// MLX weights: byte offsets in the binding of the first weight.
        28 => packed_0: u32,
        /// Its scales.
        32 => scales_0: u32,
        /// Its biases.
        36 => biases_0: u32,
        /// MLX weights: byte offsets in the binding of the second weight.
        40 => packed_1: u32,
        /// Its scales.
        44 => scales_1: u32,
        /// Its biases.
        48 => biases_1: u32,
        /// MLX weights: byte offsets in the binding of the third weight.
        52 => packed_2: u32,
        /// Its scales.
        56 => scales_2: u32,
        /// Its biases.
        60 => biases_2: u32,
    }
}
