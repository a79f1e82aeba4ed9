//! Parameters of the mixture of experts.

use crate::layout::shared_struct;

shared_struct! {
    /// The choice of experts from the logits of a router.
    pub struct RouteParams = "RouteParams", size = 48 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Experts, at most 512.
        4 => n_experts: u32,
        /// Experts of a row, at most 16.
        8 => n_used: u32,
        /// What becomes of the logits: 0 is a softmax, 1 sigmoids, 2 a softmax of the chosen ones alone, 3 roots of softplus.
        12 => gating: u32,
        /// Groups of experts that lie one behind the other, at most 32; 1 where all are one.
        16 => n_groups: u32,
        /// Groups from which experts are chosen.
        20 => n_groups_used: u32,
        /// Whether the weights of a row are divided by their sum.
        24 => normalise: u32,
        /// Whether a bias is added for the choice.
        28 => has_bias: u32,
        /// Factor of the weights.
        32 => scale: f32,
        /// The layer, for the report of logits that are NaN.
        36 => layer: u32,
        /// Unused, zero.
        40 => _pad0: u32,
        /// Unused, zero.
        44 => _pad1: u32,
    }
}

shared_struct! {
    /// The results of all rows' experts, sorted by their expert.
    pub struct SortExpertsParams = "SortExpertsParams", size = 16 {
        /// Results: one for each expert of each row.
        0 => n_results: u32,
        /// Experts that there are.
        4 => n_experts: u32,
        /// Most results of a tile.
        8 => tile: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// Products with the matrices of chosen experts, (n_experts, N, K) with `stride` rows from one expert to the next.
    pub struct ExpertParams = "ExpertParams", size = 80 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Experts of a row.
        4 => n_used: u32,
        /// Experts that there are.
        8 => n_experts: u32,
        /// Outputs of an expert.
        12 => N: u32,
        /// Inputs of an expert.
        16 => K: u32,
        /// Rows of the stored weight from one expert to the next; more than N where others lie between.
        20 => stride: u32,
        /// 1: products have biases. 2: each expert has a scale.
        24 => flags: u32,
        /// The gate: 0 is SiLU, 1 the tanh form of GELU, 2 the exact one, 3 the clamped one of gpt-oss.
        28 => activation: u32,
        /// MLX weights: values that share a scale and a bias.
        32 => group_size: u32,
        /// MLX weights: type of scales and biases, as in `MLXParams`.
        36 => scale_type: u32,
        /// MLX weights: byte offsets in the binding of the first weight.
        40 => packed_0: u32,
        /// Its scales.
        44 => scales_0: u32,
        /// Its biases.
        48 => biases_0: u32,
        /// MLX weights: byte offsets in the binding of the second weight.
        52 => packed_1: u32,
        /// Its scales.
        56 => scales_1: u32,
        /// Its biases.
        60 => biases_1: u32,
        /// Grouped products: most results of a tile.
        64 => tile: u32,
        /// Grouped products: whether there are two weights, whose products become one by the gate.
        68 => is_gated: u32,
        /// Grouped products of halves: halves from one row of x to the next.
        72 => lda: u32,
        /// Unused, zero.
        76 => _pad0: u32,
    }
}

shared_struct! {
    /// Weighted sums of the rows that belong together.
    pub struct WeighParams = "WeighParams", size = 32 {
        /// Sums.
        0 => n_rows: u32,
        /// Elements of a row.
        4 => cols: u32,
        /// Rows of a sum.
        8 => n_used: u32,
        /// Whether a sum is added to what is there.
        12 => add: u32,
        /// What a row is weighed by: 0 is its number, 1 the sigmoid of its number, 2 is `weight`.
        16 => weighed_by: u32,
        /// The weight of all rows, where it is asked for.
        20 => weight: f32,
        /// Unused, zero.
        24 => _pad0: u32,
        /// Unused, zero.
        28 => _pad1: u32,
    }
}
